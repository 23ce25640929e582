"""How long the functions of one request may take together, beside what bounds each of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SPENT: Final = "The expressions took too much time altogether"

_allowed: Final = threading.local()


@contextmanager
def allowance(seconds: float) -> Iterator[None]:
    """Bound what all the slow functions evaluated in here by this thread may take together."""
    _allowed.seconds = seconds
    try:
        yield
    finally:
        del _allowed.seconds


def is_spent() -> bool:
    """Whether there is an allowance and nothing is left of it."""
    return getattr(_allowed, "seconds", 1.0) <= 0


def charge(seconds: float) -> None:
    """Take seconds off the allowance, if there is one."""
    left = getattr(_allowed, "seconds", None)
    if left is not None:
        _allowed.seconds = left - seconds
