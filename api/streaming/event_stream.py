"""Server-sent events: the events after a position and all further events, until the client disconnects.

The id of each message is the sequence of its event. A client that reconnects sends it as `Last-Event-ID`, as
browsers do, and receives every event exactly once. Messages of other types report the state of the stream:
`caught-up` once, after all earlier events, and `end` after the last event of a stream that ends with the
action. A comment is sent periodically as a keep-alive; it advances the id, so that a quiet client does not
resume far back.

A merged stream has a message for all events of half a second, with their number in place of their contents;
the first event after a pause is announced at once. It does not read past events: `caught-up`, which may be
repeated, stands for them.

A stream ends after a maximum duration, and when its credentials are no longer valid. A client that reconnects
is authenticated again.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson
from flask import Response, request

from api.dependencies import Dependencies, app_state, dependencies
from api.middleware import in_flight, turns
from api.request import query_params
from api.response.serialization import MAX_UNSTREAMED_BYTES, Links, event_with_stack
from api.streaming import hub as live
from api.streaming.hub import EventHub, Scope, Subscriber
from api.streaming.session import current_session
from orchestrator.fair_share import NoFreeSlot
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.runtime.turns import paused
from orchestrator.store.events import stream as tail
from orchestrator.store.events.events import FILTERS, EventQuery, EventRow, list_events
from orchestrator.store.events.stream import EventScope, Position
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow, descendants

TYPE: Final = "text/event-stream"
HEARTBEAT_SECONDS: Final = 15.0
STREAM_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 1.0  # seconds between checks for a disconnected client
AGAIN_MILLISECONDS: Final = 500  # milliseconds before a disconnected client reconnects
AT_ONCE: Final = 1_000  # events per read
MERGED_SECONDS: Final = 0.5  # between two messages of a merged stream

EventItem = tuple[EventRow, StackRow]


def asked_for() -> bool:
    """Whether the request asks for a stream instead of a list."""
    return TYPE in request.headers.get("Accept", "")


def hub() -> EventHub:
    """Return the application's event hub."""
    deps = dependencies()
    return app_state().part(EventHub, lambda: EventHub(deps.database, deps.settings.max_event_streams))


def stream(stack: StackRow | None, project_id: str, after: Position | None) -> Response:
    """Return the stream of events after a position, of a stack or of a project.

    Raises:
        InvalidRequest: `Last-Event-ID` or a query value is invalid.
        TooManyStreams: the limit of this process is reached.
    """
    deps, room = dependencies(), hub()
    scope = Scope(project_id, query_params.levels(), stack)
    filters = query_params.filters(FILTERS)
    ends = query_params.boolean("until_end") and stack is not None
    merges = query_params.boolean("merged")
    gone, session = _is_gone(), current_session()
    viewer = room.join(scope, int(app_state().quotas.limit(project_id, "event_streams")))
    in_flight.exempt(request.environ)
    in_turns = turns.take_own(request.environ)
    following = Following(
        deps,
        room,
        viewer,
        filters,
        Links(),
        after or tail.START,
        ends,
        lambda: gone() or session.is_over(),
        in_turns,
        merges,
    )
    answer = Response(following.frames(), mimetype=TYPE)
    answer.call_on_close(lambda: room.leave(viewer))
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Accel-Buffering"] = "no"  # a proxy would buffer the events
    return answer


@dataclass(slots=True)
class Following:
    """An open stream."""

    deps: Dependencies
    hub: EventHub
    viewer: Subscriber
    filters: Mapping[str, Sequence[str]]
    links: Links
    position: Position
    ends: bool
    is_gone: Callable[[], bool]
    in_turns: Callable[[Iterator[bytes]], Iterator[bytes]] = iter  # computes each item in a turn
    merges: bool = False
    _caught_up: bool = False
    _has_ended: bool = False
    _begun: float = field(default_factory=time.monotonic)

    @property
    def scope(self) -> Scope:
        """Return the stack or project of the stream."""
        return self.viewer.scope

    def frames(self) -> Iterator[bytes]:
        """Yield the encoded messages until the client disconnects, in slices that are computed in turns."""
        yield b"retry: %d\n\n" % AGAIN_MILLISECONDS
        heard = time.monotonic()
        while not self._over() and not self._has_ended:
            if self.viewer.behind:
                yield from self._computed(self._catch_up())
                heard = time.monotonic()
                continue
            items = self._new()
            if items:
                yield from self._computed(self._new_frames(items))
                heard = time.monotonic()
            if items and self.merges:
                time.sleep(MERGED_SECONDS)  # events are queued during the pause
            if time.monotonic() - heard > HEARTBEAT_SECONDS:
                heard = time.monotonic()
                yield b": still here\n\n"

    def _computed(self, messages: Iterator[tuple[bytes, bool]]) -> Iterator[bytes]:
        """Yield the messages in slices, each computed in a turn; end the stream if a turn does not come."""
        try:
            yield from self.in_turns(self._slices(messages))
        except NoFreeSlot:  # the client reconnects and continues there
            self._has_ended = True

    def _slices(self, messages: Iterator[tuple[bytes, bool]]) -> Iterator[bytes]:
        """Yield the messages joined, at most AT_ONCE at a time, until the stream ends: perhaps while a
        slice waits for its turn.
        """
        texts, size = list[bytes](), 0
        for text, ended in messages:
            if not texts and self._over():
                return
            texts.append(text)
            size += len(text)
            if ended:
                self._has_ended = True
                break
            if len(texts) >= AT_ONCE or size > MAX_UNSTREAMED_BYTES:
                yield b"".join(texts)
                texts, size = [], 0
        if texts:
            yield b"".join(texts)

    def _new(self) -> list[EventItem]:
        """Wait for events; return those after the position. They are in order: if the first one is after the
        position, all are.
        """
        items = self.viewer.take(LOOK_SECONDS)
        if not items or (not self.filters and (items[0][0].xid, items[0][0].id) > self.position):
            return items
        return [
            (event, stack)
            for event, stack in items
            if (event.xid, event.id) > self.position and self._is_wanted(event)
        ]

    def _new_frames(self, items: list[EventItem]) -> Iterator[tuple[bytes, bool]]:
        """Yield the messages for new events, each with whether the stream ends after it."""
        if self.merges:
            last, _ = items[-1]
            self.position = Position(last.xid, last.id)
            ends = self.ends and any(self._is_end(event) for event, _ in items)
            yield self._message("message", {"events": len(items)}), False
            if ends:
                yield self._ended(), True
            return
        for event, stack in items:
            yield self._frame(event, stack), False
            if self._is_end(event):
                yield self._ended(), True
                return

    def _over(self) -> bool:
        return live.is_ending() or self.is_gone() or time.monotonic() - self._begun > STREAM_SECONDS

    def _catch_up(self) -> Iterator[tuple[bytes, bool]]:
        """Yield all events that were settled at the start, each with whether it ends the stream."""
        self.hub.resume(self.viewer)
        own_stack = self.scope.stack
        now = (
            stacks.get(self.deps.database, own_stack.project_id, own_stack.name, str(own_stack.uuid))
            if own_stack
            else None
        )
        newest = tail.stack_events(self.deps.database, own_stack) if own_stack else 0
        while True:
            settled = tail.end_position(self.deps.database)
            for event, stack in () if self.merges else self._settled():
                yield self._frame(event, stack), False
                if self._is_end(event):
                    yield self._ended(), True
                    return
            if settled.xid > newest:
                break
            with paused():
                time.sleep(self.hub.poll_seconds)  # an earlier transaction is still open
        self.position = max(self.position, settled)
        if self.merges or not self._caught_up:
            self._caught_up = True
            yield self._message("caught-up", self._standing(now)), False
        if self.ends and now is not None and not now.in_progress:
            yield self._ended(), True

    def _settled(self) -> Iterator[EventItem]:
        """Yield settled events after the position, page by page."""
        database, own_stack = self.deps.database, self.scope.stack
        if own_stack is None:
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
            below = list(descendants(database, own_stack, self.scope.levels, deleted=True))
            owners = {item.id: item for item in (own_stack, *below)}
            query = EventQuery(self.filters, sort_dir="asc", after=self.position, limit=AT_ONCE)
            rows = list(list_events(database, own_stack, query, below))
            count = len(rows)
            yield from ((row, owners[row.stack_id]) for row in rows)

    def _is_wanted(self, event: EventRow) -> bool:
        columns = ((FILTERS[name].key, texts) for name, texts in self.filters.items())
        return all(getattr(event, column) in texts for column, texts in columns)

    def _is_end(self, event: EventRow) -> bool:
        own_stack = self.scope.stack
        return (
            self.ends
            and own_stack is not None
            and (event.stack_id, event.physical_id) == (own_stack.id, str(own_stack.uuid))
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

    def _message(self, message_type: str, body: JsonMapping) -> bytes:
        url = str(self.position).encode()
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (
            url,
            message_type.encode(),
            orjson.dumps(body, default=str),
        )

    def _ended(self) -> bytes:
        own_stack = self.scope.stack
        assert own_stack is not None
        now = stacks.get(self.deps.database, own_stack.project_id, own_stack.name, str(own_stack.uuid))
        return self._message("end", self._standing(now))

    def _standing(self, stack: StackRow | None) -> JsonObject:
        body: JsonObject = {"sequence": str(self.position)}
        if stack is not None:
            body |= {"stack_status": stack.state, "stack_status_reason": stack.status_reason}
        return body


def _is_gone() -> Callable[[], bool]:
    """Return a function that reports whether the client has disconnected."""
    connection = request.environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return lambda: False

    heard = select.poll()
    heard.register(connection, select.POLLIN)

    def gone() -> bool:
        try:
            # Not the connection's own `recv`, which enforces the body rate and blocks without data.
            return bool(heard.poll(0)) and not socket.socket.recv(connection, 1, socket.MSG_PEEK)
        except OSError:
            return True

    return gone
