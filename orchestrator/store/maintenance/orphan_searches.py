"""Searches for orphans in SQL: a create was repeated, or its resource removed, although an earlier request
had no answer: it may still be carried out (docs/internals/protocol.md rule 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.store.keystone.delegated_credentials import LATE_SECONDS

Db = Connection[TupleRow]

SEARCH_SECONDS: Final = 600.0  # longer than any service keeps a request in its queues
FIRST_SEARCH_SECONDS: Final = 10.0  # after the repetition; each pause is twice the one before
RETRY_SECONDS: Final = 60.0  # after a search that failed
GIVE_UP_SECONDS: Final = LATE_SECONDS  # with a service that answers no search

# The lock orders this before the next claim of the resource, as for duplicates.
RECORD: Final = """
WITH r AS MATERIALIZED (
    SELECT id, stack_id FROM resource WHERE id = %(resource_id)s AND lease = %(lease)s FOR NO KEY UPDATE
), extended AS (
    UPDATE orphan s SET created_at = now(),
        search_until = clock_timestamp() + make_interval(secs => %(seconds)s),
        search_due_at = clock_timestamp() + make_interval(secs => %(first)s)
    FROM r WHERE s.resource_id = r.id AND s.token = %(token)s AND s.handled_at IS NULL
        AND s.search_until IS NOT NULL
    RETURNING s.id
), recorded AS (
    INSERT INTO orphan (
        stack_id, resource_id, token, type, physical_id, physical_name, search_until, search_due_at)
    SELECT r.stack_id, r.id, %(token)s, %(type)s, '', %(physical_name)s,
        clock_timestamp() + make_interval(secs => %(seconds)s),
        clock_timestamp() + make_interval(secs => %(first)s)
    FROM r WHERE NOT EXISTS (SELECT 1 FROM extended)
)
SELECT 1 FROM r
"""

# A create that is open finds the objects itself.
DUE: Final = """
SELECT s.id, s.token, s.type, s.physical_name, coalesce(k.project_id, ''), k.root_id
FROM orphan s LEFT JOIN resource r ON r.id = s.resource_id LEFT JOIN stack k ON k.id = s.stack_id
WHERE s.handled_at IS NULL AND s.search_due_at <= clock_timestamp()
    AND (r.id IS NULL OR r.physical_id IS NOT NULL OR r.op IS NULL)
ORDER BY s.search_due_at LIMIT %(limit)s
"""

# The object of the resource is none of the orphans, and one that is recorded is not recorded again.
RECORD_FOUND: Final = """
WITH r AS MATERIALIZED (
    SELECT x.physical_id, x.op FROM resource x JOIN orphan s ON s.resource_id = x.id
    WHERE s.id = %(id)s FOR NO KEY UPDATE OF x
)
INSERT INTO orphan (stack_id, resource_id, token, type, physical_id)
SELECT s.stack_id, s.resource_id, s.token, s.type, x.physical_id
FROM orphan s CROSS JOIN unnest(%(physical_ids)s::text[]) AS x(physical_id)
WHERE s.id = %(id)s
    AND NOT EXISTS (
        SELECT 1 FROM r WHERE r.physical_id = x.physical_id OR r.physical_id IS NULL AND r.op IS NOT NULL)
    AND NOT EXISTS (
        SELECT 1 FROM orphan o
        WHERE o.resource_id = s.resource_id AND o.physical_id = x.physical_id AND o.handled_at IS NULL)
RETURNING physical_id
"""
CONTINUE: Final = """
UPDATE orphan SET search_due_at = clock_timestamp() + (clock_timestamp() - created_at),
    handled_at = CASE WHEN clock_timestamp() >= search_until THEN now() END
WHERE id = %(id)s
"""
POSTPONE: Final = """
UPDATE orphan SET search_due_at = clock_timestamp() + make_interval(secs => %(seconds)s),
    handled_at = CASE WHEN clock_timestamp() >= created_at + make_interval(secs => %(give_up)s) THEN now() END
WHERE id = %(id)s
RETURNING handled_at IS NOT NULL
"""


class OrphanSearch(NamedTuple):
    """A search that is due."""

    id: int
    token: str
    type: str
    physical_name: str
    project_id: str  # "" when the stack is gone
    root_id: int | None


def record(db: Db, visit: ResourceVisit, lease: int, token: str, physical_name: str) -> bool:
    """Record a search for objects of a token, or extend that which is recorded; False: the lease is lost."""
    values = {
        "resource_id": visit.resource.id,
        "lease": lease,
        "token": token,
        "type": visit.resource.resource_type,
        "physical_name": physical_name,
        "seconds": SEARCH_SECONDS,
        "first": FIRST_SEARCH_SECONDS,
    }
    return db.execute(RECORD, values).fetchone() is not None


def due(db: Db, limit: int) -> list[OrphanSearch]:
    """Return searches that are due, the most overdue first."""
    return [OrphanSearch(*row) for row in db.execute(DUE, {"limit": limit}).fetchall()]


def record_found(db: Db, search_id: int, physical_ids: Sequence[str]) -> list[str]:
    """Record the orphans among the objects that were found; return those that are new."""
    values = {"id": search_id, "physical_ids": list(physical_ids)}
    return [row[0] for row in db.execute(RECORD_FOUND, values).fetchall()]


def continue_(db: Db, search_id: int) -> None:
    """Schedule the next search, or end it."""
    db.execute(CONTINUE, {"id": search_id})


def postpone(db: Db, search_id: int) -> bool:
    """Repeat a search that failed later; return whether it is given up."""
    values = {"id": search_id, "seconds": RETRY_SECONDS, "give_up": GIVE_UP_SECONDS}
    row = db.execute(POSTPONE, values).fetchone()
    return row is not None and bool(row[0])
