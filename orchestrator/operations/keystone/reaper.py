"""Removal of unused objects at Keystone. Several workers may run a reaper on the same queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from orchestrator.errors import Forbidden, Misconfigured, Unavailable
from orchestrator.logs import logger
from orchestrator.store.connections.damaged_rows import DAMAGED
from orchestrator.store.connections.database import Database
from orchestrator.store.keystone.removal_queue import Db, RemovalQueue

log = logger()

CLAIM_SECONDS: Final = 120.0  # exceeds the duration of all requests that remove an object
SEARCH_SECONDS: Final = 60.0  # interval between searches for objects whose owner is gone
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 3_600.0

T = TypeVar("T")


@dataclass(slots=True)
class Reaper(Generic[T]):
    """Removes the objects of a queue; log events carry the name of its table."""

    database: Database
    queue: RemovalQueue[T]
    remove: Callable[[T], None]
    search: Callable[[Db], None] | None = None  # makes objects due whose owner is gone
    searched_at: float = field(default=float("-inf"))

    def run(self) -> int:
        """Remove the objects that are due; return their number. Failed removals are retried with a back-off.

        No transaction is open during a request to Keystone.
        """
        self._search()
        removed = 0
        while True:
            with self.database.borrow() as db:
                removal = self.queue.claim(db, CLAIM_SECONDS)
            if removal is None:
                return removed
            try:
                self.remove(removal.object)
            except (Forbidden, Unavailable, Misconfigured, *DAMAGED) as error:
                pause = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(removal.tries, 30))
                log.warning(f"{self.queue.table}_not_removed", tries=removal.tries, error=str(error))
                with self.database.borrow() as db:
                    self.queue.postpone(db, removal.id, pause, str(error))
                continue
            with self.database.borrow() as db:
                self.queue.delete_row(db, removal.id)
            removed += 1
            log.info(f"{self.queue.table}_removed")

    def _search(self) -> None:
        if self.search is not None and time.monotonic() - self.searched_at >= SEARCH_SECONDS:
            with self.database.borrow() as db:
                self.search(db)
            self.searched_at = time.monotonic()
