"""Reads and writes of a planned adoption: the recorded resources of an adopted stack."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import Connection
from psycopg.rows import TupleRow

Db = Connection[TupleRow]

ADOPTED = "SELECT adopted FROM revision WHERE id = %s"
PENDING_ADOPTION = """
SELECT id, number, adopted FROM revision WHERE stack_id = %s AND adopted IS NOT NULL ORDER BY number LIMIT 1
"""
CLEAR_ADOPTIONS = "UPDATE revision SET adopted = NULL WHERE stack_id = %s AND adopted IS NOT NULL"
WRITE_ADOPTED = """
UPDATE resource r SET physical_id = x.physical_id, sealed = x.sealed, definition_id = x.definition_id
FROM unnest(%s::bigint[], %s::text[], %s::bytea[], %s::bigint[]) AS x(id, physical_id, sealed, definition_id)
WHERE r.id = x.id
"""


def adopted_resources(db: Db, revision_id: int) -> bytes | None:
    """Return the encrypted resources of an adoption."""
    row = db.execute(ADOPTED, (revision_id,)).fetchone()
    return None if row is None else row[0]


def pending_adoption(db: Db, stack_id: int) -> tuple[int, int, bytes] | None:
    """Return the revision id, its number and the encrypted resources of an adoption whose plan was
    interrupted; None if every adoption is planned.
    """
    return db.execute(PENDING_ADOPTION, (stack_id,)).fetchone()


def clear_adoptions(db: Db, stack_id: int) -> None:
    """Clear the stored resources of an adoption: the planned rows hold them now."""
    db.execute(CLEAR_ADOPTIONS, (stack_id,))


def write_adopted(db: Db, rows: Sequence[tuple[int, str | None, bytes, int]]) -> None:
    """Write the adopted state of new resources: (id, physical id, sealed data and metadata, definition)."""
    if rows:
        db.execute(WRITE_ADOPTED, tuple(list(column) for column in zip(*rows, strict=True)))
