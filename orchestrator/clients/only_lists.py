"""Objects that are observed in the same task are answered by the lists that observers share, and by nothing
else: an object that needs a request of its own would delay the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class NeedsOwnRequest(BaseException):
    """An object that is observed in a group needs a request of its own.

    No answer of a provider: it passes types and steps that take every `Exception` for one.
    """


class Together(NamedTuple):
    """Objects that are observed together: their number, and the moment of the observation."""

    objects: int
    asked_at: float  # on the monotonic clock


_together: ContextVar[Together | None] = ContextVar("together", default=None)
_in_list_request: ContextVar[bool] = ContextVar("in_list_request", default=False)


@contextmanager
def only_lists(together: Together) -> Iterator[None]:
    """Refuse requests of this thread during the body, except those for shared lists."""
    token = _together.set(together)
    try:
        yield
    finally:
        _together.reset(token)


@contextmanager
def list_request() -> Iterator[None]:
    """Permit the requests of this thread during the body: they are for a shared list."""
    token = _in_list_request.set(True)
    try:
        yield
    finally:
        _in_list_request.reset(token)


def observed_together() -> int:
    """Return the number of objects that this thread observes together, 0 for a single object."""
    together = _together.get()
    return 0 if together is None else together.objects


def asked_at() -> float:
    """Return the moment of the present observation: all objects observed together have the same."""
    together = _together.get()
    return time.monotonic() if together is None else together.asked_at


def require_own_request() -> None:
    """Permit a request for a single object.

    Raises:
        NeedsOwnRequest: only shared lists may be requested.
    """
    if _together.get() is not None and not _in_list_request.get():
        raise NeedsOwnRequest("the object needs a request of its own")
