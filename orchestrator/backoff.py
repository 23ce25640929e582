"""Pauses between attempts: exponential back-off with optional jitter."""

from __future__ import annotations

from random import uniform
from typing import Final

RE_ENQUEUE_SECONDS = 5.0  # delay before an unprocessed message is enqueued again
RETRY_MAX_SECONDS = 60.0  # longest pause between two attempts of an operation
MAX_DOUBLINGS: Final = 30  # beyond any pause in use; 2.0 ** 1024 would overflow


def backoff_seconds(
    tries: int, max_seconds: float, *, extra_jitter: float = 0.0, jitter_fraction: float = 0.0
) -> float:
    """Return the pause after `tries` retries: 1, 2, 4 … seconds, at most `max_seconds`.

    `jitter_fraction` replaces that part of the pause with a random part of it (0.5: between half and all of
    the pause). `extra_jitter` adds up to as many seconds, even to the longest pause.
    """
    pause: float = min(max_seconds, 2.0 ** min(tries, MAX_DOUBLINGS))
    return pause * uniform(1.0 - jitter_fraction, 1.0) + uniform(0.0, extra_jitter)  # noqa: S311 - no secret


def requested_seconds(seconds: float, max_seconds: float) -> float:
    """Return the pause that a server asks for, at most `max_seconds`, and up to a tenth or a second more: not
    all clients return at once.
    """
    pause = min(seconds, max_seconds)
    return pause + uniform(0.0, min(1.0, 0.1 * pause))  # noqa: S311 - no secret
