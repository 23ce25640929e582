"""The total time of a request's functions, in addition to the limits of each function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from orchestrator.schema.request_budgets import budgets

EXHAUSTED: Final = "The expressions of the request took too much time"


@contextmanager
def time_budget(seconds: float) -> Iterator[None]:
    """Limit the total time of the slow functions that this thread evaluates in the context."""
    budgets.function_seconds = seconds
    try:
        yield
    finally:
        budgets.function_seconds = None


def is_exhausted() -> bool:
    """Return whether a time budget is set and used up."""
    return budgets.function_seconds is not None and budgets.function_seconds <= 0


def charge(seconds: float) -> None:
    """Subtract seconds from the time budget, if one is set."""
    if budgets.function_seconds is not None:
        budgets.function_seconds -= seconds
