"""Reads revisions: without templates and files, which are read in slices."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow
from sqlalchemy import LargeBinary, func, select

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.stacks import Content, Revision

SLICE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision; templates and files are referred to by hash, hidden values are encrypted."""

    id: int
    number: int
    action: str
    template_hash: bytes
    environment: JsonMapping
    files: Mapping[str, str]  # name -> hex hash
    parameters: JsonMapping  # NULL for hidden parameters
    sealed: bytes | None
    outline: JsonMapping
    created_by: str
    created_at: dt.datetime
    copy_of: int | None  # the number of the revision that a rollback copied
    settings: JsonMapping | None = None  # None: of an older version, or of a child
    denied_types: Sequence[str] | None = None  # to its author; None: of an older version, not known


BY_ID: Final = f"""
SELECT {", ".join(RevisionRow.__slots__)} FROM revision WHERE id = %(id)s AND stack_id = %(stack_id)s
"""
NUMBER: Final = "SELECT number FROM revision WHERE id = %(id)s"
PARAMETERS: Final = "SELECT parameters, sealed FROM revision WHERE id = %(id)s::bigint"


@dataclass(frozen=True, slots=True)
class Brief:
    """The part of a revision that listings show."""

    description: str
    copy_of: int | None


def briefs(database: Database, ids: Collection[int]) -> dict[int, Brief]:
    """Return the listed parts of these revisions, by the ids of their rows; the caller has checked access to
    the stacks.
    """
    described = Revision.outline["description"].as_string().label("description")
    statement = select(Revision.id, described, Revision.copy_of).where(Revision.id.in_(ids))
    with database.engine.connect() as connection:
        return {row.id: Brief(row.description or "", row.copy_of) for row in connection.execute(statement)}


def rollbacks(database: Database, stack: StackRow) -> list[tuple[int, bool]]:
    """Return the first event of each rollback of a stack, and whether it led to an earlier revision, not to
    an empty template; in their order.
    """
    statement = select(Revision.first_event, Revision.copy_of.is_not(None)).where(
        Revision.stack_id == stack.id, Revision.action == "ROLLBACK", Revision.first_event.is_not(None)
    )
    with database.engine.connect() as connection:
        return sorted((int(first or 0), back) for first, back in connection.execute(statement))


def desired(database: Database, stack: StackRow) -> RevisionRow | None:
    """Return the stack's desired revision."""
    return None if stack.revision_id is None else of_stack(database, stack, stack.revision_id)


def of_stack(database: Database, stack: StackRow, revision_id: int) -> RevisionRow | None:
    """Return a revision of the stack."""
    with database.borrow() as db:
        rows = fetch_prepared(db, BY_ID, {"id": revision_id, "stack_id": stack.id})
    return RevisionRow(*rows[0]) if rows else None


def number(db: Connection[TupleRow], revision_id: int) -> int:
    """Return the number of a revision within its stack."""
    row = db.execute(NUMBER, {"id": revision_id}).fetchone()
    assert row is not None
    return int(row[0])


def parameters(db: Connection[TupleRow], revision_id: int) -> tuple[JsonObject, bytes | None]:
    """Return the parameter values of a revision: visible values, and hidden values encrypted."""
    [(visible, sealed)] = fetch_prepared(db, PARAMETERS, {"id": str(revision_id)})
    return visible, sealed


def files(database: Database, revision_id: int) -> Mapping[str, str]:
    """Return the hashes of a revision's files by name, in hexadecimal."""
    statement = select(Revision.files).where(Revision.id == revision_id)
    with database.engine.connect() as connection:
        files_: JsonMapping | None = connection.execute(statement).scalar_one_or_none()
    return files_ or {}


def content(database: Database, content_hash: bytes) -> bytes | None:
    """Return a template or file as a whole, None if it is gone."""
    with database.engine.connect() as connection:
        return connection.execute(
            select(Content.body).where(Content.hash == content_hash)
        ).scalar_one_or_none()


def content_size(database: Database, content_hash: bytes) -> int:
    """Return the size of a template or file in bytes, 0 if it is gone."""
    statement = select(func.octet_length(Content.body)).where(Content.hash == content_hash)
    with database.engine.connect() as connection:
        return int(connection.execute(statement).scalar() or 0)


def read_content(database: Database, content_hash: bytes) -> Iterator[bytes]:
    """Yield a template or file in slices of SLICE_BYTES; nothing if it is gone.

    Contents never change, so each slice is a separate query: a slow reader holds no connection.
    """
    offset, body = 1, b"?"
    while body:
        piece = func.substring(Content.body, offset, SLICE_BYTES, type_=LargeBinary())
        with database.engine.connect() as connection:
            body = bytes(
                connection.execute(select(piece).where(Content.hash == content_hash)).scalar() or b""
            )
        if body:
            yield body
        if len(body) < SLICE_BYTES:
            return
        offset += SLICE_BYTES
