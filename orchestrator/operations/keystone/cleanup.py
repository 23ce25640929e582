"""Removing at Keystone what is nobody's any more: one thing after the other, several workers sharing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.backoff import backoff_seconds
from orchestrator.errors import Forbidden, Unavailable
from orchestrator.logs import logger
from orchestrator.store.connections.database import Database

log = logger()

CLAIM_SECONDS: Final = 120.0  # longer than all calls that remove one
MAX_PAUSE_SECONDS: Final = 3_600.0

Db = Connection[TupleRow]


class RemovableRow(Protocol):
    """Something that is to be removed, for the `tries`th time."""

    @property
    def id(self) -> int:
        """Its row."""

    @property
    def tries(self) -> int:
        """How often it was tried, this time included."""


D_co = TypeVar("D_co", bound=RemovableRow, covariant=True)


class RemovalQueue(Protocol[D_co]):
    """A module of the store whose rows are such things."""

    def claim(self, db: Db, seconds: float) -> D_co | None:
        """Take one that is due; for so many `seconds` it is nobody else's."""

    def delete_row(self, db: Db, id_: int) -> None:
        """Forget one that is gone."""

    def postpone(self, db: Db, id_: int, seconds: float, error: str) -> None:
        """Have one removed later."""


def remove_due(
    database: Database, rows: RemovalQueue[D_co], remove: Callable[[D_co], None], word: str
) -> int:
    """Remove what is due; return how many are gone. What cannot be removed now is tried ever later.

    No transaction is open while `remove` asks Keystone; `word` names the thing in the log.
    """
    gone = 0
    while True:
        with database.borrow() as db:
            due = rows.claim(db, CLAIM_SECONDS)
        if due is None:
            return gone
        try:
            remove(due)
        except (Forbidden, Unavailable) as error:
            pause = backoff_seconds(due.tries, MAX_PAUSE_SECONDS)
            log.warning(f"{word}_not_removed", tries=due.tries, error=str(error))
            with database.borrow() as db:
                rows.postpone(db, due.id, pause, str(error))
            continue
        with database.borrow() as db:
            rows.delete_row(db, due.id)
        gone += 1
        log.info(f"{word}_removed")
