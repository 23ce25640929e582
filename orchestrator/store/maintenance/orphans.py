"""Orphans in SQL: objects created at a provider under a lease that was lost, and duplicates
(docs/internals/protocol.md rule 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import ResourceVisit

Db = Connection[TupleRow]

# While the resource of an orphan has an operation open without a physical id, the holder of its lease may
# still find and adopt the object.
UNHANDLED: Final = """
SELECT s.id, s.token, s.type, s.physical_id, r.id IS NOT NULL AND r.physical_id = s.physical_id,
    coalesce(k.project_id, ''), k.root_id,
    extract(epoch FROM clock_timestamp() - s.requested_at)::float8
FROM orphan s LEFT JOIN resource r ON r.id = s.resource_id LEFT JOIN stack k ON k.id = s.stack_id
WHERE s.handled_at IS NULL AND s.search_until IS NULL
    AND (r.id IS NULL OR r.physical_id IS NOT NULL OR r.op IS NULL)
ORDER BY s.id LIMIT %(limit)s
"""
MARK_HANDLED: Final = "UPDATE orphan SET handled_at = now() WHERE id = %(id)s"


MARK_REQUESTED: Final = "UPDATE orphan SET requested_at = clock_timestamp() WHERE id = %(id)s"
FORGET_REQUEST: Final = "UPDATE orphan SET requested_at = NULL WHERE id = %(id)s"
UNHANDLED_OF: Final = """
SELECT physical_id FROM orphan WHERE resource_id = %(id)s AND handled_at IS NULL AND search_until IS NULL
"""
# The lock orders this before the next claim of the resource, which reads what is recorded here.
RECORD_DUPLICATES: Final = """
WITH r AS MATERIALIZED (
    SELECT id, stack_id FROM resource WHERE id = %(resource_id)s AND lease = %(lease)s FOR NO KEY UPDATE
), recorded AS (
    INSERT INTO orphan (stack_id, resource_id, token, type, physical_id)
    SELECT r.stack_id, r.id, %(token)s, %(type)s, x.physical_id
    FROM r CROSS JOIN unnest(%(physical_ids)s::text[]) AS x(physical_id)
    WHERE NOT EXISTS (SELECT 1 FROM orphan s
        WHERE s.resource_id = r.id AND s.physical_id = x.physical_id AND s.handled_at IS NULL)
)
SELECT 1 FROM r
"""


class OrphanRow(NamedTuple):
    """A recorded orphan."""

    id: int
    token: str
    type: str
    physical_id: str
    adopted: bool  # it is the object of its resource
    project_id: str  # "" when the stack is gone
    root_id: int | None
    requested_seconds: float | None  # since its delete was answered


def unhandled(db: Db, limit: int) -> list[OrphanRow]:
    """Return orphans to be handled, the oldest first."""
    return [OrphanRow(*row) for row in db.execute(UNHANDLED, {"limit": limit}).fetchall()]


def unhandled_of(db: Db, resource_id: int) -> frozenset[str]:
    """Return the physical ids of the orphans of a resource that are to be handled."""
    return frozenset(row[0] for row in db.execute(UNHANDLED_OF, {"id": resource_id}).fetchall())


def record_duplicates(
    db: Db, visit: ResourceVisit, lease: int, token: str, physical_ids: Sequence[str]
) -> bool:
    """Record objects that were created besides the object of a resource; False: the lease is lost."""
    values = {
        "resource_id": visit.resource.id,
        "lease": lease,
        "token": token,
        "type": visit.resource.resource_type,
        "physical_ids": list(physical_ids),
    }
    return db.execute(RECORD_DUPLICATES, values).fetchone() is not None


def mark_requested(db: Db, orphan_id: int) -> None:
    """Record that the delete of an orphan was answered."""
    db.execute(MARK_REQUESTED, {"id": orphan_id})


def forget_request(db: Db, orphan_id: int) -> None:
    """Record that the delete of an orphan is to be requested again."""
    db.execute(FORGET_REQUEST, {"id": orphan_id})


def mark_handled(db: Db, orphan_id: int) -> None:
    """Record that an orphan needs no further attention."""
    db.execute(MARK_HANDLED, {"id": orphan_id})
