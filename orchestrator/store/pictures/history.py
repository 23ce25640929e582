"""The states of a field at a past time, from the events up to then."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.observation.verdicts import DRIFT as DRIFT_VERDICTS
from orchestrator.engine.pictures.field import STATES
from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.pictures.field import TreeStack, slices
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

_CODE: Final = {name: code for code, name in enumerate(STATES)}
_STATE: Final = f"""CASE
    WHEN e.status = 'FAILED' THEN {_CODE["failed"]}
    WHEN e.action = 'DELETE' AND e.status = 'COMPLETE' THEN {_CODE["deleted"]}
    WHEN e.action = 'DELETE' THEN {_CODE["deleting"]}
    WHEN e.status = 'IN_PROGRESS' THEN {_CODE["in_progress"]}
    WHEN e.action = 'SUSPEND' THEN {_CODE["suspended"]}
    ELSE {_CODE["complete"]} END"""

# A finding of the observation, or what follows from it: the resource keeps its state.
FINDING: Final = """e.action = 'CHECK' AND e.status = 'FAILED' AND (e.automatic
    OR starts_with(e.reason, 'Observed ') OR starts_with(e.reason, 'It could not be observed'))"""

FIRST: Final = "SELECT created_at FROM event WHERE stack_id = %(stack_id)s ORDER BY id LIMIT 1"

# In the order of the field's rows. The second column: the incarnation of today existed at the time, and is
# not a pending delete; the third: it is older than all events.
ROWS_AT: Final = """
SELECT hashtextextended(x.name, x.stack_id),
    x.created_at <= %(at)s AND NOT x.leftover AND x.action <> 'DELETE', x.created_at < %(since)s
FROM (
    SELECT DISTINCT ON (r.stack_id, r.name) r.stack_id, r.name, r.created_at, r.leftover, r.action
    FROM resource r WHERE r.stack_id = ANY(%(stacks)s)
    ORDER BY r.stack_id, r.name, r.leftover, r.id DESC) AS x
"""

# The last event of each resource, and its last event that is not of a delete.
EVENTS_AT: Final = f"""
SELECT hashtextextended(e.resource_name, e.stack_id), max(e.id * 16 + {_STATE}) & 15,
    max(e.id * 16 + {_STATE}) FILTER (WHERE e.action <> 'DELETE') & 15
FROM event e JOIN stack s ON s.id = e.stack_id AND e.physical_id IS DISTINCT FROM s.uuid::text
WHERE e.stack_id = ANY(%(stacks)s) AND e.created_at <= %(at)s AND NOT ({FINDING})
GROUP BY e.stack_id, e.resource_name
"""

# Faults that had begun, and had not ended. A verdict of today that is void was valid until the operation.
DRIFT_AT: Final = f"""
SELECT hashtextextended(h.name, h.stack_id) FROM verdict_history h
WHERE h.stack_id = ANY(%(stacks)s) AND h.first_seen_at <= %(at)s AND h.ended_at > %(at)s
    AND {check_in("h.verdict", DRIFT_VERDICTS)}
UNION ALL
SELECT hashtextextended(v.name, v.stack_id) FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
WHERE v.stack_id = ANY(%(stacks)s) AND v.since <= %(at)s AND v.confirmed
    AND {check_in("v.verdict", DRIFT_VERDICTS)} AND ({CURRENT} OR r.observed_at > %(at)s)
"""


def first_event(db: Db, stack_id: int) -> dt.datetime | None:
    """Return the time of the oldest event of a stack, None if it has none."""
    row = db.execute(FIRST, {"stack_id": stack_id}).fetchone()
    return None if row is None else row[0]


def rows_at(
    db: Db, stacks: Sequence[TreeStack], at: dt.datetime, since: dt.datetime
) -> Iterator[tuple[int, bool, bool]]:
    """Yield the rows of a field: hash of the name, whether it existed, whether it is older than events."""
    values = {"stacks": [item.id for item in stacks], "at": at, "since": since}
    for rows in slices(db, ROWS_AT, values):
        yield from ((row[0], row[1], row[2]) for row in rows)


def events_at(db: Db, stacks: Sequence[TreeStack], at: dt.datetime) -> Iterator[tuple[int, int, int | None]]:
    """Yield the states at a time: hash of the name, state, and state without deletes."""
    for rows in slices(db, EVENTS_AT, {"stacks": [item.id for item in stacks], "at": at}):
        yield from ((row[0], row[1], row[2]) for row in rows)


def drift_at(db: Db, stacks: Sequence[TreeStack], at: dt.datetime) -> frozenset[int]:
    """Return the hashes of the names of the resources that were not in step with their objects."""
    values = {"stacks": [item.id for item in stacks], "at": at}
    return frozenset(row[0] for row in db.execute(DRIFT_AT, values).fetchall())
