"""Who follows events as they happen: one thread of the process reads for all of them.

`Hub.join` gives a `Viewer`. What was settled when it joined it reads for itself, from wherever it was; what
is written afterwards the hub puts before it, in the order of `store/events/stream.py`. So nobody asks the
database again and again for each who waits, and what one reading brings is shared. A viewer that does not
take what is put before it is told that it fell behind, and reads for itself again: what is kept for one is
bounded.
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

from orchestrator.errors import TooManyStreams
from orchestrator.logs import logger
from orchestrator.store.connections.database import Database
from orchestrator.store.events import stream
from orchestrator.store.events.events import EventRow
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow

POLL_SECONDS: Final = 0.25
KEPT: Final = 4_000  # events put before one viewer and not taken
KNOWN: Final = 20_000  # stacks remembered
FORGET_SECONDS: Final = 60.0  # one may have become a root since

log = logger()
_ending = threading.Event()  # this process is


def let_go() -> None:
    """Let every stream of this process end; for a signal handler, so nothing is waited for."""
    _ending.set()


def ending() -> bool:
    """Whether streams are to end."""
    return _ending.is_set()


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose events: one stack's, with so many levels of those nested in it; or a whole project's."""

    project_id: str
    levels: int
    stack: StackRow | None = None


@dataclass(slots=True, eq=False)
class Subscriber:
    """One who follows. `behind` means: read for yourself what comes after what you have."""

    scope: Scope
    waiting: deque[tuple[EventRow, StackRow]] = field(default_factory=deque)
    behind: bool = True
    _woken: threading.Condition = field(default_factory=threading.Condition)

    def put(self, told: Iterable[tuple[EventRow, StackRow]]) -> None:
        """Put events before it, unless it has to read for itself anyway."""
        with self._woken:
            if self.behind:
                return
            self.waiting.extend(told)
            if len(self.waiting) > KEPT:
                self.waiting.clear()
                self.behind = True
            self._woken.notify()

    def take(self, seconds: float) -> list[tuple[EventRow, StackRow]]:
        """Return what was put before it, once there is something or so many seconds have passed."""
        with self._woken:
            if not self.waiting and not self.behind:
                self._woken.wait(seconds)
            found = list(self.waiting)
            self.waiting.clear()
            return found


class EventHub:
    """Reads what is written, once for all who follow in this process, and while there are any."""

    def __init__(self, database: Database, most: int, poll_seconds: float = POLL_SECONDS) -> None:
        """Let so many follow at a time."""
        self.database, self.most, self.poll_seconds = database, most, poll_seconds
        self._viewers: set[Subscriber] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._position = stream.START
        self._known: dict[int, StackRow] = {}
        self._forget_at = 0.0

    def join(self, scope: Scope) -> Subscriber:
        """Return a viewer; it has to `leave`.

        Raises:
            TooManyStreams: as many follow as may.
        """
        viewer = Subscriber(scope)
        with self._lock:
            if len(self._viewers) >= self.most:
                raise TooManyStreams(f"{self.most} streams of events are open here; try again later.")
            self._viewers.add(viewer)
        return viewer

    def leave(self, viewer: Subscriber) -> None:
        """Follow no longer; once is enough."""
        with self._lock:
            self._viewers.discard(viewer)

    def resume(self, viewer: Subscriber) -> None:
        """Put before a viewer what is written from now on. What was settled by now it reads afterwards."""
        with self._lock:
            if self._thread is None:
                self._position = stream.end_position(self.database)
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()
            viewer.waiting.clear()
            viewer.behind = False

    def _run(self) -> None:
        while True:
            time.sleep(self.poll_seconds)
            with self._lock:
                if not self._viewers or ending():
                    self._thread = None
                    return
            try:
                self._read()
            except (sqlalchemy.exc.SQLAlchemyError, psycopg.Error) as error:
                log.warning("events_read_failed", error=str(error))
                time.sleep(1.0)  # it goes on where it was
            except Exception:
                log.exception("event_stream_error")
                self._fall_behind()
                time.sleep(1.0)

    def _read(self) -> None:
        """Hand on what was written since the last time."""
        while True:
            walked = stream.all_projects(self.database, self._position)
            if walked.rows:
                self._learn({row.stack_id for row in walked.rows})
            told = [(row, self._known[row.stack_id]) for row in walked.rows if row.stack_id in self._known]
            with self._lock:  # whoever resumes now reads for itself what is handed on here
                self._position = walked.position
                for viewer in self._viewers if told else ():
                    mine = [one for one in told if self._concerns(viewer.scope, one[1])]
                    if mine:
                        viewer.put(mine)
            if walked.drained:
                return

    def _fall_behind(self) -> None:
        with self._lock:
            self._position = stream.START if not self._viewers else stream.end_position(self.database)
            for viewer in self._viewers:
                viewer.waiting.clear()
                viewer.behind = True

    def _learn(self, ids: set[int]) -> None:
        """Get to know stacks, and those around them."""
        if time.monotonic() > self._forget_at or len(self._known) > KNOWN:
            self._known, self._forget_at = {}, time.monotonic() + FORGET_SECONDS
        wanted = ids - self._known.keys()
        while wanted:
            found = stacks.by_ids(self.database, wanted)
            self._known |= found
            owners = {row.owner_id for row in found.values() if row.owner_id is not None}
            wanted = owners - self._known.keys()

    def _concerns(self, scope: Scope, stack: StackRow) -> bool:
        """Whether a stack is among those of a scope."""
        if stack.project_id != scope.project_id and scope.stack is None:
            return False
        if scope.stack is None:
            return stack.depth <= scope.levels
        levels, at = scope.levels, stack
        while at.id != scope.stack.id:
            above = self._known.get(at.owner_id) if at.owner_id is not None else None
            if above is None or not levels:
                return False
            levels, at = levels - 1, above
        return True
