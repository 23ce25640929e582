"""Number of resources of projects and stacks in SQL, by their desired revisions: a row per stack, not per
resource.
"""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

# The index `ix_stack_live_project` has the project and the revision of every live stack.
TOTAL: Final = """
SELECT coalesce(sum(v.resource_count), 0)::bigint FROM stack s JOIN revision v ON v.id = s.revision_id
WHERE s.project_id = %(project_id)s AND s.deleted_at IS NULL
"""

OF_STACK: Final = """
SELECT v.resource_count FROM stack s JOIN revision v ON v.id = s.revision_id
WHERE s.uuid = %(uuid)s::uuid AND s.deleted_at IS NULL
"""


def of_project(db: Db, project_id: str) -> int:
    """Return the number of resources of a project, nested stacks included, as a transaction sees it.

    The connections for checks would read a million revisions one by one.
    """
    [(number,)] = db.execute(TOTAL, {"project_id": project_id}).fetchall()
    return int(number)


def of_stack(db: Db, uuid: str) -> int:
    """Return the number of resources of a stack without its nested stacks, 0 if it does not exist."""
    rows = fetch_prepared(db, OF_STACK, {"uuid": uuid})
    return rows[0][0] if rows else 0
