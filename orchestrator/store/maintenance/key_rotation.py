"""Encrypted columns in SQL, for the rotation of keys: read in slices, replaced only while unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from psycopg import Connection, errors, sql
from psycopg.rows import TupleRow

Db = Connection[TupleRow]
SealedValue = tuple[int, bytes]  # id of the row, encrypted value

SEALED_COLUMNS: Final = (
    ("resource", "sealed"),
    ("revision", "sealed"),
    ("signal", "details"),
    ("access", "secret"),
    ("key_pair", "secret"),
    ("revision", "adopted"),
    ("resource_snapshot", "sealed"),
    ("resource_snapshot", "kept"),
    ("stack", "credentials"),
    ("credential", "sealed"),
    ("stack_user", "sealed"),
    ("software_config", "sealed"),
    ("software_deployment", "sealed"),
    ("software_agent", "sealed"),
    ("webhook", "sealed"),
)

READ_SLICE: Final = sql.SQL("""
SELECT id, {column} FROM {table} WHERE id > %(after)s AND {column} IS NOT NULL ORDER BY id LIMIT %(limit)s
""")
READ_AGAIN: Final = sql.SQL("""
SELECT id, {column} FROM {table} WHERE id = ANY (%(ids)s) AND {column} IS NOT NULL ORDER BY id
""")
REPLACE_UNCHANGED: Final = sql.SQL("""
UPDATE {table} t SET {column} = new.value
FROM unnest(%(ids)s::bigint[], %(old)s::bytea[], %(new)s::bytea[]) AS new (id, old, value)
WHERE t.id = new.id AND t.{column} = new.old
""")


def read_slice(db: Db, table: str, column: str, after: int, limit: int) -> list[SealedValue]:
    """Return the values of at most `limit` rows with ids above `after`, in their order."""
    return db.execute(_of(READ_SLICE, table, column), {"after": after, "limit": limit}).fetchall()


def read_again(db: Db, table: str, column: str, ids: Sequence[int]) -> list[SealedValue]:
    """Return the values of these rows as they are now."""
    return db.execute(_of(READ_AGAIN, table, column), {"ids": list(ids)}).fetchall()


def replace_unchanged(db: Db, table: str, column: str, rows: Sequence[tuple[int, bytes, bytes]]) -> None:
    """Replace the old value by the new value in each row that still has the old value.

    After a deadlock (a check locked two of the rows in another order) nothing is written: read again.
    """
    ids, old, new = (list(part) for part in zip(*rows, strict=True))
    try:
        db.execute(_of(REPLACE_UNCHANGED, table, column), {"ids": ids, "old": old, "new": new})
    except errors.DeadlockDetected:
        return


def _of(statement: sql.SQL, table: str, column: str) -> sql.Composed:
    return statement.format(table=sql.Identifier(table), column=sql.Identifier(column))
