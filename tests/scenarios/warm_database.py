"""A shared database for consecutive tests, with open connections: the catalogue cache and the plans of a
backend catalogue and planned costs more than most tests do.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import sweep_queries
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


def plan_once(connection: psycopg.Connection[Any]) -> None:
    """Keep the plans of a sweep's statements.

    A worker plans them again for each sweep, because tables grow. In a small database that is nine tenths of
    the time of a sweep.
    """
    connection.prepare_threshold = 0
    connection.execute("SET plan_cache_mode = force_generic_plan")


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
        self._sweeps: psycopg.Connection[Any] | None = None

    def sweep_connection(self) -> psycopg.Connection[Any]:
        """Return the connection for the sweeps of all worlds, with the plans of their statements."""
        kept = self._sweeps
        if kept is None or kept.closed or kept.info.transaction_status != TransactionStatus.IDLE:
            self._close_sweeps()
            kept = self._sweeps = self.database.connect(hot=True, replan=True, name="orchestrator-sweep")
            sweep_queries.bound_transactions(kept)
            plan_once(kept)
        return kept

    def empty(self) -> None:
        """Remove every row and reset the sequences, as in a new database."""
        try:
            self._db.execute(self._delete)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            self._db.execute(OTHERS)
            self._close_sweeps()
            self.database = Database(self.url, NAME)
            self._db.execute(self._delete)
        self._db.execute(COUNTERS)

    def close(self) -> None:
        """Let go of all connections except of threads that have ended."""
        self.database.engine.dispose()
        self._close_sweeps()
        self._db.close()

    def _close_sweeps(self) -> None:
        if self._sweeps is not None:
            self._sweeps.close()


_kept: dict[str, Kept] = {}


def keep(url: str) -> Kept:
    """Keep a database: worlds at this URL share its connections."""
    return _kept.setdefault(url, Kept(url))


def kept_at(url: str) -> Kept | None:
    """Return the database that is kept at a URL, None where none is."""
    return _kept.get(url)
