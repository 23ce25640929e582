"""Advisory locks of a session: held until unlocked or until the connection ends."""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

TRY_LOCK: Final = "SELECT pg_try_advisory_lock(%(key)s)"
UNLOCK: Final = "SELECT pg_advisory_unlock(%(key)s)"


def try_lock(db: Connection[TupleRow], key: int) -> bool:
    """Take a lock unless another session holds it; return whether it was taken."""
    row = db.execute(TRY_LOCK, {"key": key}).fetchone()
    return row is not None and bool(row[0])


def unlock(db: Connection[TupleRow], key: int) -> None:
    """Release a lock."""
    db.execute(UNLOCK, {"key": key})
