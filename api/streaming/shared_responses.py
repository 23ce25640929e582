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
from typing import Final, ParamSpec

from flask import Response, request

from api.dependencies import app_state, caller
from api.streaming.event_stream import hub
from api.streaming.hub import EventHub
from orchestrator.operations.runtime.caches import Slots

SHARES: Final = "orchestrator.shares"  # WSGI key of a request that accepts a shared response
MAX_AGE_SECONDS: Final = 0.25  # not all changes have events
MAX_KEPT: Final = 64
MAX_KEPT_BYTES: Final = 256 * 1_024  # of a response

Key = tuple[object, ...]
Values = ParamSpec("Values")


class SharedResponses:
    """The responses of this process that are shared."""

    def __init__(self, events: EventHub, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the hub that announces events to the pages."""
        self._events, self._clock = events, clock
        self._kept = Slots[Key, bytes | Response](MAX_KEPT, lambda made: isinstance(made, bytes))

    def get(self, key: Key, make: Callable[[], Response]) -> Response:
        """Return the response to a request, which is the same for all requests of a key."""
        position = self._events.position
        if position is None:
            return make()

        def made() -> bytes | Response:
            response = make()
            if response.status_code != 200 or response.is_streamed:
                return response
            body = response.get_data()
            return body if len(body) <= MAX_KEPT_BYTES else response

        found = self._kept.get(key, (position, self._clock() // MAX_AGE_SECONDS), made)
        return found if isinstance(found, Response) else Response(found, mimetype="application/json")


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
