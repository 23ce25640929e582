"""Limits of single projects in SQL."""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

READ: Final = "SELECT maximum FROM quota WHERE project_id = %(project_id)s AND name = %(name)s"

LIST: Final = "SELECT name, maximum FROM quota WHERE project_id = %(project_id)s"

SET: Final = """
INSERT INTO quota (project_id, name, maximum) VALUES (%(project_id)s, %(name)s, %(maximum)s)
ON CONFLICT (project_id, name) DO UPDATE SET maximum = excluded.maximum, updated_at = now()
"""

RESET: Final = "DELETE FROM quota WHERE project_id = %(project_id)s AND name = %(name)s"


def maximum(db: Db, project_id: str, name: str) -> int | None:
    """Return the limit of a project; None if that of the settings applies."""
    rows = fetch_prepared(db, READ, {"project_id": project_id, "name": name})
    return rows[0][0] if rows else None


def list_all(db: Db, project_id: str) -> dict[str, int]:
    """Return the limits of a project that differ from the settings, by name."""
    return dict(db.execute(LIST, {"project_id": project_id}).fetchall())


def set_maximum(db: Db, project_id: str, name: str, value: int) -> None:
    """Set a limit of a project."""
    db.execute(SET, {"project_id": project_id, "name": name, "maximum": value})


def reset(db: Db, project_id: str, name: str) -> None:
    """Let the limit of the settings apply to a project."""
    db.execute(RESET, {"project_id": project_id, "name": name})
