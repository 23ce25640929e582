"""Number of threads of this API process, as its server reports it.

Limits on concurrent requests are shares of it. With another server than ours it is unknown.
"""

from __future__ import annotations

_threads: list[int] = []


def set_threads(number: int) -> None:
    """Report the number of threads that handle requests."""
    _threads[:] = [number]


def threads() -> int | None:
    """Return the number of threads, None if it is unknown."""
    return _threads[0] if _threads else None
