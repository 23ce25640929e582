"""Requests that wait for other requests of their project, without a thread.

The server lets a request wait only if its body is still unread: it is handled again from the start. The
limit on concurrent requests raises `Postponed`, and the server (`api/serving/gunicorn_worker.py`) handles the
request again when `has_room` is true. Other servers than ours let no request wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

WAIT_SECONDS: Final = 5.0  # longest wait of a request

_current = threading.local()


class Postponed(BaseException):
    """The request waits. No handler of errors catches it on the way to the server."""

    def __init__(
        self, party: object, has_room: Callable[[], bool], leave: Callable[[], None], *, counted: bool = True
    ) -> None:
        """Take the party, the condition for handling the request again, and the function to be called before
        that; `counted` if the rate limits have counted the request.
        """
        super().__init__()
        self.party, self.has_room, self.leave, self.counted = party, has_room, leave, counted


@contextmanager
def handling(*, may_wait: bool, counted: bool) -> Iterator[None]:
    """Handle a request in this thread; `counted` if it has waited after the rate limits had counted it."""
    _current.state = (may_wait, counted)
    try:
        yield
    finally:
        _current.state = (False, False)


def may_wait() -> bool:
    """Whether the current request may be postponed."""
    return getattr(_current, "state", (False, False))[0]


def is_counted() -> bool:
    """Whether the rate limits have counted the current request before it waited."""
    return getattr(_current, "state", (False, False))[1]
