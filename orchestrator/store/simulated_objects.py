"""The objects of the simulated cloud, in a schema of their own.

The schema is created by the first use; no migration creates it, because most installations have no simulated
cloud. Commits do not await the disk: the last changes may be lost with the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson
import psycopg
from psycopg.rows import TupleRow

from orchestrator.json_types import JsonObject
from orchestrator.store.connections.database import UNREACHABLE, Database

PATIENCE_SECONDS: Final = 20.0  # for a restart of the server
CREATE: Final = (
    "CREATE SCHEMA IF NOT EXISTS simulated",
    """
    CREATE TABLE IF NOT EXISTS simulated.object (
        kind text NOT NULL,
        id text NOT NULL,
        seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
        body json NOT NULL,
        PRIMARY KEY (kind, id)
    )
    """,
)
READ: Final = "SELECT kind, body FROM simulated.object ORDER BY seq"
WRITE: Final = """
    INSERT INTO simulated.object (kind, id, body) VALUES (%s, %s, %s)
    ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body
"""
REMOVE: Final = "DELETE FROM simulated.object WHERE kind = %s AND id = %s"


class SimulatedObjects:
    """The stored objects, by kind and id."""

    def __init__(self, url: str) -> None:
        """Connect to the database; create the schema if it does not exist.

        Raises:
            psycopg.Error: the server is unreachable, or the role must not create a schema.
        """
        self._database = Database(url, "orchestrator-simulated-cloud", patience_seconds=PATIENCE_SECONDS)
        self._db = self._connect()

    def load(self) -> list[tuple[str, JsonObject]]:
        """Return the kind and the content of all objects, oldest first."""
        return self._db.execute(READ).fetchall()

    def write(self, changes: Mapping[tuple[str, str], JsonObject | None]) -> None:
        """Write changed objects in one transaction; None: the object was removed.

        Raises:
            psycopg.Error: nothing was written.
        """
        try:
            self._write(changes)
        except UNREACHABLE:  # the server was restarted; the transaction can be repeated
            self._db.close()
            self._db = self._connect()
            self._write(changes)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _write(self, changes: Mapping[tuple[str, str], JsonObject | None]) -> None:
        changed = [(*key, orjson.dumps(row).decode()) for key, row in changes.items() if row is not None]
        removed = [key for key, row in changes.items() if row is None]
        with self._db.transaction(), self._db.cursor() as cursor:
            cursor.executemany(WRITE, changed)
            cursor.executemany(REMOVE, removed)

    def _connect(self) -> psycopg.Connection[TupleRow]:
        db = self._database.connect(durable=False)
        for statement in CREATE:
            db.execute(statement)
        return db
