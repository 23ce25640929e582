"""Resources by their physical id: the index has the hash of the id, which may be of any length."""

from __future__ import annotations

import uuid as uuid_
from typing import Final

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared

# Conditions on a resource `r`. In their own materialized query, whose plan cannot be another.
IS_NAMED: Final = """hashtextextended(r.physical_id, 0) = ANY(ARRAY(
        SELECT hashtextextended(x, 0) FROM unnest(%(ids)s::text[]) AS x))
    AND r.physical_id = ANY(%(ids)s::text[])"""

STACK_WITH: Final = f"""
WITH r AS MATERIALIZED (SELECT r.stack_id FROM resource r WHERE {IS_NAMED} AND NOT r.deposed)
SELECT s.uuid FROM r JOIN stack s ON s.id = r.stack_id
WHERE s.project_id = %(project_id)s AND s.deleted_at IS NULL ORDER BY s.id LIMIT 1
"""


def stack_with(database: Database, project_id: str, physical_id: str) -> uuid_.UUID | None:
    """Return the live stack of a project with a resource of that physical id, None if there is none."""
    with database.borrow() as db:
        rows = fetch_prepared(db, STACK_WITH, {"project_id": project_id, "ids": [physical_id]})
    return rows[0][0] if rows else None
