"""A timeline: the phases of each resource in an action, the critical path, and idle times.

Pure. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MAX_BARS: Final = 300
IDLE_SHARE: Final = 0.05  # of the action: a longer time without any operation is folded


@dataclass(frozen=True, slots=True)
class Bar:
    """The visit of a resource. It is queued, at the provider, and waits until it is ready."""

    name: str
    type: str
    queued_at: float
    started_at: float  # the operation was requested
    waiting_at: float | None  # the request was answered, and the object is observed until it is ready
    ended_at: float | None  # None: in progress
    failed: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the critical path: its resource ended last among the requirements of the next step."""

    name: str
    type: str
    begun_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class Fold:
    """A time without any operation."""

    begun_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Throughput:
    """The operations in each part of the time: those in progress, and those that ended in it."""

    in_progress: list[int]
    ended: list[int]


def with_queues(bars: Iterable[Bar], requires: Mapping[str, Sequence[str]], begun_at: float) -> list[Bar]:
    """Return the bars in the order of their start. Each is queued since its last requirement ended, or since
    the action began.
    """
    every = {bar.name: bar for bar in bars}
    result = []
    for bar in every.values():
        ends = [every[name].ended_at for name in requires.get(bar.name, ()) if name in every]
        known = [end for end in ends if end is not None and end <= bar.started_at]
        queued_at = min(bar.started_at, max(known, default=begun_at))
        result.append(
            Bar(bar.name, bar.type, queued_at, bar.started_at, bar.waiting_at, bar.ended_at, bar.failed)
        )
    return sorted(result, key=lambda bar: (bar.queued_at, bar.started_at, bar.name))


def critical_path(bars: Sequence[Bar], requires: Mapping[str, Sequence[str]]) -> list[Step]:
    """Return the chain of requirements that ends last, the first requirement first."""
    every = {bar.name: bar for bar in bars}
    path: list[Step] = []
    at = max(bars, key=_end, default=None)
    seen: set[str] = set()
    while at is not None and at.name not in seen:
        seen.add(at.name)
        path.append(Step(at.name, at.type, at.queued_at, at.ended_at))
        below = [every[name] for name in requires.get(at.name, ()) if name in every]
        at = max(below, key=_end, default=None)
    return path[::-1]


def _end(bar: Bar) -> tuple[float, str]:
    return (bar.ended_at if bar.ended_at is not None else float("inf"), bar.name)


def folds(spans: Iterable[tuple[float, float]], begun_at: float, ended_at: float) -> list[Fold]:
    """Return the times without any of the spans that are longer than IDLE_SHARE of the whole."""
    least, result, at = IDLE_SHARE * (ended_at - begun_at), [], begun_at
    for start, end in sorted(spans):
        if start - at > least > 0:
            result.append(Fold(at, start))
        at = max(at, end)
    if ended_at - at > least > 0:
        result.append(Fold(at, ended_at))
    return result


def throughput(
    spans: Iterable[tuple[float, float | None]], begun_at: float, ended_at: float, parts: int
) -> Throughput:
    """Return the throughput of operations, each with its start and its end; None: in progress."""
    starts, ends, length = [0] * parts, [0] * parts, max(1e-6, ended_at - begun_at)

    def part(time: float) -> int:
        return min(parts - 1, max(0, int(parts * (time - begun_at) / length)))

    for start, end in spans:
        starts[part(start)] += 1
        if end is not None:
            ends[part(end)] += 1
    return Throughput(lanes_density(starts, ends), ends)


def lanes_density(starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Return the number of operations in progress during each part of the time, from the numbers that begin
    and end in it.
    """
    result, running = [], 0
    for start, end in zip(starts, ends, strict=True):
        running += start
        result.append(running)
        running -= end
    return result
