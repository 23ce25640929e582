"""Verdicts of rounds, and their history.

A statement writes only if the row of the resource is still the version that the round has read: so no
operation began or ended meanwhile. It locks the resources in the order of their ids, then their verdicts, and
skips locked resources: an operation begins there, and the next round observes its result.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.outcome import OBSERVED_ERRORS
from orchestrator.engine.observation.drift import DRIFTED, Difference, Drift
from orchestrator.store.connections.damaged_rows import decoded
from orchestrator.store.observation.groups import Group
from orchestrator.store.observation.watched import TYPE, VERSION
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

# A verdict expires when an operation ends or the physical id changes.
CURRENT: Final = """v.physical_id = r.physical_id
    AND (r.observed_at IS NULL OR v.observed_at >= r.observed_at)"""
_SAME: Final = f"v.verdict = r.state AND v.confirmed <= r.confirmed AND {CURRENT}"

# The operation on the resource has failed with the error of the object, and said so.
_REPORTED: Final = f"""i.state = 'FAILED' AND r.status = 'FAILED'
        AND {check_in("split_part(coalesce(r.status_reason, ''), ':', 1)", OBSERVED_ERRORS)}"""

_COLUMNS: Final = "resource_id, stack_id, root_id, project_id, name, type, service, verdict"
_HISTORY: Final = f"""
    INSERT INTO verdict_history (fault_id, {_COLUMNS}, reason, differences, physical_id, first_seen_at,
        last_seen_at)"""
_LAST_SEEN: Final = "greatest(v.observed_at, least(%(seen_at)s, now()))"
_ENDED_FACT: Final = f"""
    SELECT v.id, v.resource_id, v.stack_id, v.root_id, v.project_id, v.name, v.type, v.service, v.verdict,
        v.reason, v.differences, v.physical_id, v.since, {_LAST_SEEN}"""
_ENDED_UNKNOWN: Final = f"""
    SELECT v.id, v.resource_id, v.stack_id, v.root_id, v.project_id, v.name, v.type, v.service, 'UNKNOWN',
        v.unknown_reason, '[]'::jsonb, v.physical_id, v.unknown_since, {_LAST_SEEN}"""
_IS_DRIFT: Final = f"{check_in('v.verdict', DRIFTED)} AND v.confirmed"

RECORD = f"""
WITH i AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(drifts)s::jsonb) AS x(
        resource_id bigint, version bigint, state text, confirmed boolean, reason text, differences jsonb,
        unknown text)
), r AS MATERIALIZED (
    SELECT r.id, r.stack_id, s.root_id, s.project_id, r.name, {TYPE} AS type, r.physical_id, r.observed_at,
        i.state, i.confirmed, i.reason, i.differences, i.unknown, {_REPORTED} AS reported
    FROM i JOIN resource r ON r.id = i.resource_id AND {VERSION} = i.version
    JOIN stack s ON s.id = r.stack_id
    WHERE r.op IS NULL AND r.lease IS NULL
    ORDER BY r.id FOR SHARE OF r SKIP LOCKED
), v AS MATERIALIZED (
    SELECT v.* FROM resource_verdict v JOIN r ON r.id = v.resource_id ORDER BY v.resource_id FOR UPDATE OF v
), ended AS ({_HISTORY}
    {_ENDED_FACT} FROM v JOIN r ON r.id = v.resource_id WHERE {_IS_DRIFT} AND NOT ({_SAME})
), known AS ({_HISTORY}
    {_ENDED_UNKNOWN} FROM v JOIN r ON r.id = v.resource_id
    WHERE v.unknown_since IS NOT NULL AND r.unknown IS NULL
), gone AS (
    DELETE FROM resource_verdict x USING v JOIN r ON r.id = v.resource_id  -- reads v, which locks, first
    WHERE x.id = v.id AND r.state = 'IN_SYNC' AND r.unknown IS NULL
), written AS (
    INSERT INTO resource_verdict AS v (resource_id, stack_id, root_id, project_id, group_id, name, type,
        service, verdict, confirmed, reason, differences, since, unknown_since, unknown_reason, physical_id,
        observed_at)
    SELECT r.id, r.stack_id, r.root_id, r.project_id, %(group_id)s, r.name, r.type, %(service)s, r.state,
        r.confirmed, r.reason, r.differences,
        CASE WHEN {_SAME} THEN v.since ELSE %(at)s END,
        CASE WHEN r.unknown IS NOT NULL THEN coalesce(v.unknown_since, %(at)s) END, r.unknown, r.physical_id,
        %(at)s
    FROM r LEFT JOIN v ON v.resource_id = r.id
    WHERE r.state <> 'IN_SYNC' OR r.unknown IS NOT NULL
    ON CONFLICT (resource_id) DO UPDATE SET
        id = CASE WHEN v.since = excluded.since AND v.verdict = excluded.verdict THEN v.id
            ELSE excluded.id END,
        group_id = excluded.group_id, name = excluded.name, type = excluded.type,
        service = excluded.service, verdict = excluded.verdict, confirmed = excluded.confirmed,
        reason = excluded.reason, differences = excluded.differences, since = excluded.since,
        unknown_since = excluded.unknown_since, unknown_reason = excluded.unknown_reason,
        physical_id = excluded.physical_id, observed_at = excluded.observed_at
), told AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT r.stack_id, r.name, r.type, r.physical_id, 'CHECK', 'FAILED',
        'Observed ' || r.state || ': ' || CASE WHEN r.state = 'MODIFIED' THEN (
            SELECT string_agg(d ->> 'property', ', ') FROM jsonb_array_elements(r.differences) AS d)
            ELSE r.reason END
    FROM r LEFT JOIN v ON v.resource_id = r.id
    WHERE {check_in("r.state", DRIFTED)} AND r.confirmed AND NOT r.reported
        AND (v.id IS NULL OR NOT v.confirmed OR NOT ({_SAME}))
)
SELECT r.id FROM r
"""

# Verdicts on resources or objects that do not exist any more, on those that are not observed any more, and
# verdicts from before an operation.
END_VOID = f"""
WITH v AS MATERIALIZED (
    SELECT v.* FROM resource_verdict v
    WHERE v.group_id = %(group_id)s AND NOT EXISTS (
        SELECT 1 FROM resource r JOIN stack s ON s.id = r.stack_id
        WHERE r.id = v.resource_id AND s.deleted_at IS NULL AND {CURRENT}
            AND NOT r.deposed AND r.action <> 'DELETE')
    ORDER BY v.resource_id FOR UPDATE SKIP LOCKED
), ended AS ({_HISTORY}
    {_ENDED_FACT} FROM v WHERE {_IS_DRIFT}
)
DELETE FROM resource_verdict x USING v WHERE x.resource_id = v.resource_id
"""

DRIFTS = f"""
SELECT v.resource_id, v.verdict, v.reason, v.differences, v.confirmed, coalesce(v.unknown_reason, '')
FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
WHERE v.group_id = %(group_id)s AND {CURRENT}
"""

HAS_UNCONFIRMED = f"""
SELECT EXISTS (
    SELECT 1 FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
    WHERE v.group_id = %(group_id)s AND NOT v.confirmed AND v.unknown_since IS NULL AND {CURRENT})
"""

DRIFTED_PROPERTIES = f"""
SELECT DISTINCT split_part(d ->> 'property', '.', 1)
FROM resource r JOIN resource_verdict v ON v.resource_id = r.id
CROSS JOIN LATERAL jsonb_array_elements(v.differences) AS d
WHERE r.id = %(id)s AND v.verdict = 'MODIFIED' AND {CURRENT}
"""


class NewDrift(NamedTuple):
    """The new drift state of one version of a resource."""

    resource_id: int
    version: int
    drift: Drift


def drifts(db: Db, group: Group) -> dict[int, Drift]:
    """Return what is known about the resources of a group that are not in sync, by resource."""
    rows = db.execute(DRIFTS, {"group_id": group.id}).fetchall()
    # A damaged row counts as unknown: the round observes its resource anew, and writes the row again.
    return dict(decoded(rows, lambda row: (row[0], _drift(*row[1:])), "resource_verdict"))


def _drift(
    state: Any, reason: str, found: Iterable[Mapping[str, Any]], confirmed: bool, unknown: str
) -> Drift:
    differences = tuple(Difference(item["property"], item["expected"], item["found"]) for item in found)
    return Drift(state, reason, differences, confirmed=confirmed, unknown=unknown)


def record(db: Db, group: Group, found: Iterable[NewDrift]) -> set[int]:
    """Write what a round found; return the resources that have not changed meanwhile."""
    drifts = [
        {
            "resource_id": item.resource_id,
            "version": item.version,
            "state": item.drift.state,
            "confirmed": item.drift.confirmed,
            "reason": item.drift.reason,
            "differences": [difference.as_json() for difference in item.drift.differences],
            "unknown": item.drift.unknown or None,
        }
        for item in found
    ]
    values = {
        "drifts": orjson.dumps(drifts).decode(),
        "group_id": group.id,
        "service": group.service,
        "at": group.round_at,
        "seen_at": _seen_at(group),
    }
    return {row[0] for row in db.execute(RECORD, values).fetchall()}


def drifted_properties(db: Db, resource_id: int) -> frozenset[str]:
    """Return the properties that were observed to differ from the recorded ones."""
    return frozenset(row[0] for row in db.execute(DRIFTED_PROPERTIES, {"id": resource_id}).fetchall())


def has_unconfirmed(db: Db, group: Group) -> bool:
    """Return whether a verdict on a resource of the group needs another observation."""
    row = db.execute(HAS_UNCONFIRMED, {"group_id": group.id}).fetchone()
    return row is not None and bool(row[0])


def end_void(db: Db, group: Group) -> int:
    """End the verdicts on what does not exist any more; return their number."""
    values = {"group_id": group.id, "seen_at": _seen_at(group)}
    return db.execute(END_VOID, values).rowcount


def _seen_at(group: Group) -> dt.datetime:
    """Return when unchanged verdicts were last seen: in the last complete round."""
    return group.observed_at or group.round_at
