"""Where the objects of the cloud are kept, so that it continues after a restart or a kill of its process."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

import orjson

from simulated_openstack.json_types import JsonObject

Changes = Mapping[tuple[str, str], JsonObject | None]  # by kind and id; None: the object was removed

# A commit does not await the disk: the last changes may be lost with the machine, not with the process.
SETUP: Final = (
    "PRAGMA locking_mode = EXCLUSIVE",  # a second cloud with the same file fails
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    """
    CREATE TABLE IF NOT EXISTS object (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (kind, id)
    )
    """,
)
READ: Final = "SELECT kind, body FROM object ORDER BY number"
WRITE: Final = """
    INSERT INTO object (kind, id, body) VALUES (?, ?, ?)
    ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body
"""
REMOVE: Final = "DELETE FROM object WHERE kind = ? AND id = ?"


class Storage(Protocol):
    """The stored objects, by kind and id."""

    def load(self) -> Iterable[tuple[str, JsonObject]]:
        """Return the kind and the content of all objects, oldest first."""

    def write(self, changes: Changes) -> None:
        """Write changed objects, all or none."""

    def close(self) -> None:
        """Release the storage."""


class FileStorage:
    """Objects in an SQLite file that only its owner can read: it contains passwords and tokens."""

    def __init__(self, path: Path) -> None:
        """Open the file; create it if it does not exist.

        Raises:
            OSError: the file cannot be created.
            sqlite3.Error: it is no SQLite file, or another process uses it.
        """
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._db = sqlite3.connect(path, check_same_thread=False)  # opened and used in turn, never at once
        for statement in SETUP:
            self._db.execute(statement)

    def load(self) -> Iterable[tuple[str, JsonObject]]:
        """Return the kind and the content of all objects, oldest first."""
        return [(kind, orjson.loads(body)) for kind, body in self._db.execute(READ)]

    def write(self, changes: Changes) -> None:
        """Write changed objects, all or none.

        Raises:
            sqlite3.Error: nothing was written.
        """
        with self._db:
            self._db.executemany(REMOVE, [key for key, row in changes.items() if row is None])
            changed = ((*key, orjson.dumps(row)) for key, row in changes.items() if row is not None)
            self._db.executemany(WRITE, changed)

    def close(self) -> None:
        """Close the file."""
        self._db.close()
