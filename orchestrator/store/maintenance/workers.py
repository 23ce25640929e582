"""The running worker processes, by their reports. Times are the database's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from orchestrator.store.connections.database import Database

REPORT = """
INSERT INTO worker (uuid, name, hostname, queues, report_interval)
VALUES (%(uuid)s, %(name)s, %(hostname)s, %(queues)s, %(report_interval)s)
ON CONFLICT (uuid) DO UPDATE SET updated_at = now()
"""
# A killed worker is listed as down for a while; each report deletes old rows.
DELETE_STALE = "DELETE FROM worker WHERE updated_at < now() - %(seconds)s * interval '1 second'"
REMOVE = "DELETE FROM worker WHERE uuid = %(uuid)s"
LIST = """
SELECT uuid, name, hostname, queues, report_interval, created_at, updated_at,
    updated_at > now() - 2 * report_interval * interval '1 second' AS is_up
FROM worker ORDER BY hostname, name, created_at, uuid
"""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A run of a worker process."""

    uuid: UUID
    name: str
    hostname: str
    queues: str
    report_interval: int  # seconds
    created_at: dt.datetime
    updated_at: dt.datetime
    is_up: bool


def report(
    database: Database,
    uuid: UUID,
    name: str,
    hostname: str,
    queues: Sequence[str],
    *,
    interval: int,
    kept: int,
) -> None:
    """Record that a worker is running, and delete workers that have been silent for `kept` seconds."""
    values = {"uuid": uuid, "name": name, "hostname": hostname, "queues": ",".join(queues)}
    with database.connect() as db:  # too rare to keep a connection
        db.execute(DELETE_STALE, {"seconds": kept})
        db.execute(REPORT, {**values, "report_interval": interval})


def remove(database: Database, uuid: UUID) -> None:
    """Delete a worker that ends."""
    with database.connect() as db:
        db.execute(REMOVE, {"uuid": uuid})


def list_workers(database: Database) -> list[WorkerRow]:
    """Return all workers, by host and name."""
    with database.borrow() as db, db.cursor(row_factory=class_row(WorkerRow)) as cursor:
        return cursor.execute(LIST).fetchall()
