"""Seal everything again with the newest key, in slices, beside a working server.

What the newest key sealed is passed over, so a run that was interrupted is simply run again.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from psycopg import sql

from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database

SEALED = (
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
SLICE = 500  # rows read at a time, and locked together for as long as one statement takes
Row = tuple[int, bytes]


def rotate_keys(database: Database, cipher: Cipher) -> Iterator[tuple[str, int, int]]:
    """Seal every sealed column again; yield its name, how many values changed, how many needed nothing.

    Raises:
        Misconfigured: a value opens with no configured key; those before it are done.
    """
    with database.connect(name="orchestrator rotate-keys") as connection:
        for table, column in SEALED:
            changed = seen = last_id = 0
            while rows := _slice(connection, table, column, last_id):
                seen += len(rows)
                last_id = rows[-1][0]
                old = [row for row in rows if not cipher.is_newest(row[1])]
                changed += len(old)
                while old:  # again for those that somebody else wrote meanwhile
                    _replace(connection, table, column, [(id_, was, cipher.rotate(was)) for id_, was in old])
                    now = _present(connection, table, column, [id_ for id_, _ in old])
                    old = [row for row in now if not cipher.is_newest(row[1])]
            yield f"{table}.{column}", changed, seen - changed


def _slice(connection: psycopg.Connection, table: str, column: str, last_id: int) -> list[Row]:
    query = sql.SQL(
        "SELECT id, {column} FROM {table} WHERE id > %s AND {column} IS NOT NULL ORDER BY id LIMIT %s"
    )
    return connection.execute(_named(query, table, column), (last_id, SLICE)).fetchall()


def _present(connection: psycopg.Connection, table: str, column: str, ids: list[int]) -> list[Row]:
    query = sql.SQL(
        "SELECT id, {column} FROM {table} WHERE id = ANY (%s) AND {column} IS NOT NULL ORDER BY id"
    )
    return connection.execute(_named(query, table, column), (ids,)).fetchall()


def _replace(
    connection: psycopg.Connection, table: str, column: str, rows: list[tuple[int, bytes, bytes]]
) -> None:
    """Write the new values where the old ones still stand."""
    query = sql.SQL("""
        UPDATE {table} t SET {column} = new.value
        FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS new (id, was, value)
        WHERE t.id = new.id AND t.{column} = new.was""")
    ids, was, value = (list(part) for part in zip(*rows, strict=True))
    try:
        connection.execute(_named(query, table, column), (ids, was, value))
    except psycopg.errors.DeadlockDetected:
        return  # a check took two of the rows in another order; whoever calls looks again


def _named(query: sql.SQL, table: str, column: str) -> sql.Composed:
    return query.format(table=sql.Identifier(table), column=sql.Identifier(column))
