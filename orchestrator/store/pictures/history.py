"""The states of a field at a past time, from the events up to then."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.observation.drift import DRIFTED
from orchestrator.engine.pictures.field import STATES
from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.pictures.field import TreeStack, numbers
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

FIRST_LETTER: Final = 64
NO_STATE: Final = 7
_CODES: Final = bytes(max(0, byte - FIRST_LETTER) for byte in range(256))
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

# The last event of each resource, and its last event that is not of a delete: arrays of a stack, because a
# row per resource would cost more than all of the rest. A letter has the state of both.
EVENTS_AT: Final = f"""
SELECT x.stack_id, json_agg(x.name)::text, string_agg(chr(x.letter::integer), '') FROM (
    SELECT e.stack_id, e.resource_name AS name, {FIRST_LETTER} + 8 * (max(e.id * 16 + {_STATE}) & 15)
        + coalesce(max(e.id * 16 + {_STATE}) FILTER (WHERE e.action <> 'DELETE') & 15, {NO_STATE}) AS letter
    FROM event e JOIN unnest(%(stacks)s::bigint[], %(uuids)s::text[]) AS s(id, uuid)
        ON s.id = e.stack_id AND e.physical_id IS DISTINCT FROM s.uuid
    WHERE e.stack_id = ANY(%(stacks)s) AND e.created_at <= %(at)s AND NOT ({FINDING})
    GROUP BY e.stack_id, e.resource_name) AS x
GROUP BY x.stack_id
"""
OLDER: Final = """
SELECT string_agg(int8send(r.id), '') FROM resource r
WHERE r.stack_id = ANY(%(stacks)s) AND r.created_at < %(since)s
"""
EXISTED: Final = """
SELECT r.id FROM resource r
WHERE r.id = ANY(%(ids)s) AND r.created_at <= %(at)s AND NOT r.deposed AND r.action <> 'DELETE'
"""

# Faults that had begun, and had not ended. A verdict of today that is void was valid until the operation.
DRIFT_AT: Final = f"""
SELECT h.stack_id, h.name FROM verdict_history h
WHERE h.stack_id = ANY(%(stacks)s) AND h.first_seen_at <= %(at)s AND h.ended_at > %(at)s
    AND {check_in("h.verdict", DRIFTED)}
UNION ALL
SELECT v.stack_id, v.name FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
WHERE v.stack_id = ANY(%(stacks)s) AND v.since <= %(at)s AND v.confirmed
    AND {check_in("v.verdict", DRIFTED)} AND ({CURRENT} OR r.observed_at > %(at)s)
"""


def first_event(db: Db, stack_id: int) -> dt.datetime | None:
    """Return the time of the oldest event of a stack, None if it has none."""
    row = db.execute(FIRST, {"stack_id": stack_id}).fetchone()
    return None if row is None else row[0]


def events_at(db: Db, stacks: Sequence[TreeStack], at: dt.datetime) -> dict[int, tuple[str, bytes]]:
    """Return the states of the resources of each stack at a time: names as a list in JSON, and a byte for
    each: eight times the state, and the state without deletes (NO_STATE: none).
    """
    values = {
        "stacks": [item.id for item in stacks],
        "uuids": [item.uuid for item in stacks],
        "at": at,
    }
    rows = db.execute(EVENTS_AT, values, binary=True)
    return {row[0]: (row[1], row[2].encode().translate(_CODES)) for row in rows}


def older(db: Db, stacks: Sequence[TreeStack], since: dt.datetime) -> frozenset[int]:
    """Return the ids of the resources that are older than a time."""
    values = {"stacks": [item.id for item in stacks], "since": since}
    row = db.execute(OLDER, values, binary=True).fetchone()
    return frozenset(numbers(row[0]) if row is not None and row[0] is not None else ())


def existed(db: Db, ids: Sequence[int], at: dt.datetime) -> frozenset[int]:
    """Return the resources whose incarnation of today existed at a time, and is no pending delete."""
    rows = db.execute(EXISTED, {"ids": list(ids), "at": at}).fetchall() if ids else []
    return frozenset(row[0] for row in rows)


def drift_at(db: Db, stacks: Sequence[TreeStack], at: dt.datetime) -> frozenset[tuple[int, str]]:
    """Return the resources that were not in sync with their objects, by stack and name."""
    values = {"stacks": [item.id for item in stacks], "at": at}
    return frozenset((row[0], row[1]) for row in db.execute(DRIFT_AT, values).fetchall())
