"""Rows of a timeline: the operations of an action from its events, and the waits from its nodes.

A read costs as much as the events of the action. A large action is reduced to a row per type by PostgreSQL.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.events.stream import STACK
from orchestrator.store.pictures.history import FINDING
from orchestrator.store.stacks.stacks import StackRow

Db = Connection[TupleRow]

PARTS: Final = 100  # of the time, in the density of a lane
MAX_STEPS: Final = 300  # of the critical path of a large action
MAX_REQUIREMENTS: Final = 1_000  # looked up per step

# The events of the action: those after the start of its revision, and before the next one.
REVISION: Final = """
SELECT v.number, v.action, v.traversal, v.first_event, v.created_at, v.ended_at, (
    SELECT min(n.first_event) FROM revision n WHERE n.stack_id = v.stack_id AND n.number > v.number)
FROM revision v
WHERE v.stack_id = %(stack_id)s AND (v.number = %(number)s::integer
    OR %(number)s::integer IS NULL AND v.number = (
        SELECT max(x.number) FROM revision x WHERE x.stack_id = %(stack_id)s AND x.traversal IS NOT NULL))
"""
_OF_ACTION: Final = f"""
    SELECT e.resource_name AS name, min(e.resource_type) AS type,
        coalesce(min(e.created_at) FILTER (WHERE e.status = 'IN_PROGRESS'), min(e.created_at)) AS started_at,
        CASE WHEN max(e.id) FILTER (WHERE e.status <> 'IN_PROGRESS') = max(e.id)
            THEN max(e.created_at) END AS ended_at,
        coalesce(max(e.id) FILTER (WHERE e.status = 'FAILED') = max(e.id), false) AS failed
    FROM event e
    WHERE e.stack_id = %(stack_id)s AND e.id > %(first)s AND (%(last)s::bigint IS NULL OR e.id < %(last)s)
        AND e.created_at >= %(since)s AND e.resource_type <> '{STACK}' AND NOT ({FINDING})
    GROUP BY e.resource_name"""
BARS: Final = f"""
WITH bar AS MATERIALIZED ({_OF_ACTION} LIMIT %(limit)s)
SELECT b.name, b.type, extract(epoch FROM b.started_at)::float8, (
    SELECT extract(epoch FROM max(n.waiting_since))::float8 FROM resource r JOIN graph_node n
        ON n.stack_id = r.stack_id AND n.traversal = %(traversal)s AND n.kind = 'update'
            AND n.resource_id = r.id
    WHERE r.stack_id = %(stack_id)s AND r.name = b.name),
    extract(epoch FROM b.ended_at)::float8, b.failed
FROM bar b ORDER BY 3, 1
"""
REQUIRES: Final = """
SELECT DISTINCT ON (d.name) d.name, d.requires FROM resource_definition d
WHERE d.stack_id = %(stack_id)s AND d.name = ANY(%(names)s) AND d.valid_from <= %(number)s
ORDER BY d.name, d.valid_from DESC
"""
# `date_part` is faster than `extract`, whose result is numeric.
LANES: Final = f"""
WITH bar AS MATERIALIZED ({_OF_ACTION}
), whole AS (
    SELECT date_part('epoch', %(since)s::timestamptz) AS begun_at,
        date_part('epoch', CASE WHEN bool_or(ended_at IS NULL) THEN now()
            ELSE max(ended_at) END) + 1e-3 AS ended_at
    FROM bar
), placed AS (
    SELECT b.type, b.failed,
        least(%(parts)s, greatest(1, width_bucket(date_part('epoch', b.started_at), w.begun_at,
            w.ended_at, %(parts)s))) AS start,
        CASE WHEN b.ended_at IS NOT NULL THEN least(%(parts)s, greatest(1, width_bucket(
            date_part('epoch', b.ended_at), w.begun_at, w.ended_at, %(parts)s))) END AS finish
    FROM bar b CROSS JOIN whole w
)
SELECT g.type, x.part, sum(x.begun), sum(x.ended), sum(x.failed), min(w.ended_at),
    (SELECT name FROM bar ORDER BY ended_at DESC NULLS FIRST, name DESC LIMIT 1)
FROM (SELECT type, start, finish, failed, count(*) AS n FROM placed GROUP BY 1, 2, 3, 4) AS g
CROSS JOIN whole w CROSS JOIN LATERAL (VALUES
    (g.start, g.n, 0, 0),
    (g.finish, 0, g.n, CASE WHEN g.failed THEN g.n ELSE 0 END)) AS x(part, begun, ended, failed)
WHERE x.part IS NOT NULL GROUP BY 1, 2
"""
# Whether an action has more operations than a limit, by its first events; it may be wrong for few more.
IS_LARGE: Final = f"""
SELECT count(DISTINCT x.name) > %(limit)s FROM (
    SELECT e.resource_name AS name FROM event e
    WHERE e.stack_id = %(stack_id)s AND e.id > %(first)s AND (%(last)s::bigint IS NULL OR e.id < %(last)s)
        AND e.created_at >= %(since)s AND e.resource_type <> '{STACK}'
    ORDER BY e.id LIMIT 4 * %(limit)s + 4) AS x
"""

IS_LONG: Final = """
SELECT count(*) > %(limit)s FROM (
    SELECT 1 FROM event e
    WHERE e.stack_id = %(stack_id)s AND e.id > %(first)s AND (%(last)s::bigint IS NULL OR e.id < %(last)s)
    LIMIT %(limit)s + 1) AS x
"""
LAST: Final = """
SELECT e.created_at FROM event e
WHERE e.stack_id = %(stack_id)s AND (%(last)s::bigint IS NULL OR e.id < %(last)s) ORDER BY e.id DESC LIMIT 1
"""
# The begins and ends of operations, without names: a resource with several operations counts several times.
COUNTS: Final = f"""
SELECT e.resource_type, least(%(parts)s, greatest(1, width_bucket(
    date_part('epoch', e.created_at), %(begun_at)s::float8, %(ended_at)s::float8, %(parts)s))),
    count(*) FILTER (WHERE e.status = 'IN_PROGRESS'), count(*) FILTER (WHERE e.status <> 'IN_PROGRESS'),
    count(*) FILTER (WHERE e.status = 'FAILED')
FROM event e
WHERE e.stack_id = %(stack_id)s AND e.id > %(first)s AND (%(last)s::bigint IS NULL OR e.id < %(last)s)
    AND e.created_at >= %(since)s AND e.resource_type <> '{STACK}' AND NOT ({FINDING})
GROUP BY 1, 2
"""
# The last event in the order of transactions, and whether no earlier one can appear any more.
VERSION: Final = """
SELECT e.xid::text || '.' || e.id, e.xid < pg_snapshot_xmin(pg_current_snapshot()) FROM event e
WHERE e.stack_id = %(stack_id)s ORDER BY e.xid DESC, e.id DESC LIMIT 1
"""

# From the resource that ended last: each time the requirement that became ready last.
CRITICAL: Final = """
WITH RECURSIVE step AS (
    SELECT %(name)s::text AS name, 1 AS nth
    UNION ALL
    SELECT x.name, s.nth + 1 FROM step s CROSS JOIN LATERAL (
        SELECT r.name FROM (
            SELECT d.requires FROM resource_definition d
            WHERE d.stack_id = %(stack_id)s AND d.name = s.name ORDER BY d.valid_from DESC LIMIT 1) AS d
        CROSS JOIN LATERAL (SELECT u.name FROM unnest(d.requires) AS u(name) LIMIT %(requirements)s) AS u
        JOIN resource r ON r.stack_id = %(stack_id)s AND r.name = u.name
        JOIN graph_node n ON n.stack_id = r.stack_id AND n.traversal = %(traversal)s AND n.kind = 'update'
            AND n.resource_id = r.id
        ORDER BY n.observed_ready_at DESC NULLS FIRST LIMIT 1) AS x
    WHERE s.nth < %(steps)s
)
SELECT s.name, r.type, extract(epoch FROM n.observed_ready_at)::float8
FROM step s JOIN resource r ON r.stack_id = %(stack_id)s AND r.name = s.name AND NOT r.deposed
LEFT JOIN graph_node n ON n.stack_id = r.stack_id AND n.traversal = %(traversal)s AND n.kind = 'update'
    AND n.resource_id = r.id
ORDER BY s.nth DESC
"""


@dataclass(frozen=True, slots=True)
class ActionEvents:
    """The range of the events of an action."""

    stack_id: int
    action: str
    number: int  # of the revision in force
    traversal: int
    first: int
    last: int | None
    since: dt.datetime
    until: dt.datetime | None  # None: in progress

    @property
    def values(self) -> dict[str, object]:
        """Return the inputs of the statements."""
        return {
            "stack_id": self.stack_id,
            "traversal": self.traversal,
            "first": self.first,
            "last": self.last,
            "since": self.since,
        }


class BarRow(NamedTuple):
    """An operation; times in seconds since the epoch."""

    name: str
    type: str
    started_at: float
    waiting_at: float | None
    ended_at: float | None
    failed: bool


class LaneRow(NamedTuple):
    """Operations of a type that begin and end in a part of the time."""

    type: str
    part: int
    begun: int
    ended: int
    failed: int


class LaneRows(NamedTuple):
    """The operations of an action by type."""

    rows: list[LaneRow]
    ended_at: float
    last: str | None = None  # the resource that ended last, if its operations were read one by one


def action_events(db: Db, stack: StackRow, number: int | None) -> ActionEvents | None:
    """Return the events of the last action, or of the action with a revision; None if there was none."""
    row = db.execute(REVISION, {"stack_id": stack.id, "number": number}).fetchone()
    if row is None or row[2] is None:
        return None
    found, action, traversal, first, created_at, ended_at, last = row
    if number is not None and last is not None:
        return ActionEvents(stack.id, action, found, traversal, first or 0, last, created_at, ended_at)
    if number is not None:
        return ActionEvents(stack.id, action, found, stack.traversal, first or 0, None, created_at, ended_at)
    until = None if stack.in_progress else stack.action_started_at
    return ActionEvents(
        stack.id, stack.action, found, stack.traversal, first or 0, None, stack.action_started_at, until
    )


def bars(db: Db, of: ActionEvents, limit: int) -> list[BarRow]:
    """Return the operations of an action, at most `limit`, in the order of their start."""
    return [BarRow._make(row) for row in db.execute(BARS, {**of.values, "limit": limit}).fetchall()]


def requires(db: Db, of: ActionEvents, names: list[str]) -> dict[str, list[str]]:
    """Return the requirements of resources by name."""
    values = {"stack_id": of.stack_id, "names": names, "number": of.number}
    return {name: list(required) for name, required in db.execute(REQUIRES, values).fetchall()}


def lanes(db: Db, of: ActionEvents) -> LaneRows:
    """Return the operations of an action by type and part of the time."""
    rows = db.execute(LANES, {**of.values, "parts": PARTS}).fetchall()
    found = [LaneRow(type_, part, *map(int, counts)) for type_, part, *counts, _, _ in rows]
    return LaneRows(found, rows[0][5], rows[0][6]) if rows else LaneRows([], time.time())


def counted_lanes(db: Db, of: ActionEvents, *, is_open: bool) -> LaneRows:
    """Return the same from the begins and ends in the events, which is faster and less exact."""
    row = None if is_open else db.execute(LAST, of.values).fetchone()
    ended_at = (time.time() if row is None else row[0].timestamp()) + 1e-3
    values = {**of.values, "parts": PARTS, "begun_at": of.since.timestamp(), "ended_at": ended_at}
    return LaneRows([LaneRow._make(row) for row in db.execute(COUNTS, values).fetchall()], ended_at)


def is_large(db: Db, of: ActionEvents, limit: int) -> bool:
    """Whether an action has certainly more than `limit` operations; cheaper than reading them."""
    row = db.execute(IS_LARGE, {**of.values, "limit": limit}).fetchone()
    return row is not None and bool(row[0])


def is_long(db: Db, of: ActionEvents, limit: int) -> bool:
    """Whether an action has more than `limit` events."""
    row = db.execute(IS_LONG, {**of.values, "limit": limit}).fetchone()
    return row is not None and bool(row[0])


def version(db: Db, stack_id: int) -> str | None:
    """Return the version of the events of a stack, None while a transaction may add earlier ones."""
    row = db.execute(VERSION, {"stack_id": stack_id}).fetchone()
    if row is None:
        return ""
    return row[0] if row[1] else None


def critical_path(db: Db, of: ActionEvents, last: str) -> list[tuple[str, str, float | None]]:
    """Return names, types and ends of the critical path to the resource that ended last, at most its last
    MAX_STEPS steps.
    """
    values = {**of.values, "name": last, "steps": MAX_STEPS, "requirements": MAX_REQUIREMENTS}
    return [(row[0], row[1], row[2]) for row in db.execute(CRITICAL, values).fetchall()]
