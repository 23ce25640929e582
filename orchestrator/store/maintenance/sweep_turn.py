"""The turn of a sweep, taken by the statement that also reads what there is to do: a sweep without work is a
single statement, and so is the attempt of another worker in the same interval.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

# Two sweeps that ask at the same moment may both get the turn, which costs only a sweep. The first line names
# the table: a log of statements shows it.
TAKE: Final = """WITH turn AS (INSERT INTO sweep_turn AS t (id, begun_at)
    SELECT 1, clock_timestamp() WHERE NOT EXISTS (
        SELECT 1 FROM sweep_turn WHERE begun_at > clock_timestamp() - make_interval(secs => %(apart)s))
    ON CONFLICT (id) DO UPDATE SET begun_at = excluded.begun_at
    RETURNING id
)
SELECT """

# Held until the end of the transaction in which the due work is queued.
TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(%(lock)s)"


def take(db: Db, conditions: Sequence[str], apart: float, default_timeout: float) -> Collection[str] | None:
    """Return the conditions that hold; None if another sweep began within the last `apart` seconds.

    A condition is the one of the statement that does the work, or wider, and is answered by the same index.
    `%(timeout)s` is `default_timeout`, the timeout of actions without a timeout.
    """
    statement = f"{TAKE}{', '.join(conditions)} FROM turn"
    rows = fetch_prepared(db, statement, {"apart": apart, "timeout": default_timeout})
    return (
        [condition for condition, holds in zip(conditions, rows[0], strict=True) if holds] if rows else None
    )


def lock(db: Db, key: int) -> bool:
    """Return whether no other sweep is queueing due work; if so, others are locked out until the transaction
    ends.
    """
    row = db.execute(TRY_LOCK, {"lock": key}).fetchone()
    return row is not None and bool(row[0])
