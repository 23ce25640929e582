"""Ended sessions and tokens in SQL, by the SHA-256 of the cookie or token."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

ADD: Final = """
INSERT INTO ended_session (digest, ends_at)
SELECT d.digest, %(ends_at)s::timestamptz FROM unnest(%(digests)s::bytea[]) AS d (digest)
ON CONFLICT (digest) DO NOTHING
"""
FIND: Final = "SELECT e.digest FROM ended_session e WHERE e.digest = ANY(%(digests)s::bytea[])"


def add(database: Database, digests: Sequence[bytes], ends_at: dt.datetime) -> None:
    """Record ended sessions or tokens; `ends_at` is the time after which they are invalid by themselves."""
    with database.borrow() as db:
        db.execute(ADD, {"digests": list(digests), "ends_at": ends_at})


def any_ended(db: Db, requests: Sequence[Sequence[bytes]]) -> list[bool]:
    """Return for each group of digests whether any of them is recorded."""
    texts = ",".join(rf'"\\x{digest.hex()}"' for digests in requests for digest in digests)
    ended = {bytes(row[0]) for row in fetch_prepared(db, FIND, {"digests": f"{{{texts}}}"})}
    return [not ended.isdisjoint(digests) for digests in requests]
