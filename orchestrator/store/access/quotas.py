"""Limits of single projects in SQL, and their check by the transaction that adds to them (adr/0007)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.errors import LimitExceeded
from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

READ: Final = "SELECT maximum FROM quota WHERE project_id = %(project_id)s AND name = %(name)s"

LIST: Final = "SELECT name, maximum FROM quota WHERE project_id = %(project_id)s"

SET: Final = """
INSERT INTO quota (project_id, name, maximum) VALUES (%(project_id)s, %(name)s, %(maximum)s)
ON CONFLICT (project_id, name) DO UPDATE SET maximum = excluded.maximum, updated_at = now()
"""

RESET: Final = "DELETE FROM quota WHERE project_id = %(project_id)s AND name = %(name)s"


LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('quotas of ' || %(project_id)s, 0))"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a project that is close to it; `used` counts the rows of the project."""

    project_id: str
    maximum: int
    used: Callable[[Db, str], int]
    refusal: str


def enforce(db: Db, *limits: Limit | None) -> None:
    """Refuse what the transaction has added if the project exceeds a limit now; None: it is far from it.

    Run at the end of the transaction. The transactions of a project take turns from here to their end, so
    that each counts the rows of those before it. A transaction that holds this lock waits for no other lock.

    Raises:
        LimitExceeded: a limit is exceeded; the transaction is to be rolled back.
    """
    for limit in limits:
        if limit is None:
            continue
        db.execute(LOCK, {"project_id": limit.project_id})
        if limit.used(db, limit.project_id) > limit.maximum:
            raise LimitExceeded(limit.refusal)


def refuse_full(db: Db, limit: Limit | None) -> None:
    """Refuse a request early if the project has reached its limit; None: it is far from it.

    Raises:
        LimitExceeded: the limit is reached.
    """
    if limit is not None and limit.used(db, limit.project_id) >= limit.maximum:
        raise LimitExceeded(limit.refusal)


def maximum(db: Db, project_id: str, name: str) -> int | None:
    """Return the limit of a project; None if the settings apply."""
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
