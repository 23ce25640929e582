"""Webhooks in SQL: management, due webhooks, delivery, and its outcome.

A webhook without `due_at` is `idle`: all its events are delivered. Writers of events do not know webhooks.
The sweep marks the webhooks that new events concern as due (MARK_DUE), a sender claims due webhooks (CLAIM),
and ends with a statement that its lease guards. `has_new_events` records new events between claim and end.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow, class_row

from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.events.stream import Position

Db = Connection[TupleRow]


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook as its project sees it; encrypted values stay encrypted."""

    id: int
    uuid: uuid_.UUID
    stack_uuid: uuid_.UUID | None
    stack_name: str | None
    nested_depth: int
    only_stacks: bool
    shown_url: str
    sealed: bytes
    state: str
    sequence: str
    tries: int
    delivered: int
    delivered_at: dt.datetime | None
    failing_since: dt.datetime | None
    last_error: str | None
    due_at: dt.datetime | None
    created_by: str
    created_at: dt.datetime
    of_environment: bool


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed webhook, and the position to deliver from."""

    id: int
    uuid: uuid_.UUID
    project_id: str
    stack_uuid: uuid_.UUID | None
    stack_name: str | None
    nested_depth: int
    only_stacks: bool
    sealed: bytes
    xid: int
    event_id: int
    tries: int

    @property
    def position(self) -> Position:
        """The position of the last delivered event."""
        return Position(self.xid, self.event_id)


SELECT: Final = """
SELECT w.id, w.uuid, s.uuid AS stack_uuid, s.name AS stack_name, w.nested_depth, w.only_stacks, w.shown_url,
    w.sealed, w.state, w.xid::text || '.' || w.event_id AS sequence, w.tries, w.delivered, w.delivered_at,
    w.failing_since, w.last_error, w.due_at, w.created_by, w.created_at,
    w.of_environment
FROM webhook w LEFT JOIN stack s ON s.id = w.stack_id
WHERE w.project_id = %(project_id)s
"""
AFTER: Final = """ AND w.id > coalesce((
    SELECT m.id FROM webhook m WHERE m.uuid::text = %(marker)s AND m.project_id = %(project_id)s), 0)"""
INSERT: Final = """
INSERT INTO webhook (uuid, project_id, stack_id, nested_depth, only_stacks, shown_url, sealed, xid, event_id,
    created_by, slow)
VALUES (%(uuid)s, %(project_id)s, %(stack_id)s, %(nested_depth)s, %(only_stacks)s, %(shown_url)s, %(sealed)s,
    %(xid)s::text::xid8, %(event_id)s, %(created_by)s, true)  -- until the first successful delivery
"""
# Webhooks that count for the quota of a project.
COUNT: Final = """
SELECT count(*) FROM webhook w LEFT JOIN stack s ON s.id = w.stack_id
WHERE w.project_id = %(project_id)s AND w.state <> 'off'
    AND NOT (w.of_environment AND s.deleted_at IS NOT NULL)
"""
DELETE: Final = "DELETE FROM webhook WHERE project_id = %(project_id)s AND uuid = %(uuid)s RETURNING id"
REARM: Final = """
UPDATE webhook SET state = 'active', tries = 0, failing_since = NULL, last_error = NULL, due_at = now(),
    xid = coalesce(%(xid)s::text::xid8, xid), event_id = coalesce(%(event_id)s, event_id),
    lease = NULL, leased_until = NULL
WHERE project_id = %(project_id)s AND uuid = %(uuid)s AND state <> 'off' RETURNING id
"""

HAS_ACTIVE: Final = "EXISTS (SELECT 1 FROM webhook WHERE state = 'active')"
ANY_ACTIVE: Final = f"SELECT {HAS_ACTIVE}"
OLDEST_OPEN_TRANSACTION: Final = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"
MARK_ALL_DUE: Final = (
    "UPDATE webhook SET has_new_events = true, due_at = coalesce(due_at, now()) WHERE state = 'active'"
)
# An idle webhook has received all events up to the last marking: events before that need no check.
MARK_DUE: Final = """
WITH fresh AS MATERIALIZED (
    SELECT DISTINCT e.stack_id FROM event e
    WHERE e.xid >= %(first)s::text::xid8 AND e.xid < %(next)s::text::xid8
), concerned AS MATERIALIZED (
    SELECT s.id, s.project_id, s.root_id, s.depth FROM fresh f CROSS JOIN LATERAL (
        SELECT k.* FROM stack k WHERE k.id = f.stack_id OFFSET 0) s
)
UPDATE webhook w
SET has_new_events = true, due_at = coalesce(w.due_at, now()),
    xid = CASE WHEN w.due_at IS NULL THEN greatest(w.xid, %(first)s::text::xid8) ELSE w.xid END,
    event_id = CASE WHEN w.due_at IS NULL AND w.xid < %(first)s::text::xid8 THEN 0 ELSE w.event_id END
WHERE w.state = 'active' AND EXISTS (
    SELECT 1 FROM concerned c WHERE c.project_id = w.project_id AND CASE
        WHEN w.stack_id IS NULL THEN c.depth <= w.nested_depth
        WHEN w.nested_depth > 0 THEN c.root_id = (SELECT o.root_id FROM stack o WHERE o.id = w.stack_id)
        ELSE c.id = w.stack_id END)
"""
# The n-th due webhook of a project with m deliveries in progress has rank n + m: low ranks are claimed first,
# and ranks above the project's share are not claimed.
ANY_DUE: Final = "SELECT EXISTS (SELECT 1 FROM webhook WHERE state = 'active' AND due_at <= now())"
CLAIM: Final = """
WITH busy AS (
    SELECT * FROM unnest(%(projects)s::text[], %(deliveries)s::integer[]) AS b (project_id, deliveries)
), due AS MATERIALIZED (
    SELECT x.id, x.due_at, coalesce(b.deliveries, 0)
        + row_number() OVER (PARTITION BY x.project_id ORDER BY x.due_at) AS rank
    FROM webhook x LEFT JOIN busy b USING (project_id)
    WHERE x.state = 'active' AND x.due_at <= now() AND (x.slow OR x.tries > 0) = %(slow)s
        AND (x.leased_until IS NULL OR x.leased_until < clock_timestamp())
), w AS (
    UPDATE webhook w
    SET has_new_events = false, lease = %(lease)s,
        leased_until = clock_timestamp() + make_interval(secs => %(seconds)s::float8)
    WHERE w.id = ANY (ARRAY(
        SELECT x.id FROM due JOIN webhook x ON x.id = due.id
        WHERE due.rank <= %(share)s AND x.state = 'active' AND x.due_at <= now()
            AND (x.leased_until IS NULL OR x.leased_until < clock_timestamp())
        ORDER BY due.rank, due.due_at FOR UPDATE OF x SKIP LOCKED LIMIT %(limit)s))
    RETURNING w.*
)
SELECT w.id, w.uuid, w.project_id, s.uuid AS stack_uuid, s.name AS stack_name, w.nested_depth, w.only_stacks,
    w.sealed, w.xid::text::bigint AS xid, w.event_id, w.tries
FROM w LEFT JOIN stack s ON s.id = w.stack_id
"""
RENEW: Final = """
UPDATE webhook SET xid = %(xid)s::text::xid8, event_id = %(event_id)s, delivered = delivered + %(count)s,
    delivered_at = CASE WHEN %(count)s > 0 THEN now() ELSE delivered_at END, tries = 0, failing_since = NULL,
    last_error = NULL, slow = %(slow)s,
    leased_until = clock_timestamp() + make_interval(secs => %(seconds)s::float8)
WHERE id = %(id)s AND lease = %(lease)s AND state = 'active' RETURNING id
"""
RELEASE: Final = """
UPDATE webhook
SET lease = NULL, leased_until = NULL, due_at = CASE WHEN has_new_events OR %(more)s THEN now() END
WHERE id = %(id)s AND lease = %(lease)s
"""
FAILED: Final = """
UPDATE webhook SET tries = tries + 1, failing_since = coalesce(failing_since, now()), last_error = %(error)s,
    state = CASE WHEN tries + 1 >= %(most)s THEN 'dead' ELSE state END, slow = %(slow)s,
    due_at = now() + make_interval(secs => %(pause)s::float8), lease = NULL, leased_until = NULL
WHERE id = %(id)s AND lease = %(lease)s RETURNING state
"""


def add(db: Db, values: dict[str, object]) -> None:
    """Insert a webhook."""
    db.execute(INSERT, values)


def count(db: Db, project_id: str) -> int:
    """Return the number of webhooks of a project, except for sinks of deleted stacks and `off` sinks."""
    row = db.execute(COUNT, {"project_id": project_id}).fetchone()
    assert row is not None
    return int(row[0])


def listed(
    db: Db, project_id: str, *, state: str | None = None, marker: str | None = None, limit: int | None = None
) -> list[WebhookRow]:
    """Return a project's webhooks, the oldest first, those after the webhook with the id `marker`.

    Event sinks that no environment names any more are `off`, and left out.
    """
    query = SELECT
    query += " AND w.state = %(state)s" if state is not None else " AND w.state <> 'off'"
    if marker is not None:
        query += AFTER
    values = {"project_id": project_id, "state": state, "marker": marker, "limit": limit}
    with db.cursor(row_factory=class_row(WebhookRow)) as cursor:
        return cursor.execute(f"{query} ORDER BY w.id LIMIT %(limit)s".encode(), values).fetchall()


def get(db: Db, project_id: str, uuid: uuid_.UUID) -> WebhookRow | None:
    """Return a webhook of a project."""
    with db.cursor(row_factory=class_row(WebhookRow)) as cursor:
        query = f"{SELECT} AND w.uuid = %(uuid)s".encode()
        return cursor.execute(query, {"project_id": project_id, "uuid": uuid}).fetchone()


def delete(db: Db, project_id: str, uuid: uuid_.UUID) -> bool:
    """Delete a webhook of a project; return whether it existed."""
    return db.execute(DELETE, {"project_id": project_id, "uuid": uuid}).fetchone() is not None


def reactivate(db: Db, project_id: str, uuid: uuid_.UUID, position: Position | None) -> bool:
    """Have a webhook try again, from a position or from its present position; return whether it exists."""
    values = {"project_id": project_id, "uuid": uuid, "xid": None, "event_id": None}
    if position is not None:
        values |= {"xid": str(position.xid), "event_id": position.id}
    return db.execute(REARM, values).fetchone() is not None


def mark_due(db: Db, rung_until: int | None) -> int | None:
    """Mark webhooks as due that are concerned by events settled since the last time; return the end of these
    events.

    None, as at the first call: the last position is unknown, and all webhooks are marked.
    """
    row = db.execute(ANY_ACTIVE).fetchone()
    if row is None or not row[0]:
        return None
    row = db.execute(OLDEST_OPEN_TRANSACTION).fetchone()
    assert row is not None
    until = int(row[0])
    if rung_until is None:
        db.execute(MARK_ALL_DUE)
    elif until > rung_until:
        db.execute(MARK_DUE, {"first": str(rung_until), "next": str(until)})
    return until


def any_due(db: Db) -> bool:
    """Return whether a delivery is due; it may have been claimed already."""
    return bool(fetch_prepared(db, ANY_DUE, {})[0][0])


def claim(
    db: Db,
    lease: int,
    seconds: float,
    limit: int,
    *,
    slow: bool,
    share: int | None = None,
    busy: Mapping[str, int] | None = None,
) -> Sequence[Claimed]:
    """Claim due webhooks, at most `limit`: either those that were `slow` or failed, or the rest.

    A project gets at most `share` deliveries, including its `busy` deliveries in progress.
    """
    busy = busy or {}
    values = {
        "lease": lease, "seconds": seconds, "limit": limit, "slow": slow,
        "share": limit if share is None else share, "projects": list(busy),
        "deliveries": list(busy.values()),
    }  # fmt: skip
    with db.cursor(row_factory=class_row(Claimed)) as cursor:
        return cursor.execute(CLAIM, values).fetchall()


def advance_position(
    db: Db, id_: int, lease: int, position: Position, count: int, seconds: float, *, slow: bool
) -> bool:
    """Record that `count` events were delivered up to a position; return whether the lease is still valid."""
    values = {
        "id": id_, "lease": lease, "xid": str(position.xid), "event_id": position.id, "count": count,
        "seconds": seconds, "slow": slow,
    }  # fmt: skip
    return db.execute(RENEW, values).fetchone() is not None


def release(db: Db, id_: int, lease: int, *, has_more: bool) -> None:
    """Release a webhook; `has_more`: it has more events to deliver."""
    db.execute(RELEASE, {"id": id_, "lease": lease, "more": has_more})


def failed(db: Db, id_: int, lease: int, error: str, pause: float, most: int, *, slow: bool) -> str | None:
    """Record a failed delivery, to be retried after a pause; return the new state."""
    values = {"id": id_, "lease": lease, "error": error, "pause": pause, "most": most, "slow": slow}
    row = db.execute(FAILED, values).fetchone()
    return str(row[0]) if row is not None else None
