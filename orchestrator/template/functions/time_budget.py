"""The total time of a request's functions, in addition to the limits of each function."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SPENT: Final = "The expressions took too much time altogether"

_allowed: Final = threading.local()


@contextmanager
def allowance(seconds: float) -> Iterator[None]:
    """Limit the total time of the slow functions that this thread evaluates in the context."""
    _allowed.seconds = seconds
    try:
        yield
    finally:
        del _allowed.seconds


def is_spent() -> bool:
    """Return whether a time budget is set and used up."""
    return getattr(_allowed, "seconds", 1.0) <= 0


def charge(seconds: float) -> None:
    """Subtract seconds from the time budget, if one is set."""
    left = getattr(_allowed, "seconds", None)
    if left is not None:
        _allowed.seconds = left - seconds
