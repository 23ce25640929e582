"""Reads of a revision's template, environment and file hashes for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

from psycopg import Connection
from psycopg.rows import TupleRow

Db = Connection[TupleRow]


@dataclass(frozen=True, slots=True)
class RevisionTexts:
    """The inputs of a plan that a revision holds."""

    environment: Mapping[str, Any]
    files: Mapping[str, str]  # name -> hash of its text, in hexadecimal
    template_hash: str
    length: int  # of the template, in bytes


REVISION = """
SELECT v.environment, v.files, encode(v.template_hash, 'hex'), length(c.body)
FROM revision v JOIN content c ON c.hash = v.template_hash WHERE v.id = %s
"""


def revision(db: Db, revision_id: int) -> RevisionTexts:
    """Return a revision's environment, and the hashes of its files and of its template."""
    row = db.execute(REVISION, (revision_id,)).fetchone()
    assert row is not None
    return RevisionTexts(row[0] or {}, row[1] or {}, row[2], row[3])


@overload
def template_text(db: Db, revision_id: int) -> bytes: ...
@overload
def template_text(db: Db, revision_id: int, at_most: int) -> bytes | None: ...
def template_text(db: Db, revision_id: int, at_most: int | None = None) -> bytes | None:
    """Return a revision's template as JSON text; None if it is longer than `at_most` bytes."""
    query = (
        "SELECT CASE WHEN %s::int IS NULL OR length(c.body) <= %s THEN c.body END"
        " FROM revision r JOIN content c ON c.hash = r.template_hash WHERE r.id = %s"
    )
    row = db.execute(query, (at_most, at_most, revision_id)).fetchone()
    assert row is not None
    return None if row[0] is None else bytes(row[0])
