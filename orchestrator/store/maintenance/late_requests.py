"""Late requests in SQL: resources with requests that may still be carried out, after newer ones
(operations/adr/0025). A row per resource, written only when a request had no answer or a lease was lost.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import ObservationMessage
from orchestrator.store.observation.watched import AT_REST, VERSION
from orchestrator.store.tables.base import IS_SUSPECT

Db = Connection[TupleRow]

FIRST_SECONDS: Final = 5.0  # until the first observation; each pause is about twice the one before
LONGEST_SECONDS: Final = 40.0  # pause: so long is an older value in effect, at most
BUSY_SECONDS: Final = 5.0  # while an operation is in progress
RETRY_SECONDS: Final = 15.0  # after an observation without an answer
SUSPENDED_SECONDS: Final = 30.0  # while the stack is suspended: its resume does not end the pause
GIVE_UP_SECONDS: Final = 86_400.0  # after the last request, with a service that gives no answer

# Also of the other incarnations of the resource: a release of one of them lets another have what it needs.
RECORD: Final = """
INSERT INTO late_request AS l (resource_id, lost_at, until, due_at, pauses)
SELECT o.id, clock_timestamp(), clock_timestamp() + make_interval(secs => %(seconds)s),
    clock_timestamp() + make_interval(secs => %(first)s), %(pauses)s
FROM resource r JOIN resource o ON o.stack_id = r.stack_id AND o.name = r.name
WHERE r.id = %(resource_id)s
ORDER BY o.id
ON CONFLICT (resource_id) DO UPDATE SET lost_at = excluded.lost_at, until = greatest(l.until, excluded.until),
    due_at = least(l.due_at, excluded.due_at), pauses = l.pauses OR excluded.pauses
"""
HAS_DUE: Final = "EXISTS (SELECT 1 FROM late_request WHERE due_at <= now())"
DUE: Final = """
WITH l AS MATERIALIZED (
    SELECT resource_id FROM late_request WHERE due_at <= now()
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), sent AS (
    UPDATE late_request x SET due_at = now() + make_interval(secs => %(seconds)s)
    FROM l WHERE x.resource_id = l.resource_id RETURNING x.resource_id
)
SELECT sent.resource_id, coalesce(r.name, ''), coalesce(root.uuid::text, '')
FROM sent LEFT JOIN resource r ON r.id = sent.resource_id
LEFT JOIN stack s ON s.id = r.stack_id LEFT JOIN stack root ON root.id = s.root_id
"""
READ: Final = f"""
SELECT l.until <= clock_timestamp(),
    l.until + make_interval(secs => {GIVE_UP_SECONDS}) <= clock_timestamp(), l.pauses, l.marked,
    s.id IS NULL OR s.deleted_at IS NOT NULL, {AT_REST}, r.deposed OR r.action = 'DELETE', s.root_id
FROM late_request l LEFT JOIN resource r ON r.id = l.resource_id LEFT JOIN stack s ON s.id = r.stack_id
WHERE l.resource_id = %(resource_id)s
"""
END: Final = "DELETE FROM late_request WHERE resource_id = %(resource_id)s AND until <= clock_timestamp()"
FORGET: Final = "DELETE FROM late_request WHERE resource_id = %(resource_id)s"
_PAUSE: Final = f"""least({LONGEST_SECONDS}, greatest({FIRST_SECONDS},
        extract(epoch FROM clock_timestamp() - lost_at)::float8))"""
CONTINUE: Final = f"""
UPDATE late_request
SET due_at = clock_timestamp() + make_interval(secs => coalesce(%(seconds)s::float8, {_PAUSE}))
WHERE resource_id = %(resource_id)s
"""
MARK: Final = "UPDATE late_request SET marked = true WHERE resource_id = %(resource_id)s"
# The first deviation of a tree makes its other resources due: one update corrects them all.
GATHER: Final = """
WITH other AS MATERIALIZED (
    SELECT l.resource_id, l.marked
    FROM late_request l JOIN resource r ON r.id = l.resource_id JOIN stack s ON s.id = r.stack_id
    WHERE s.root_id = %(root_id)s AND l.resource_id <> %(resource_id)s
), hastened AS (
    UPDATE late_request x SET due_at = least(x.due_at, clock_timestamp()) FROM other o
    WHERE x.resource_id = o.resource_id AND NOT EXISTS (SELECT FROM other WHERE marked)
)
SELECT EXISTS (SELECT FROM other)
"""
# Resources that the next correction of a tree visits.
TAKE_MARKED: Final = f"""
WITH l AS MATERIALIZED (
    SELECT r.id, r.name, r.stack_id, {AT_REST} AND ({IS_SUSPECT} OR r.suspended) AS still
    FROM late_request l JOIN resource r ON r.id = l.resource_id JOIN stack s ON s.id = r.stack_id
    WHERE l.marked AND s.root_id = %(root_id)s
), taken AS (
    UPDATE late_request x SET marked = false FROM l WHERE x.resource_id = l.id
)
SELECT name, stack_id FROM l WHERE still ORDER BY id
"""
MARK_SUSPENDED: Final = f"""
UPDATE resource r SET suspended = true
WHERE r.id = %(resource_id)s AND {VERSION} = %(version)s AND {AT_REST} AND NOT r.suspended
"""


class LateRequest(NamedTuple):
    """A resource with late requests."""

    over: bool  # no request can arrive any more
    hopeless: bool  # and it could not be observed since, for a long time
    pauses: bool  # a suspend or a resume is among them
    marked: bool  # for a correction that has not begun
    gone: bool  # with its stack, or alone
    at_rest: bool
    deposed: bool
    root_id: int


def record(db: Db, resource_id: int, seconds: float, *, pauses: bool) -> None:
    """Record that a request for a resource may still be carried out, for so many seconds."""
    values = {"resource_id": resource_id, "seconds": seconds, "first": FIRST_SECONDS, "pauses": pauses}
    db.execute(RECORD, values)


def due(db: Db, seconds: float, limit: int) -> list[ObservationMessage]:
    """Return messages for the resources that are to be observed now; they are sent again in `seconds`."""
    rows = db.execute(DUE, {"seconds": seconds, "limit": limit}).fetchall()
    return [ObservationMessage(*row) for row in rows]


def read(db: Db, resource_id: int) -> LateRequest | None:
    """Return the late requests of a resource, None if it has none."""
    row = db.execute(READ, {"resource_id": resource_id}).fetchone()
    return None if row is None else LateRequest(*row)


def end(db: Db, resource_id: int) -> None:
    """End the observation of a resource, unless a request was recorded meanwhile."""
    db.execute(END, {"resource_id": resource_id})


def forget(db: Db, resource_id: int) -> None:
    """Remove the row of a resource that does not exist any more."""
    db.execute(FORGET, {"resource_id": resource_id})


def continue_(db: Db, resource_id: int, seconds: float | None = None) -> None:
    """Observe the resource again: in `seconds`, or after the next pause."""
    db.execute(CONTINUE, {"resource_id": resource_id, "seconds": seconds})


def mark(db: Db, resource_id: int) -> None:
    """Let the next correction of the tree visit a resource, whose row is marked."""
    db.execute(MARK, {"resource_id": resource_id})


def gather(db: Db, root_id: int, resource_id: int) -> bool:
    """Make the other resources of a tree due, unless one of them waits for a correction already; return
    whether there are others.
    """
    row = db.execute(GATHER, {"root_id": root_id, "resource_id": resource_id}).fetchone()
    return row is not None and row[0]


def take_marked(db: Db, root_id: int) -> list[tuple[str, int]]:
    """Return names and stacks of the resources that a correction visits which begins now."""
    return db.execute(TAKE_MARKED, {"root_id": root_id}).fetchall()


def mark_suspended(db: Db, resource_id: int, version: int) -> Collection[int]:
    """Record that an object is suspended, unless its row was changed since: the next update resumes it."""
    changed = db.execute(MARK_SUSPENDED, {"resource_id": resource_id, "version": version}).rowcount
    return [resource_id] if changed else []
