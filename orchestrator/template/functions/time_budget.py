"""The total time of a request's functions, in addition to the limits of each function."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

EXHAUSTED: Final = "The expressions of the request took too much time"

_allowed: Final = threading.local()


@contextmanager
def time_budget(seconds: float) -> Iterator[None]:
    """Limit the total time of the slow functions that this thread evaluates in the context."""
    _allowed.seconds = seconds
    try:
        yield
    finally:
        del _allowed.seconds


def is_exhausted() -> bool:
    """Return whether a time budget is set and used up."""
    return getattr(_allowed, "seconds", 1.0) <= 0


def charge(seconds: float) -> None:
    """Subtract seconds from the time budget, if one is set."""
    remaining = getattr(_allowed, "seconds", None)
    if remaining is not None:
        _allowed.seconds = remaining - seconds
