"""Audit records in SQL: inserted and committed before a change, and completed with its result."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow, class_row

from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

INSERT: Final = """
INSERT INTO audit_record (action, project_id, user_name, origin, target, request_id)
VALUES (%(action)s, %(project_id)s, %(user_name)s, %(origin)s, %(target)s, %(request_id)s)
RETURNING id
"""

COMPLETE: Final = """
UPDATE audit_record SET result = %(result)s, target = coalesce(%(target)s, target) WHERE id = %(id)s
RETURNING id
"""

LIST: Final = """
SELECT id, created_at, action, project_id, user_name, origin, target, request_id, result
FROM audit_record
WHERE (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
ORDER BY id DESC LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """A stored record."""

    id: int
    created_at: dt.datetime
    action: str
    project_id: str | None
    user_name: str | None
    origin: str | None
    target: str | None
    request_id: str | None
    result: str | None  # None: unknown


def begin(
    db: Db,
    action: str,
    *,
    project_id: str | None,
    user_name: str | None,
    origin: str | None,
    target: str | None = None,
    request_id: str | None = None,
) -> int:
    """Insert the record of a change; return its id."""
    values = {
        "action": action,
        "project_id": project_id,
        "user_name": user_name,
        "origin": origin,
        "target": target,
        "request_id": request_id,
    }
    rows = fetch_prepared(db, INSERT, values)
    return int(rows[0][0])


def complete(db: Db, record_id: int, result: str, target: str | None = None) -> None:
    """Add the result to a record and, if known by now, its target."""
    fetch_prepared(db, COMPLETE, {"id": record_id, "result": result, "target": target})


def list_recent(db: Db, project_id: str | None, limit: int) -> list[AuditRecord]:
    """Return the last records of a project, or of all projects, the newest first."""
    with db.cursor(row_factory=class_row(AuditRecord)) as cursor:
        return cursor.execute(LIST, {"project_id": project_id, "limit": limit}).fetchall()
