"""The drift that is known about a resource, for its visit."""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

SEPARATOR: Final = ", "  # of names in `resource.observed_reason`

MARKED: Final = "SELECT observed_reason FROM resource WHERE id = %(id)s AND observed = 'changed'"
MARK_LOST: Final = f"""
WITH v AS MATERIALIZED (
    SELECT r.id, v.verdict, v.reason, v.observed_at
    FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
    JOIN observation_group g ON g.id = v.group_id
    WHERE v.stack_id = %(stack_id)s AND v.confirmed AND v.unknown_since IS NULL
        AND {check_in("v.verdict", ("MISSING", "FAILED"))} AND {CURRENT}
        AND (g.loss_since IS NULL OR g.loss_approved_at IS NOT NULL)
        AND r.op IS NULL AND r.lease IS NULL AND NOT r.leftover AND r.action <> 'DELETE'
    ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
)
UPDATE resource r SET observed = CASE v.verdict WHEN 'MISSING' THEN 'absent' ELSE 'error' END,
    observed_at = v.observed_at, observed_reason = nullif(v.reason, '')
FROM v WHERE r.id = v.id
"""
DRIFTED: Final = f"""
SELECT DISTINCT split_part(d ->> 'property', '.', 1)
FROM resource r JOIN resource_verdict v ON v.resource_id = r.id
CROSS JOIN LATERAL jsonb_array_elements(v.differences) AS d
WHERE r.id = %(id)s AND v.verdict = 'MODIFIED' AND {CURRENT}
"""


def mark_lost_members(db: Db, stack_id: int) -> int:
    """Mark the resources of a stack that the continuous observation has found missing or failed, so that the
    next traversal replaces them; return their number. Nothing is marked while so many objects are lost that
    the provider may be at fault.
    """
    return db.execute(MARK_LOST, {"stack_id": stack_id}).rowcount


def marked_properties(db: Db, resource_id: int) -> frozenset[str] | None:
    """Return the properties that a repair has to correct; None: those that can be updated."""
    row = db.execute(MARKED, {"id": resource_id}).fetchone()
    return frozenset(row[0].split(SEPARATOR)) if row is not None and row[0] else None


def drifted_properties(db: Db, resource_id: int) -> frozenset[str]:
    """Return the properties that were observed to differ from the recorded ones."""
    return frozenset(row[0] for row in db.execute(DRIFTED, {"id": resource_id}).fetchall())
