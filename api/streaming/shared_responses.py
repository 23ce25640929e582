"""Responses shared by pages that are refreshed at the same time.

The event hub announces new events to all pages of a stack at once, and they request the same lists. The first
request reads; further requests with the same rights receive its response, each after its own authentication
and authorization. A response is shared only until the hub distributes newer events, so that a page never
receives a state older than an announced event.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Final, NamedTuple, ParamSpec

from flask import Response, request

from api.dependencies import app_state, caller
from api.streaming.event_stream import hub
from api.streaming.hub import EventHub
from orchestrator.operations.runtime.caches import Slots
from orchestrator.store.events.stream import Position

SHARES: Final = "orchestrator.shares"  # WSGI key of a request that accepts a shared response
MAX_AGE_SECONDS: Final = 0.25  # not all changes have events
MAX_KEPT: Final = 64
MAX_KEPT_BYTES: Final = 256 * 1_024  # of a response

Key = tuple[object, ...]
Values = ParamSpec("Values")


class Kept(NamedTuple):
    """The last response to a request."""

    body: bytes
    position: Position | None  # of the hub when the read began
    read_at: float  # when it began


class SharedResponses:
    """The responses of this process that are shared."""

    def __init__(self, events: EventHub, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the hub that announces events to the pages."""
        self._events, self._clock = events, clock
        self._kept = Slots[Key, Kept](MAX_KEPT)

    def get(self, key: Key, make: Callable[[], Response]) -> Response:
        """Return the response to a request, which is the same for all requests of a key."""
        slot = self._kept.of(key)
        with slot.lock:
            position, now = self._events.position, self._clock()
            kept = slot.value
            if (
                kept is not None
                and position == kept.position is not None
                and now - kept.read_at < MAX_AGE_SECONDS
            ):
                return Response(kept.body, mimetype="application/json")
            slot.value = None
            response = make()
            if response.status_code == 200 and not response.is_streamed:
                body = response.get_data()
                slot.value = Kept(body, position, now) if len(body) <= MAX_KEPT_BYTES else None
            return response


def shared(view: Callable[Values, Response]) -> Callable[Values, Response]:
    """Let a view with a JSON response share it with requests that accept that."""

    @wraps(view)
    def respond(*args: Values.args, **values: Values.kwargs) -> Response:
        who = caller()
        if SHARES not in request.environ or who.bearer is not None:
            return view(*args, **values)
        rights = who.project_id, who.roles, who.is_admin
        key = (request.root_url, request.path, request.query_string, rights)
        return _responses().get(key, lambda: view(*args, **values))

    return respond


def _responses() -> SharedResponses:
    """Return the shared responses of the application."""
    return app_state().part(SharedResponses, lambda: SharedResponses(hub()))
