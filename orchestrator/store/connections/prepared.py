"""Connections for checks: a fixed set of statements, run thousands of times a second.

The overhead of psycopg per statement costs a check as much as all rules of the engine together. The
statements of a visit are therefore prepared once and executed through libpq. Texts are sent unchanged, other
values are dumped by psycopg; psycopg's row loader is created once per statement. All other statements use a
psycopg cursor that prepares nothing: after a ROLLBACK psycopg deallocates every prepared statement of the
session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors, pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.rows import TupleRow

from orchestrator.store.connections.outages import Session, ends_session

PLACEHOLDER = re.compile(r"%(?:\((\w+)\)[sb]|([sb])|%)")
PREPARED = 400  # statements per connection; about sixty exist, each with a few combinations of types
DUPLICATE_PREPARED = b"42P05"
OK_STATUSES = frozenset({pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK})


@lru_cache(maxsize=512)
def numbered(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement with `$1` in place of its placeholders, and the names of these in order, without
    plain `%s`.

    psycopg does the same, but caches no text longer than 4,096 characters.
    """
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name, positional = match.groups()
        if name is None and positional is None:
            return "%"
        return f"${numbers.setdefault(name or f' {len(numbers)}', len(numbers) + 1)}"

    text = PLACEHOLDER.sub(number, statement).encode()
    return text, tuple(name for name in numbers if name[0] != " ")


@dataclass(slots=True)
class Prepared:
    """A statement prepared on the server, and the loader of its rows."""

    name: bytes
    transformer: Any = None  # a Transformer, once there are rows; the column types never change

    def rows(self, connection: psycopg.Connection[Any], result: pq.abc.PGresult) -> list[TupleRow]:
        """Return the rows of a result."""
        transformer = self.transformer
        if transformer is None:
            transformer = self.transformer = Transformer(connection)
            transformer.set_pgresult(result)
        else:
            transformer.set_pgresult(result, set_loaders=False)
        try:
            rows: list[TupleRow] = transformer.load_rows(0, result.ntuples, tuple)
        finally:
            transformer.set_pgresult(None, set_loaders=False)  # it may be large
        return rows


def statement_name(text: bytes, types: tuple[int, ...]) -> bytes:
    """Return the name of a statement on the server, derived from its text and the types of its values.

    A session may contain prepared statements of an earlier client, if a connection pooler lends the same
    server process to several clients. The same name then means the same statement.
    """
    types_text = ",".join(map(str, types)).encode()
    return b"visit_" + hashlib.blake2b(types_text + b":" + text, digest_size=16).hexdigest().encode()


def as_texts(values: Sequence[object]) -> list[bytes | None] | None:
    """Return values in PostgreSQL's text format if all are texts or nulls. None for other types, and for a
    text with a NUL: psycopg reports that error, libpq would truncate the text.
    """
    texts: list[bytes | None] = []
    for value in values:
        if value is None:
            texts.append(None)
        elif value.__class__ is str and "\0" not in value:
            texts.append(value.encode())
        else:
            return None
    return texts


class PreparedConnection(Session):
    """A connection in autocommit with a single cursor: rows are fetched before the next statement runs."""

    _only: psycopg.Cursor[TupleRow] | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Prepare no statement yet."""
        super().__init__(*arguments, **options)
        self._statements: dict[tuple[bytes, tuple[int, ...]], Prepared] = {}  # by text and types

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool = False
    ) -> psycopg.Cursor[TupleRow]:
        """Run a statement on the single cursor."""
        cursor = self._only
        if cursor is None or cursor.closed:
            cursor = self._only = psycopg.RawCursor(self)
        if params is not None:
            query, names = numbered(query)
            if names:
                params = [params[name] for name in names]
        return cursor.execute(query, params, prepare=prepare, binary=binary)

    def fetched(self, statement: str, values: Mapping[str, object]) -> list[TupleRow]:
        """Run a prepared statement; return its rows.

        Raises:
            psycopg.OperationalError: the connection broke; it is closed.
            psycopg.Error: the statement failed.
        """
        try:
            return self._fetched(statement, values)
        except errors.InvalidSqlStatementName:
            # After a rollback psycopg deallocates all statements of the connection, including these.
            self._statements = {}
            if self.info.transaction_status != pq.TransactionStatus.IDLE:
                raise
            return self._fetched(statement, values)

    def _fetched(self, statement: str, values: Mapping[str, object]) -> list[TupleRow]:
        text, names = numbered(statement)
        arguments = [values[name] for name in names]
        dumped: Any = as_texts(arguments)
        types: tuple[int, ...] = ()
        formats = None
        if dumped is None:
            transformer = Transformer(self)
            dumped = transformer.dump_sequence(arguments, [PyFormat.AUTO] * len(arguments))
            types, formats = transformer.types or (), transformer.formats
        prepared = self._statements.get((text, types)) or self._newly_prepared(text, types)
        if prepared is None:
            return self.execute(statement, values).fetchall()
        result = self.pgconn.exec_prepared(prepared.name, dumped, formats)
        if result.status not in OK_STATUSES:
            self._raise_failed(result)
        return prepared.rows(self, result)

    def _newly_prepared(self, text: bytes, types: tuple[int, ...]) -> Prepared | None:
        """Prepare a statement on the server; None when the limit of prepared statements is reached."""
        if len(self._statements) >= PREPARED:
            return None
        prepared = Prepared(statement_name(text, types))
        result = self.pgconn.prepare(prepared.name, text, types)
        if result.error_field(pq.DiagnosticField.SQLSTATE) != DUPLICATE_PREPARED:
            self._raise_failed(result)
        elif self.info.transaction_status == pq.TransactionStatus.INERROR:
            self._statements[text, types] = prepared
            self._raise_failed(result)
        self._statements[text, types] = prepared
        return prepared

    def _raise_failed(self, result: Any) -> None:
        if result.status in OK_STATUSES:
            return
        if not result.error_field(pq.DiagnosticField.SQLSTATE):  # the error is not the server's
            raise errors.OperationalError(self.pgconn.error_message.decode(errors="replace").strip())
        error = errors.error_from_result(result)
        if ends_session(error):
            self.close()
        raise error


def fetch_prepared(
    db: psycopg.Connection[TupleRow], statement: str, values: Mapping[str, object]
) -> list[TupleRow]:
    """Run a statement with named placeholders on any connection; return its rows."""
    if isinstance(db, PreparedConnection):
        return db.fetched(statement, values)
    return db.execute(statement, values).fetchall()
