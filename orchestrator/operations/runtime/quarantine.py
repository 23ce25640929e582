"""Work that has hung a process (operations/adr/0028): it is done alone, then not at all."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from typing import Final, Literal

from orchestrator.errors import WorkerHung
from orchestrator.logs import logger
from orchestrator.store.connections.database import UNREACHABLE, Database
from orchestrator.store.maintenance import quarantine as store
from orchestrator.store.maintenance.quarantine import Hung
from orchestrator.watchdog.watch import working_on

Kind = Literal["node", "observation", "signals", "round", "webhook", "request"]

REFRESH_SECONDS: Final = 1.0  # shorter than the time in which lost work is sent again
ALONE_SECONDS: Final = 30.0  # longest wait for the other work of the process: a provider call has a deadline
log = logger()


class Quarantine:
    """The work that has hung processes, and the work in progress in this process."""

    def __init__(self, database: Database, refresh_seconds: float = REFRESH_SECONDS) -> None:
        """Know nothing before the first `refresh`."""
        self._database = database
        self.refresh_seconds = refresh_seconds
        self._hung: dict[tuple[str, int], Hung] = {}
        self._read_at = -math.inf
        self._turn = threading.Condition()
        self._in_progress = 0
        self._is_alone = False
        self._inside = threading.local()

    def refresh(self, db: store.Db) -> None:
        """Read the table, unless it was read a moment ago.

        Raises:
            UNREACHABLE: the database is away.
        """
        if self.is_stale():
            self._hung = store.read(db)
            self._read_at = time.monotonic()

    def is_stale(self) -> bool:
        """Whether `refresh` reads the table."""
        return time.monotonic() - self._read_at >= self.refresh_seconds

    def require_released(self, kind: Kind, id_: int) -> None:
        """Return if the work may be executed.

        Raises:
            WorkerHung: it has hung its process twice.
        """
        hung = self._hung.get((kind, id_))
        if hung is not None and hung.hangs >= store.MAX_HANGS:
            raise WorkerHung(hung.hangs, hung.position)

    def reason(self, kind: Kind, id_: int) -> str:
        """Return why the work is not to be executed; "" if it may be."""
        try:
            self.require_released(kind, id_)
        except WorkerHung as error:
            return str(error)
        return ""

    @contextlib.contextmanager
    def guarding(self, kind: Kind, id_: int) -> Iterator[None]:
        """Name the work of a block for the watchdog.

        Work that has hung a process, or was in progress then, is done alone, and released when it completes.
        A node is released by the next action only: a visit that waits proves nothing. A request is not done
        alone: other callers do not wait for it.
        """
        if getattr(self._inside, "depth", 0):  # a part of other work
            with working_on(kind, id_):
                yield
            return
        hung = self._hung.get((kind, id_))
        suspect = hung is not None and hung.hangs < store.MAX_HANGS
        alone = self._begin(alone=suspect and kind != "request")
        self._inside.depth = 1
        try:
            with working_on(kind, id_, alone=alone):
                yield
        finally:
            self._inside.depth = 0
            self._end(alone=alone)
        if suspect and kind != "node":
            self._release(kind, id_)

    def _begin(self, *, alone: bool) -> bool:
        """Wait for a turn; return whether it is alone."""
        with self._turn:
            if self._is_alone:
                self._turn.wait_for(lambda: not self._is_alone, ALONE_SECONDS)
            if alone and not self._is_alone:
                self._is_alone = True
                if self._turn.wait_for(lambda: not self._in_progress, ALONE_SECONDS):
                    return True
                self._is_alone = False
                self._turn.notify_all()
            self._in_progress += 1
            return False

    def _end(self, *, alone: bool) -> None:
        with self._turn:
            if alone:
                self._is_alone = False
            else:
                self._in_progress -= 1
            if alone or self._is_alone:
                self._turn.notify_all()

    def _release(self, kind: Kind, id_: int) -> None:
        self._hung.pop((kind, id_), None)
        try:
            with self._database.borrow() as db:
                store.release(db, kind, id_)
        except UNREACHABLE as error:  # it is done alone again
            log.warning("database_unreachable", error=str(error))
