"""A shared database for consecutive tests, with open connections: the catalogue cache and the plans of a
backend catalogue and planned costs more than most tests do.
"""

from __future__ import annotations

import psycopg
from psycopg import errors

from orchestrator.store.connections.database import Database
from tests.template_cluster import as_administrator

NAME = "orchestrator-test"

TABLES = """
SELECT string_agg(format('DELETE FROM %I', tablename), ';') FROM pg_tables
WHERE schemaname = 'public' AND tablename <> 'alembic_version'
"""
COUNTERS = """
SELECT setval(format('%I', sequencename)::regclass, 1, false) FROM pg_sequences
WHERE schemaname = 'public' AND last_value IS NOT NULL
"""
OTHERS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class Kept:
    """A database with the schema, and how everybody reaches it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(url, NAME)
        # References to deleted rows are not checked. An open transaction is not waited for.
        self._db = psycopg.connect(
            as_administrator(url),
            autocommit=True,
            options="-c session_replication_role=replica -c lock_timeout=500",
        )
        [self._delete] = self._db.execute(TABLES).fetchone() or [""]

    def empty(self) -> None:
        """Remove every row and reset the sequences, as in a new database."""
        try:
            self._db.execute(self._delete)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            self._db.execute(OTHERS)
            self.database = Database(self.url, NAME)
            self._db.execute(self._delete)
        self._db.execute(COUNTERS)

    def close(self) -> None:
        """Let go of all connections but those of threads that have ended."""
        self.database.engine.dispose()
        self._db.close()


_kept: dict[str, Kept] = {}


def keep(url: str) -> Kept:
    """Keep a database: worlds at this URL share its connections."""
    return _kept.setdefault(url, Kept(url))


def kept_at(url: str) -> Database | None:
    """Return the database that is kept at a URL, None where none is."""
    result = _kept.get(url)
    return None if result is None else result.database
