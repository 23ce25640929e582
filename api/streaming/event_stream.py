"""Events as they happen, as server-sent events: from a sequence on, for as long as somebody listens.

Each event is a message whose id is its sequence: who was cut off comes again with `Last-Event-ID`, as every
browser does by itself, and misses nothing and hears nothing twice. Messages of other types say where the
stream stands: `caught-up` once, when all that had happened was told, and `end` after the last one of a stream
that was asked to end with the action. Between them a comment now and then shows that somebody is there; it
moves the id on, so that a quiet reader does not begin far back.

A stream ends by itself after a while: whoever comes again is asked again who he is.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from flask import Response, current_app, request

from api.dependencies import Dependencies, dependencies
from api.request import query_params
from api.response.event import event_with_stack
from api.response.serialization import Links
from api.streaming import hub as live
from api.streaming.hub import EventHub, Scope, Subscriber
from orchestrator.store.events import stream as tail
from orchestrator.store.events.events import FILTERS, EventQuery, EventRow, list_events
from orchestrator.store.events.stream import EventScope, Position
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow, descendants

TYPE: Final = "text/event-stream"
HEARTBEAT_SECONDS: Final = 15.0
STREAM_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 1.0  # between two looks at whether the client is still there
AGAIN_MILLISECONDS: Final = 500  # after which a client that was cut off comes again
AT_ONCE: Final = 1_000  # events of one reading

Told = tuple[EventRow, StackRow]


def asked_for() -> bool:
    """Whether the request wants a stream rather than a list."""
    return TYPE in request.headers.get("Accept", "")


def hub() -> EventHub:
    """Return the application's hub."""
    has = dependencies()
    made: EventHub = current_app.extensions.setdefault(
        "live", EventHub(has.database, has.settings.max_event_streams)
    )
    return made


def stream(stack: StackRow | None, project_id: str, after: Position | None) -> Response:
    """Return the events after a position, and those to come: of a stack, or of all of a project.

    Raises:
        InvalidRequest: `Last-Event-ID` or a query value is none.
        TooManyStreams: no room.
    """
    has, room = dependencies(), hub()
    scope = Scope(project_id, query_params.levels(), stack)
    filters = query_params.filters(FILTERS)
    ends = query_params.boolean("until_end") and stack is not None
    viewer = room.join(scope)
    following = Following(has, room, viewer, filters, Links(), after or tail.START, ends, _is_gone())
    answer = Response(following.frames(), mimetype=TYPE)
    answer.call_on_close(lambda: room.leave(viewer))
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Accel-Buffering"] = "no"  # a proxy would hold back what is told
    return answer


@dataclass(slots=True)
class Following:
    """One stream on its way."""

    parts: Dependencies
    hub: EventHub
    viewer: Subscriber
    filters: Mapping[str, Sequence[str]]
    links: Links
    position: Position
    ends: bool
    is_gone: Callable[[], bool]
    _caught_up: bool = False
    _begun: float = field(default_factory=time.monotonic)

    @property
    def scope(self) -> Scope:
        """Whose events these are."""
        return self.viewer.scope

    def frames(self) -> Iterator[bytes]:
        """Yield what goes over the wire, until nobody listens."""
        yield b"retry: %d\n\n" % AGAIN_MILLISECONDS
        heard = time.monotonic()
        while not self._over():
            if self.viewer.behind:
                for frame, ended in self._catch_up():
                    yield frame
                    if ended:
                        return
                heard = time.monotonic()
                continue
            told = self.viewer.take(LOOK_SECONDS)
            for event, stack in told:
                if (event.xid, event.id) > self.position and self._wanted(event):
                    yield self._frame(event, stack)
                    heard = time.monotonic()
                    if self._is_end(event):
                        yield self._ended()
                        return
            if time.monotonic() - heard > HEARTBEAT_SECONDS:
                heard = time.monotonic()
                yield b": still here\n\n"

    def _over(self) -> bool:
        return live.ending() or self.is_gone() or time.monotonic() - self._begun > STREAM_SECONDS

    def _catch_up(self) -> Iterator[tuple[bytes, bool]]:
        """Yield everything that was settled when this began, each with whether the stream ends with it."""
        self.hub.resume(self.viewer)
        own = self.scope.stack
        now = stacks.get(self.parts.database, own.project_id, own.name, str(own.uuid)) if own else None
        newest = tail.stack_events(self.parts.database, own) if own else 0
        while True:
            settled = tail.end_position(self.parts.database)
            for event, stack in self._settled():
                yield self._frame(event, stack), False
                if self._is_end(event):
                    yield self._ended(), True
                    return
            if settled.xid > newest:
                break
            time.sleep(self.hub.poll_seconds)  # somebody else's transaction is open that began before
        self.position = max(self.position, settled)
        if not self._caught_up:
            self._caught_up = True
            yield self._message("caught-up", self._standing(now)), False
        if self.ends and now is not None and now.status != "IN_PROGRESS":
            yield self._ended(), True

    def _settled(self) -> Iterator[Told]:
        """Yield what is settled and after the position, a page at a time."""
        database, own = self.parts.database, self.scope.stack
        if own is None:
            within, drained = EventScope(self.scope.project_id, self.scope.levels, self.filters), False
            at = self.position
            while not drained:
                walked = tail.of_project(database, within, at, AT_ONCE)
                at, drained = walked.position, walked.drained
                owners = stacks.by_ids(database, {row.stack_id for row in walked.rows})
                yield from ((row, owners[row.stack_id]) for row in walked.rows if row.stack_id in owners)
            return
        count = AT_ONCE
        while count == AT_ONCE:
            below = list(descendants(database, own, self.scope.levels, deleted=True))
            owners = {one.id: one for one in (own, *below)}
            query = EventQuery(self.filters, sort_dir="asc", after=self.position, limit=AT_ONCE)
            rows = list(list_events(database, own, query, below))
            count = len(rows)
            yield from ((row, owners[row.stack_id]) for row in rows)

    def _wanted(self, event: EventRow) -> bool:
        columns = ((FILTERS[name].key, texts) for name, texts in self.filters.items())
        return all(getattr(event, column) in texts for column, texts in columns)

    def _is_end(self, event: EventRow) -> bool:
        own = self.scope.stack
        return (
            self.ends
            and own is not None
            and (event.stack_id, event.physical_id) == (own.id, str(own.uuid))
            and event.resource_type == tail.STACK
            and event.status != "IN_PROGRESS"
        )

    def _frame(self, event: EventRow, stack: StackRow) -> bytes:
        self.position = Position(event.xid, event.id)
        root = self.links.of(self.scope.stack) if self.scope.levels and self.scope.stack else None
        return b"id: %s\ndata: %s\n\n" % (
            event.sequence.encode(),
            orjson.dumps(event_with_stack(event, stack, self.links, root), default=str),
        )

    def _message(self, kind: str, body: Mapping[str, Any]) -> bytes:
        place = str(self.position).encode()
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (place, kind.encode(), orjson.dumps(body, default=str))

    def _ended(self) -> bytes:
        own = self.scope.stack
        assert own is not None
        now = stacks.get(self.parts.database, own.project_id, own.name, str(own.uuid))
        return self._message("end", self._standing(now))

    def _standing(self, stack: StackRow | None) -> dict[str, Any]:
        body: dict[str, Any] = {"sequence": str(self.position)}
        if stack is not None:
            body |= {"stack_status": stack.state, "stack_status_reason": stack.status_reason}
        return body


def _is_gone() -> Callable[[], bool]:
    """Return what tells whether the client has hung up."""
    connection = request.environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return lambda: False

    heard = select.poll()
    heard.register(connection, select.POLLIN)

    def gone() -> bool:
        try:
            # Not its own `recv`, which minds how fast a body comes; and it waits, where there is nothing.
            return bool(heard.poll(0)) and not socket.socket.recv(connection, 1, socket.MSG_PEEK)
        except OSError:
            return True

    return gone
