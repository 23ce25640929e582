"""Sizes of the large values of resources, whose sum is limited per root stack and per project
(operations/adr/0012).

Only values of more than LARGE_BYTES have a row, so that other checks need no statement. A row is written
before its value: concurrent checks see each other's rows, and the sum is never exceeded.
"""

from __future__ import annotations

from typing import Final, Literal

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]
Part = Literal["definition", "attributes"]

LARGE_BYTES: Final = 64 * 1024  # of the JSON of a value

PUT: Final = """
INSERT INTO large_value (resource_id, part, root_id, project_id, bytes)
VALUES (%(resource_id)s, %(part)s, %(root_id)s, %(project_id)s, %(bytes)s)
ON CONFLICT (resource_id, part) DO UPDATE SET bytes = excluded.bytes
RETURNING coalesce(old.bytes, 0)
"""

SUM: Final = """
SELECT coalesce(sum(bytes) FILTER (WHERE root_id = %(root_id)s), 0)::bigint, coalesce(sum(bytes), 0)::bigint
FROM large_value WHERE project_id = %(project_id)s
"""

DROP: Final = """
DELETE FROM large_value WHERE resource_id = %(resource_id)s AND part = %(part)s RETURNING 1
"""

DROP_DELETED: Final = """
DELETE FROM large_value l WHERE l.project_id = %(project_id)s
    AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = l.resource_id)
RETURNING 1
"""


def put(db: Db, resource_id: int, part: Part, *, root_id: int, project_id: str, size: int) -> int:
    """Write the size of a large value; return the size before, 0 if it was not large."""
    values = {
        "resource_id": resource_id,
        "part": part,
        "root_id": root_id,
        "project_id": project_id,
        "bytes": size,
    }
    [(before,)] = fetch_prepared(db, PUT, values)
    return int(before)


def sums(db: Db, root_id: int, project_id: str) -> tuple[int, int]:
    """Return the bytes of the large values of a root stack with its nested stacks, and of the project."""
    [(of_root, of_project)] = fetch_prepared(db, SUM, {"root_id": root_id, "project_id": project_id})
    return of_root, of_project


def drop(db: Db, resource_id: int, part: Part) -> None:
    """Delete the size of a value that is not large any more."""
    fetch_prepared(db, DROP, {"resource_id": resource_id, "part": part})


def drop_deleted(db: Db, project_id: str) -> None:
    """Delete the sizes of the values of deleted resources of a project."""
    fetch_prepared(db, DROP_DELETED, {"project_id": project_id})
