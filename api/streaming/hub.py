"""Distribution of new events: one thread per process reads for all streams.

`EventHub.join` returns a `Subscriber`. It reads the events settled before it joined by itself; the hub adds
later events to its queue in the order of `store/events/stream.py`. So the database is polled once for all
streams of a process. A subscriber that does not drain its queue is marked as behind and reads by itself
again, which bounds its memory.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import psycopg
import sqlalchemy.exc

from orchestrator.logs import logger
from orchestrator.rate_errors import TooManyStreams
from orchestrator.store.connections.database import Database
from orchestrator.store.events import stream
from orchestrator.store.events.events import EventRow
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow

POLL_SECONDS: Final = 0.25
MAX_QUEUED_EVENTS: Final = 4_000  # maximum queued events per subscriber
MAX_CACHED_STACKS: Final = 20_000  # cached stacks
FORGET_SECONDS: Final = 60.0  # a cached stack may have become a root

log = logger()
_ending = threading.Event()  # set at shutdown


def end_streams() -> None:
    """End all streams of this process. Called from a signal handler, so it does not block."""
    _ending.set()


def is_ending() -> bool:
    """Whether streams must end."""
    return _ending.is_set()


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a stream: a stack with `levels` of its nested stacks, or a whole project."""

    project_id: str
    levels: int
    stack: StackRow | None = None


@dataclass(slots=True, eq=False)
class Subscriber:
    """A stream's queue. `behind` means that events were skipped and must be read from the database."""

    scope: Scope
    waiting: deque[tuple[EventRow, StackRow]] = field(default_factory=deque)
    behind: bool = True
    arrived: threading.Event | None = None  # of a reader of several queues: set when events arrive
    _woken: threading.Condition = field(default_factory=threading.Condition)

    def put(self, items: Iterable[tuple[EventRow, StackRow]]) -> None:
        """Queue events, unless the subscriber is behind."""
        with self._woken:
            if self.behind:
                return
            self.waiting.extend(items)
            if len(self.waiting) > MAX_QUEUED_EVENTS:
                self.waiting.clear()
                self.behind = True
            self._woken.notify()
        if self.arrived is not None:
            self.arrived.set()

    def take(self, seconds: float) -> list[tuple[EventRow, StackRow]]:
        """Return the queued events, waiting up to `seconds` for the first."""
        with self._woken:
            if not self.waiting and not self.behind:
                self._woken.wait(seconds)
            batch = list(self.waiting)
            self.waiting.clear()
            return batch


class EventHub:
    """Reads new events once for all streams of this process, while streams are open."""

    def __init__(self, database: Database, most: int, poll_seconds: float = POLL_SECONDS) -> None:
        """Set the maximum number of streams."""
        self.database, self.most, self.poll_seconds = database, most, poll_seconds
        self._viewers: set[Subscriber] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._position = stream.START
        self._stacks: dict[int, StackRow] = {}
        self._forget_at = 0.0

    def join(self, scope: Scope, share: int, arrived: threading.Event | None = None) -> Subscriber:
        """Return a new subscriber, which must be released with `leave`. A project has at most `share`
        subscribers, without limit if it is negative. `arrived` is set when it has events.

        Raises:
            TooManyStreams: the limit of the process, or the share of the project, is reached.
        """
        viewer = Subscriber(scope, arrived=arrived)
        with self._lock:
            of_project = sum(other.scope.project_id == scope.project_id for other in self._viewers)
            if 0 <= share <= of_project:
                raise TooManyStreams(
                    f"{share} streams of events of the project are open here; try again later."
                )
            if len(self._viewers) >= self.most:
                raise TooManyStreams(f"{self.most} streams of events are open here; try again later.")
            self._viewers.add(viewer)
        return viewer

    def leave(self, viewer: Subscriber) -> None:
        """Remove a subscriber; repeated calls have no effect."""
        with self._lock:
            self._viewers.discard(viewer)

    def close(self) -> None:
        """Remove all subscribers, and wait for the end of the thread."""
        with self._lock:
            self._viewers.clear()
            thread = self._thread
        if thread is not None:
            thread.join()

    def resume(self, viewer: Subscriber) -> None:
        """Queue new events for a subscriber again. It reads the events settled before this call by itself."""
        with self._lock:
            if self._thread is None:
                self._position = stream.end_position(self.database)
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()
            viewer.waiting.clear()
            viewer.behind = False

    @property
    def position(self) -> stream.Position | None:
        """Return the position up to which events were distributed; None while no stream waits for events."""
        with self._lock:
            return None if self._thread is None else self._position

    def _run(self) -> None:
        while True:
            time.sleep(self.poll_seconds)
            with self._lock:
                if not self._viewers or is_ending():
                    self._thread = None
                    return
            try:
                self._read()
            except (sqlalchemy.exc.SQLAlchemyError, psycopg.Error) as error:
                log.warning("events_read_failed", error=str(error))
                time.sleep(1.0)  # continue from the same position
            except Exception:
                log.exception("event_stream_error")
                self._fall_behind()
                time.sleep(1.0)

    def _read(self) -> None:
        """Distribute the events written since the last read."""
        while True:
            walked = stream.all_projects(self.database, self._position)
            if walked.rows:
                self._learn({row.stack_id for row in walked.rows})
            result = [
                (row, self._stacks[row.stack_id]) for row in walked.rows if row.stack_id in self._stacks
            ]
            found = {row.stack_id: stack for row, stack in result}
            with self._lock:  # a subscriber that resumes now reads these events by itself
                self._position = walked.position
                for viewer in self._viewers if result else ():
                    concerned = {id_ for id_, stack in found.items() if self._concerns(viewer.scope, stack)}
                    relevant = result
                    if len(concerned) < len(found):
                        relevant = [item for item in result if item[0].stack_id in concerned]
                    if relevant:
                        viewer.put(relevant)
            if walked.drained:
                return

    def _fall_behind(self) -> None:
        with self._lock:
            self._position = stream.START if not self._viewers else stream.end_position(self.database)
            for viewer in self._viewers:
                viewer.waiting.clear()
                viewer.behind = True

    def _learn(self, ids: set[int]) -> None:
        """Load stacks and their ancestors into the cache."""
        if time.monotonic() > self._forget_at or len(self._stacks) > MAX_CACHED_STACKS:
            self._stacks, self._forget_at = {}, time.monotonic() + FORGET_SECONDS
        rows = ids - self._stacks.keys()
        while rows:
            found = stacks.by_ids(self.database, rows)
            self._stacks |= found
            owners = {row.owner_id for row in found.values() if row.owner_id is not None}
            rows = owners - self._stacks.keys()

    def _concerns(self, scope: Scope, stack: StackRow) -> bool:
        """Whether a stack belongs to a scope."""
        if stack.project_id != scope.project_id and scope.stack is None:
            return False
        if scope.stack is None:
            return stack.depth <= scope.levels
        levels, at = scope.levels, stack
        while at.id != scope.stack.id:
            above = self._stacks.get(at.owner_id) if at.owner_id is not None else None
            if above is None or not levels:
                return False
            levels, at = levels - 1, above
        return True
