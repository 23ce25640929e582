"""Inputs of a plan that a revision holds: template, environment and file hashes, and the recorded resources
of an adopted stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.json_types import JsonMapping

Db = Connection[TupleRow]

REVISION = """
SELECT v.environment, v.files, encode(v.template_hash, 'hex'), length(c.body)
FROM revision v JOIN content c ON c.hash = v.template_hash WHERE v.id = %(revision_id)s
"""
ADOPTED = "SELECT adopted FROM revision WHERE id = %(revision_id)s"
PENDING_ADOPTION = """
SELECT id, number, adopted FROM revision
WHERE stack_id = %(stack_id)s AND adopted IS NOT NULL ORDER BY number LIMIT 1
"""
CLEAR_ADOPTIONS = "UPDATE revision SET adopted = NULL WHERE stack_id = %(stack_id)s AND adopted IS NOT NULL"
WRITE_ADOPTED = """
UPDATE resource r SET physical_id = x.physical_id, sealed = x.sealed, definition_id = x.definition_id
FROM unnest(%(ids)s::bigint[], %(physical_ids)s::text[], %(sealed)s::bytea[], %(definition_ids)s::bigint[])
    AS x(id, physical_id, sealed, definition_id)
WHERE r.id = x.id
"""


@dataclass(frozen=True, slots=True)
class RevisionTexts:
    """The inputs of a plan that a revision holds."""

    environment: JsonMapping
    files: Mapping[str, str]  # name -> hash of its text, in hexadecimal
    template_hash: str
    length: int  # of the template, in bytes


def revision(db: Db, revision_id: int) -> RevisionTexts:
    """Return a revision's environment, and the hashes of its files and of its template."""
    row = db.execute(REVISION, {"revision_id": revision_id}).fetchone()
    assert row is not None
    return RevisionTexts(row[0] or {}, row[1] or {}, row[2], row[3])


@overload
def template_text(db: Db, revision_id: int) -> bytes: ...
@overload
def template_text(db: Db, revision_id: int, at_most: int) -> bytes | None: ...
def template_text(db: Db, revision_id: int, at_most: int | None = None) -> bytes | None:
    """Return a revision's template as JSON text; None if it is longer than `at_most` bytes."""
    query = (
        "SELECT CASE WHEN %(at_most)s::int IS NULL OR length(c.body) <= %(at_most)s THEN c.body END"
        " FROM revision r JOIN content c ON c.hash = r.template_hash WHERE r.id = %(revision_id)s"
    )
    row = db.execute(query, {"at_most": at_most, "revision_id": revision_id}).fetchone()
    assert row is not None
    return None if row[0] is None else bytes(row[0])


def adopted_resources(db: Db, revision_id: int) -> bytes | None:
    """Return the encrypted resources of an adoption."""
    row = db.execute(ADOPTED, {"revision_id": revision_id}).fetchone()
    return None if row is None else row[0]


def pending_adoption(db: Db, stack_id: int) -> tuple[int, int, bytes] | None:
    """Return the revision id, its number and the encrypted resources of an adoption whose plan was
    interrupted; None if every adoption is planned.
    """
    return db.execute(PENDING_ADOPTION, {"stack_id": stack_id}).fetchone()


def clear_adoptions(db: Db, stack_id: int) -> None:
    """Clear the stored resources of an adoption: the planned rows hold them now."""
    db.execute(CLEAR_ADOPTIONS, {"stack_id": stack_id})


def write_adopted(db: Db, rows: Sequence[tuple[int, str | None, bytes, int]]) -> None:
    """Write the adopted state of new resources: (id, physical id, sealed data and metadata, definition)."""
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        names = ("ids", "physical_ids", "sealed", "definition_ids")
        db.execute(WRITE_ADOPTED, dict(zip(names, columns, strict=True)))
