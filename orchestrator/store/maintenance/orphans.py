"""Orphans in SQL: objects created at a provider under a lease that was lost
(docs/internals/protocol.md rule 4).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

Db = Connection[TupleRow]

# While the resource of an orphan has an operation open without a physical id, the holder of its lease may
# still find and adopt the object.
UNHANDLED: Final = """
SELECT s.id, s.token, s.type, s.physical_id, r.id IS NOT NULL AND r.physical_id = s.physical_id,
    coalesce(k.project_id, ''), k.root_id
FROM stray s LEFT JOIN resource r ON r.id = s.resource_id LEFT JOIN stack k ON k.id = s.stack_id
WHERE s.handled_at IS NULL AND (r.id IS NULL OR r.physical_id IS NOT NULL OR r.op IS NULL)
ORDER BY s.id LIMIT %(limit)s
"""
MARK_HANDLED: Final = "UPDATE stray SET handled_at = now() WHERE id = %(id)s"


class OrphanRow(NamedTuple):
    """A recorded orphan."""

    id: int
    token: str
    type: str
    physical_id: str
    adopted: bool  # it is the object of its resource
    project_id: str  # "" when the stack is gone
    root_id: int | None


def unhandled(db: Db, limit: int) -> list[OrphanRow]:
    """Return orphans to be handled, the oldest first."""
    return [OrphanRow(*row) for row in db.execute(UNHANDLED, {"limit": limit}).fetchall()]


def mark_handled(db: Db, orphan_id: int) -> None:
    """Record that an orphan needs no further attention."""
    db.execute(MARK_HANDLED, {"id": orphan_id})
