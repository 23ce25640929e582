"""Counters of the database: rows touched, bytes stored, progress of a stack. Also empties the database.

Rows are counted by `pg_stat_user_tables`, for all processes together: the embedded PostgreSQL has no
pg_stat_statements. A backend reports its counts at most FLUSH_SECONDS after it became idle, so counting takes
that long before and after a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors

Connection = psycopg.Connection[tuple[Any, ...]]

FLUSH_SECONDS = 11.0

ROWS = """
SELECT relname, coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0), n_tup_ins + n_tup_upd, n_tup_del
FROM pg_stat_user_tables WHERE schemaname = 'public'
"""

INDEXES = """
SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = 'public'
"""

# Pages of the tables and their indexes; the template is stored once, independent of the engine.
BYTES = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""

STATES = """
SELECT kind || ' ' || state, count(*) FROM graph_node n JOIN stack s ON s.id = n.stack_id
WHERE s.uuid = %s::uuid AND n.traversal = s.traversal GROUP BY 1 ORDER BY 1
"""

TABLES = """
SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables
WHERE schemaname = 'public' AND tablename NOT IN ('alembic_version', 'api_token')
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows read, written and removed so far, by table, and index entries read, by index.

    Removed rows are counted separately: the nodes of finished traversals are removed by the next update.
    """

    read: dict[str, int]
    written: dict[str, int]
    removed: dict[str, int]
    entries: dict[str, int]

    def since(self, before: Rows) -> Rows:
        """Return the difference to `before`."""
        return Rows(
            _increase(before.read, self.read),
            _increase(before.written, self.written),
            _increase(before.removed, self.removed),
            _increase(before.entries, self.entries),
        )


def _increase(before: dict[str, int], now: dict[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in now.items()}


def rows(db: Connection) -> Rows:
    """Return the counters as they are."""
    result = db.execute(ROWS).fetchall()
    return Rows(
        {table: read for table, read, _, _ in result},
        {table: written for table, _, written, _ in result},
        {table: removed for table, _, _, removed in result},
        dict(db.execute(INDEXES).fetchall()),
    )


def bytes_held(db: Connection) -> int:
    """Return the size of all tables with their indexes."""
    result = db.execute(BYTES).fetchone()
    assert result is not None
    return int(result[0])


def progress(db: Connection, uuid: str) -> str:
    """Return how many nodes of a stack are in which state, for people."""
    return ", ".join(f"{count} {state}" for state, count in db.execute(STATES, (uuid,)).fetchall())


def empty(db: Connection) -> None:
    """Forget every stack, so that each measurement begins with the same tables; ids go on growing."""
    result = db.execute(TABLES).fetchone()
    assert result is not None
    while True:
        try:
            db.execute(f"TRUNCATE {result[0]}")
            break
        except errors.DeadlockDetected:
            continue
    # write out pages dirtied by earlier runs, so that the next run does not pay for them
    db.execute("CHECKPOINT")
