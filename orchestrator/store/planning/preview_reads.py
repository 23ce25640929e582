"""Reads of a preview, from a consistent snapshot of a stack."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.database import Database

Db = Connection[TupleRow]

VALUES = """
SELECT id, uuid::text, name, type, coalesce(runs_as, type), action, status, status_reason, op, physical_id,
    reference_id, properties, attributes, data, metadata, convert_from(sealed, 'UTF8'), marked_unhealthy
FROM resource WHERE stack_id = %(stack_id)s AND id = ANY(%(ids)s)
"""

# The deletion policy of each resource, from the definition that it was built from.
POLICIES = """
SELECT r.id, CASE WHEN d.body -> 'external_id' IS NULL THEN d.body ->> 'deletion_policy' ELSE 'Retain' END
FROM resource r JOIN resource_definition d ON d.id = r.definition_id
WHERE r.stack_id = %(stack_id)s AND r.id = ANY(%(ids)s)
"""


class StoredProperties(NamedTuple):
    """The recorded state of a resource; encrypted values are in `sealed`."""

    id: int
    uuid: str
    name: str
    type: str
    kind: str
    action: str
    status: str
    status_reason: str
    op: str | None
    physical_id: str | None
    reference_id: str | None
    properties: Any
    attributes: Any
    data: Any
    metadata: Any
    sealed: str | None
    marked_unhealthy: bool


@contextmanager
def consistent_snapshot(database: Database) -> Iterator[Db]:
    """Yield a read-only connection whose statements all see the same state."""
    with database.borrow(hot=False) as db, db.transaction():
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield db


def values(db: Db, stack_id: int, ids: Collection[int]) -> list[StoredProperties]:
    """Return these resources of a stack."""
    rows = db.execute(VALUES, {"stack_id": stack_id, "ids": list(ids)}).fetchall()
    return [StoredProperties(*row) for row in rows]


def retained(db: Db, stack_id: int, ids: Sequence[int], policies: Collection[str]) -> set[int]:
    """Return the resources with any of these deletion policies."""
    if not ids:
        return set()
    rows = db.execute(POLICIES, {"stack_id": stack_id, "ids": list(ids)}).fetchall()
    return {id_ for id_, policy in rows if policy in policies}
