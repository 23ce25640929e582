"""A shared database for consecutive tests, with open connections: the catalogue cache and the plans of a
backend catalogue and planned costs more than most tests do.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from orchestrator.store.connections.database import Database
from tests.template_cluster import as_administrator

NAME = "orchestrator-test"

SWEEP = "orchestrator-sweep"  # the name of the connections of sweeps

TABLES = """
SELECT string_agg(format('DELETE FROM %I;', tablename), ' ') FROM pg_tables
WHERE schemaname = 'public' AND tablename <> 'alembic_version'
"""
# A function, because its statements are planned once for a session.
EMPTYING = """
CREATE FUNCTION pg_temp.empty_tables() RETURNS void LANGUAGE plpgsql AS $$BEGIN {} END$$
"""
EMPTY = "SELECT pg_temp.empty_tables()"
COUNTERS = """
SELECT setval(format('%I', sequencename)::regclass, 1, false) FROM pg_sequences
WHERE schemaname = 'public' AND last_value IS NOT NULL
"""
OTHERS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class WarmDatabase(Database):
    """A database with few rows: no connection plans its statements again. It keeps connections of sweeps."""

    def __init__(self, url: str) -> None:
        super().__init__(url, NAME)
        self._sweeps: list[psycopg.Connection[Any]] = []

    def connect(
        self, *, durable: bool = True, hot: bool = False, replan: bool = False, name: str = ""
    ) -> psycopg.Connection[Any]:
        if name == SWEEP and self._sweeps:
            return self._sweeps.pop()
        return super().connect(durable=durable, hot=hot, name=name)

    def keep_sweep(self, connection: psycopg.Connection[Any] | None) -> None:
        """Take the connection of a sweep that has ended."""
        if connection is None or connection.closed:
            return
        if connection.info.transaction_status == TransactionStatus.IDLE:
            self._sweeps.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close all connections but those of threads that have ended."""
        self.engine.dispose()
        while self._sweeps:
            self._sweeps.pop().close()


class Kept:
    """A database with the schema, and how everybody reaches it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = WarmDatabase(url)
        # References to deleted rows are not checked. An open transaction is not waited for.
        self._db = psycopg.connect(
            as_administrator(url),
            autocommit=True,
            options="-c session_replication_role=replica -c lock_timeout=500",
        )
        [deletes] = self._db.execute(TABLES).fetchone() or [""]
        self._db.execute(EMPTYING.format(deletes))

    def empty(self) -> None:
        """Remove every row and reset the sequences, as in a new database."""
        try:
            self._db.execute(EMPTY)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            self._db.execute(OTHERS)
            self.database = WarmDatabase(self.url)
            self._db.execute(EMPTY)
        self._db.execute(COUNTERS)

    def close(self) -> None:
        """Let go of all connections but those of threads that have ended."""
        self.database.close()
        self._db.close()


_kept: dict[str, Kept] = {}


def keep(url: str) -> Kept:
    """Keep a database: worlds at this URL share its connections."""
    return _kept.setdefault(url, Kept(url))


def kept_at(url: str) -> WarmDatabase | None:
    """Return the database that is kept at a URL, None where none is."""
    result = _kept.get(url)
    return None if result is None else result.database
