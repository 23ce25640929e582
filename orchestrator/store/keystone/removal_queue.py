"""The removal of objects at Keystone: both tables of this package are queues of pending removals.

A row is `making` from before Keystone is asked to create the object, `held` while a stack or a resource owns
the object, and `going` from the first attempt to remove it. `due_at` is the time of the next attempt. A claim
postpones it, so that several workers can share a queue. The row is deleted once the object does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

T = TypeVar("T")

# MATERIALIZED: a plan may run a subquery of FROM once per row of the table, with different results.
CLAIM: Final = """
WITH next AS MATERIALIZED (
    SELECT d.id FROM {table} d
    WHERE d.due_at <= now() AND {unowned}
    ORDER BY d.due_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE {table} AS o
SET state = 'going', tries = o.tries + 1, due_at = now() + make_interval(secs => %(seconds)s::float8)
FROM next WHERE o.id = next.id
RETURNING o.id, o.tries, {columns}
"""
DELETE: Final = "DELETE FROM {table} WHERE id = %(id)s AND state = 'going'"
POSTPONE: Final = """
UPDATE {table} SET due_at = now() + make_interval(secs => %(seconds)s::float8), last_error = %(error)s
WHERE id = %(id)s AND state = 'going'
"""


@dataclass(frozen=True, slots=True)
class Removal(Generic[T]):
    """A claimed row: the object to remove, and the number of attempts including the current attempt."""

    id: int
    tries: int
    object: T


class RemovalQueue(Generic[T]):
    """The rows of a table whose object is to be removed."""

    def __init__(
        self, table: str, unowned: str, columns: str, read: Callable[..., T], delete: str = DELETE
    ) -> None:
        """Build the statements.

        `unowned` is a condition on row `d`: nothing needs the object any more. `columns` of row `o` are the
        arguments of `read`.
        """
        self.table, self._read = table, read
        self._claim = CLAIM.format(table=table, unowned=unowned, columns=columns)
        self._delete, self._postpone = delete.format(table=table), POSTPONE.format(table=table)

    def claim(self, db: Db, seconds: float) -> Removal[T] | None:
        """Claim an object that is due, for `seconds`; return None if there is none."""
        rows = fetch_prepared(db, self._claim, {"seconds": str(seconds)})
        return Removal(rows[0][0], rows[0][1], self._read(*rows[0][2:])) if rows else None

    def delete_row(self, db: Db, id_: int) -> None:
        """Delete the row of a removed object."""
        db.execute(self._delete, {"id": id_})

    def postpone(self, db: Db, id_: int, seconds: float, error: str) -> None:
        """Retry a failed removal after `seconds`."""
        db.execute(self._postpone, {"id": id_, "seconds": seconds, "error": error})
