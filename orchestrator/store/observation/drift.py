"""The drift that is known about a resource, for its visit."""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.observation.verdicts import CURRENT

Db = Connection[TupleRow]

SEPARATOR: Final = ", "  # of names in `resource.observed_reason`

MARKED: Final = "SELECT observed_reason FROM resource WHERE id = %(id)s AND observed = 'changed'"
DRIFTED: Final = f"""
SELECT DISTINCT split_part(d ->> 'property', '.', 1)
FROM resource r JOIN resource_verdict v ON v.resource_id = r.id
CROSS JOIN LATERAL jsonb_array_elements(v.differences) AS d
WHERE r.id = %(id)s AND v.verdict = 'changed' AND {CURRENT}
"""


def marked_properties(db: Db, resource_id: int) -> frozenset[str] | None:
    """Return the properties that a repair has to correct; None: those that can be updated."""
    row = db.execute(MARKED, {"id": resource_id}).fetchone()
    return frozenset(row[0].split(SEPARATOR)) if row is not None and row[0] else None


def drifted_properties(db: Db, resource_id: int) -> frozenset[str]:
    """Return the properties that were observed to differ from the recorded ones."""
    return frozenset(row[0] for row in db.execute(DRIFTED, {"id": resource_id}).fetchall())
