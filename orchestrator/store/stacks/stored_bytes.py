"""Stored bytes of a project: templates, files and the other contents of revisions, snapshots and software
configs; of deleted stacks too, until they are purged (adr/0008).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.database import Database

Db = Connection[TupleRow]

# The columns of a revision. Its texts have their own rows (`project_content`).
REVISION_BYTES: Final = """octet_length(%(environment)s::json::text) + octet_length(%(files)s::jsonb::text)
        + octet_length(%(parameters)s::json::text) + octet_length(%(outline)s::json::text)
        + coalesce(octet_length(%({sealed})s::bytea), 0)"""
ADD_CONTENTS: Final = """
INSERT INTO project_content (project_id, hash, size)
SELECT s.project_id, x.hash, x.size
FROM stack s CROSS JOIN unnest(%(hashes)s::bytea[], %(sizes)s::bigint[]) AS x(hash, size)
WHERE s.id = %(stack_id)s
ORDER BY x.hash  -- always in this order: no deadlocks
ON CONFLICT DO NOTHING
"""
TOTAL: Final = """
SELECT ((SELECT coalesce(sum(c.size), 0) FROM project_content c WHERE c.project_id = %(project_id)s)
    + (SELECT coalesce(sum(v.stored_bytes), 0) FROM stack s JOIN revision v ON v.stack_id = s.id
        WHERE s.project_id = %(project_id)s)
    + (SELECT coalesce(sum(p.stored_bytes), 0) FROM stack s JOIN snapshot p ON p.stack_id = s.id
        WHERE s.project_id = %(project_id)s)
    + (SELECT coalesce(sum(octet_length(c.sealed)), 0) FROM software_config c
        WHERE c.project_id = %(project_id)s)
    + (SELECT coalesce(sum(octet_length(d.sealed)), 0) FROM software_deployment d
        WHERE d.project_id = %(project_id)s))::bigint
"""
OF_REVISION: Final = "SELECT stored_bytes FROM revision WHERE stack_id = %(stack_id)s AND number = %(number)s"
OF_RESOURCES: Final = """
SELECT coalesce(sum(coalesce(pg_column_size(r.metadata), 0) + coalesce(pg_column_size(r.data), 0)
    + coalesce(pg_column_size(r.sealed), 0)), 0)::bigint
FROM resource r WHERE r.stack_id = %(stack_id)s
"""


def add_contents(db: Db, stack_id: int, hashes: Sequence[bytes], sizes: Sequence[int]) -> None:
    """Count stored texts as texts of the project of a stack, unless they are counted."""
    db.execute(ADD_CONTENTS, {"stack_id": stack_id, "hashes": list(hashes), "sizes": list(sizes)})


def of_project(db: Db, project_id: str) -> int:
    """Return the stored bytes of a project."""
    [(number,)] = db.execute(TOTAL, {"project_id": project_id}).fetchall()
    return int(number)


def of_revision(database: Database, stack_id: int, number: int) -> int:
    """Return the bytes of a revision without its texts, 0 if it does not exist."""
    with database.borrow() as db:
        row = db.execute(OF_REVISION, {"stack_id": stack_id, "number": number}).fetchone()
    return 0 if row is None else int(row[0])


def of_resources(db: Db, stack_id: int) -> int:
    """Return the bytes of the resources of a stack that a snapshot copies, without its nested stacks."""
    [(number,)] = db.execute(OF_RESOURCES, {"stack_id": stack_id}).fetchall()
    return int(number)


def of_snapshot(database: Database, stack_id: int) -> int:
    """Return the bytes of a snapshot of a stack, without its nested stacks."""
    with database.borrow() as db:
        return of_resources(db, stack_id)
