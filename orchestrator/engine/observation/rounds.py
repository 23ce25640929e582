"""Time of the next round of a group, and the loss of many objects at once: pure."""

from __future__ import annotations

from typing import Final

GROWTH: Final = 2.0  # of the interval, per round without news
MIN_IDLE_SHARE: Final = 20.0  # pause after a round, in durations of the round
JITTER: Final = 0.1  # share of the interval

MAX_SINGLE: Final = 50  # named objects of a group with a request each in a round
OBJECTS_PER_REQUEST: Final = 20  # a list of so many objects costs a service about as much as a request
HASTENED_SHARE: Final = 4.0  # from the start of a round to a hastened start, in durations of the round
MIN_HASTENED: Final = 0.5  # seconds, likewise

LOSS_SHARE: Final = 0.2
MIN_LOST: Final = 5


def next_interval(previous: float, shortest: float, longest: float, *, news: bool) -> float:
    """Return the interval after a round: the shortest after news, then growing to the longest."""
    if news or previous <= 0:
        return min(shortest, longest)
    return min(max(previous, shortest) * GROWTH, longest)


def pause(interval: float, duration: float, random: float) -> float:
    """Return the seconds from the end of a round to the next one; `random` is in [0, 1)."""
    return max(interval - duration, duration * MIN_IDLE_SHARE) * (1 + JITTER * (2 * random - 1))


def prefers_lists(named: int, objects: int) -> bool:
    """Whether `named` objects of a group with lists are observed with the lists of all its `objects`."""
    return named > min(MAX_SINGLE, 2 + objects // OBJECTS_PER_REQUEST)


def estimated_loss(gone: int, looked_up: int, left: int) -> int:
    """Return how many of the objects left to be looked up are lost, if the same share of them is as of those
    looked up.
    """
    return round(left * gone / looked_up) if looked_up else 0


def is_mass_loss(lost: int, observed: int, share: float = LOSS_SHARE, minimum: int = MIN_LOST) -> bool:
    """Whether so many objects disappeared within a round that a fault of the provider is more likely."""
    return lost >= minimum and lost > share * observed
