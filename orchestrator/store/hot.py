"""The connections checks are made on: statements known beforehand, run thousands of times a second.

What psycopg does for a statement costs a check as much as all rules of the engine together. So the statements
of a visit are prepared once and run as libpq has it, their values dumped and loaded by psycopg as ever. All
other statements go through its cursors, which prepare nothing here: after a ROLLBACK psycopg has the server
forget whatever was prepared in the session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors, pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.rows import TupleRow

PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|([sb])|%)")
PREPARED = 400  # statements of one connection; there are some sixty, of a few types of values each
GAVE_ROWS = frozenset({pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK})


@lru_cache(maxsize=512)
def numbered(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement with `$1` for its placeholders, and their names in that order, none of plain `%s`.

    psycopg does so itself, but of a text longer than 4,096 characters it does it anew each time.
    """
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name, plain = found.groups()
        if name is None and plain is None:
            return "%"
        return f"${numbers.setdefault(name or f' {len(numbers)}', len(numbers) + 1)}"

    text = PLACEHOLDER.sub(number, statement).encode()
    return text, tuple(name for name in numbers if name[0] != " ")


class HotConnection(psycopg.Connection[TupleRow]):
    """A connection in autocommit with one cursor: rows are fetched before the next statement is run."""

    _only: psycopg.Cursor[TupleRow] | None = None
    _names: dict[tuple[bytes, tuple[int, ...]], bytes] | None = None
    _given = 0  # names so far; none is given twice

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool = False
    ) -> psycopg.Cursor[TupleRow]:
        """Run a statement on the one cursor."""
        cursor = self._only
        if cursor is None or cursor.closed:
            cursor = self._only = psycopg.RawCursor(self)
        if params is not None:
            query, names = numbered(query)
            if names:
                params = [params[name] for name in names]
        return cursor.execute(query, params, prepare=prepare, binary=binary)

    def fetched(self, statement: str, values: Mapping[str, Any]) -> list[TupleRow]:
        """Run a statement of a visit; return its rows.

        Raises:
            psycopg.OperationalError: the connection broke; it is closed then.
            psycopg.Error: the statement failed.
        """
        try:
            return self._fetched(statement, values)
        except errors.InvalidSqlStatementName:
            # After a transaction was rolled back psycopg has all statements of the connection deallocated,
            # ours with its own.
            self._names = None
            if self.info.transaction_status != pq.TransactionStatus.IDLE:
                raise
            return self._fetched(statement, values)

    def _fetched(self, statement: str, values: Mapping[str, Any]) -> list[TupleRow]:
        text, names = numbered(statement)
        transformer = Transformer(self)
        given = [values[name] for name in names]
        dumped = transformer.dump_sequence(given, [PyFormat.AUTO] * len(given))
        name = self._prepared_name(text, transformer.types or ())
        if name is None:
            return self.execute(statement, values).fetchall()
        result = self.pgconn.exec_prepared(name, dumped, transformer.formats)  # type: ignore[arg-type]  # None: NULL
        self._raise_failed(result)
        transformer.set_pgresult(result)
        return transformer.load_rows(0, result.ntuples, tuple)

    def _prepared_name(self, text: bytes, types: tuple[int, ...]) -> bytes | None:
        """Return the name under which a statement is prepared, None when there are too many already."""
        names = self._names
        if names is None:
            names = self._names = {}
        name = names.get((text, types))
        if name is None and len(names) < PREPARED:
            name = b"visit_%d" % self._given
            self._given += 1
            self._raise_failed(self.pgconn.prepare(name, text, types))
            names[text, types] = name
        return name

    def _raise_failed(self, result: Any) -> None:
        if result.status in GAVE_ROWS:
            return
        if not result.error_field(pq.DiagnosticField.SQLSTATE):  # the server did not say it
            raise errors.OperationalError(self.pgconn.error_message.decode(errors="replace").strip())
        raise errors.error_from_result(result)


def fetched(db: psycopg.Connection[TupleRow], statement: str, values: Mapping[str, Any]) -> list[TupleRow]:
    """Run a statement with named placeholders on any connection; return its rows."""
    if isinstance(db, HotConnection):
        return db.fetched(statement, values)
    return db.execute(statement, values).fetchall()
