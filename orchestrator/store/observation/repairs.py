"""Repairs in SQL: faults to decide, decisions and ends."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid as uuid_
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow, class_row

from orchestrator.engine.observation.drift import DRIFTED, ProvenState
from orchestrator.engine.observation.repairs import Action, Attempt, RepairStatus
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

OPEN: Final = ("reported", "waiting", "pending", "approved")  # decided again when due


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A fault that is due for a decision, with the facts about its resource."""

    id: int
    project_id: str
    stack_id: int
    root_id: int
    group_id: int
    resource_id: int
    name: str
    type: str
    physical_id: str
    verdict: ProvenState
    reason: str
    differences: list[JsonObject]
    resource_action: str
    resource_status: str
    set_properties: list[str]  # in the template; of a member of a group the name of a function
    recorded_properties: list[str]  # with a value; empty if they are encrypted
    external: bool
    status: RepairStatus | None  # of the earlier decision


class StackState(NamedTuple):
    """What a decision needs to know about a stack."""

    id: int
    root_id: int
    action: str
    status: str
    traversal: int
    reached: bool  # the desired revision
    repaired: bool  # the last traversal was a repair
    environment: JsonMapping
    resources: int


class Loss(NamedTuple):
    """A mass loss was detected: repairs of this group need an approval."""

    lost: int
    observed: int
    service: str


class DecisionRow(NamedTuple):
    """A decision without a start."""

    fault_id: int
    action: Action | None
    status: RepairStatus
    reason: str
    seconds: float | None  # until the next decision
    told: str  # the event; empty: none


@dataclass(frozen=True, slots=True)
class RepairRow:
    """A repair as its project sees it."""

    id: int
    uuid: uuid_.UUID
    fault_id: int
    stack_uuid: uuid_.UUID
    stack_name: str
    root_uuid: uuid_.UUID
    root_name: str
    name: str
    type: str
    physical_id: str
    verdict: str
    fault_reason: str
    differences: list[JsonObject]
    action: str | None
    status: RepairStatus
    reason: str
    due_at: dt.datetime | None
    created_at: dt.datetime
    started_at: dt.datetime | None
    ended_at: dt.datetime | None
    decided_by: str | None
    decided_at: dt.datetime | None
    comment: str | None

    @property
    def effect(self) -> str:
        """A digest of the fault and the action: an approval names what was shown."""
        facts = [self.fault_id, self.action, self.verdict, self.fault_reason, self.differences]
        return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


IS_FAULT: Final = f"""v.confirmed AND v.unknown_since IS NULL AND {check_in("v.verdict", DRIFTED)}
    AND {CURRENT}"""
HAS_FAULTS: Final = "(EXISTS (SELECT 1 FROM repair) OR EXISTS (SELECT 1 FROM resource_verdict))"
DUE: Final = f"""
SELECT v.id, v.project_id, v.stack_id, v.root_id, v.group_id, v.resource_id, v.name, v.type, v.physical_id,
    v.verdict, v.reason, v.differences, r.action AS resource_action, r.status AS resource_status,
    ARRAY(SELECT json_object_keys(d.body -> 'properties')
        WHERE json_typeof(d.body -> 'properties') = 'object') AS set_properties,
    ARRAY(SELECT key FROM json_each_text(CASE json_typeof(r.properties) WHEN 'object' THEN r.properties END)
        WHERE value IS NOT NULL) AS recorded_properties,
    d.body ->> 'external_id' IS NOT NULL AS external, p.status
FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
LEFT JOIN resource_definition d ON d.stack_id = r.stack_id AND d.id = r.definition_id
LEFT JOIN repair p ON p.fault_id = v.id
WHERE {IS_FAULT} AND (%(group_id)s::bigint IS NULL OR v.group_id = %(group_id)s)
    AND (p.id IS NULL OR {check_in("p.status", OPEN)} AND p.due_at <= now())
    AND v.project_id = ANY(ARRAY(SELECT o.project_id FROM observation_rule o WHERE o.kind = 'policy'
        AND {check_in("o.mode", ("heal", "ask"))} AND o.ended_at IS NULL))
ORDER BY v.id LIMIT %(limit)s
"""
STACKS: Final = """
SELECT s.id, s.root_id, s.action, s.status, s.traversal,
    s.revision_id IS NOT DISTINCT FROM s.good_revision_id,
    EXISTS (SELECT 1 FROM repair p WHERE p.root_id = s.id AND p.traversal = s.traversal),
    coalesce(v.environment, '{}'), coalesce(v.resource_count, 0)
FROM stack s LEFT JOIN revision v ON v.id = s.revision_id
WHERE s.id = ANY(%(stacks)s) AND s.deleted_at IS NULL
"""
LOSSES: Final = """
SELECT id, coalesce(lost, 0), coalesce(lost_of, 0), service FROM observation_group
WHERE id = ANY(%(groups)s) AND loss_since IS NOT NULL AND loss_approved_at IS NULL
"""
ATTEMPTS: Final = """
SELECT p.stack_id, p.name, p.started_at, p.status, p.action FROM repair p
JOIN unnest(%(stacks)s::bigint[], %(names)s::text[]) AS x(stack_id, name) USING (stack_id, name)
WHERE p.started_at > now() - make_interval(secs => %(seconds)s)
ORDER BY p.started_at
"""
COLUMNS: Final = """fault_id, project_id, stack_id, root_id, group_id, resource_id, name, type, physical_id,
    verdict, fault_reason, differences"""
FAULT: Final = """v.id, v.project_id, v.stack_id, v.root_id, v.group_id, v.resource_id, v.name, v.type,
    v.physical_id, v.verdict, v.reason, v.differences"""
EVENT: Final = """
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
    automatic)"""
DECIDE: Final = f"""
WITH i AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(decisions)s::jsonb) AS x(
        fault_id bigint, action text, status text, reason text, seconds float8, told text)
), before AS MATERIALIZED (
    SELECT p.fault_id, p.status FROM repair p JOIN i USING (fault_id)
), w AS (
    INSERT INTO repair AS p ({COLUMNS}, action, status, reason, due_at)
    SELECT {FAULT}, i.action, i.status, i.reason, now() + make_interval(secs => i.seconds)
    FROM i JOIN resource_verdict v ON v.id = i.fault_id ORDER BY v.id
    ON CONFLICT (fault_id) DO UPDATE SET action = excluded.action, reason = excluded.reason,
        fault_reason = excluded.fault_reason, differences = excluded.differences,
        status = CASE WHEN p.status = 'approved' AND excluded.status = 'waiting' THEN p.status
            ELSE excluded.status END,
        due_at = excluded.due_at
    WHERE {check_in("p.status", OPEN)}
    RETURNING p.fault_id, p.stack_id, p.name, p.type, p.physical_id, p.status
)
{EVENT}
SELECT w.stack_id, w.name, w.type, w.physical_id, 'CHECK', 'FAILED', i.told, true
FROM w JOIN i USING (fault_id) LEFT JOIN before b USING (fault_id)
WHERE i.told <> '' AND b.status IS DISTINCT FROM w.status
"""
# A repair that ended waits for a round that began after it.
NOTE_ENDS: Final = """
UPDATE repair p SET ended_at = now(), status = CASE
    WHEN s.traversal > p.traversal AND s.action = 'ROLLBACK' THEN 'failed'
    WHEN s.traversal > p.traversal THEN 'superseded' ELSE p.status END
FROM stack s
WHERE p.status = 'started' AND p.ended_at IS NULL AND s.id = p.root_id
    AND (s.traversal > p.traversal OR s.status <> 'IN_PROGRESS' OR s.deleted_at IS NOT NULL)
RETURNING p.group_id, p.status
"""
HASTEN: Final = """
UPDATE observation_group SET due_at = least(due_at, now() + interval '1 second'), interval_seconds = 0
WHERE id = ANY(%(groups)s)
"""
END: Final = """
WITH p AS MATERIALIZED (
    SELECT p.id, CASE
        WHEN s.id IS NULL OR s.deleted_at IS NOT NULL THEN 'superseded'
        WHEN s.status = 'FAILED' AND r.status = 'COMPLETE' AND r.physical_id = p.physical_id
            AND r.repair IS NOT NULL THEN 'waiting'  -- the update failed before it came to it
        WHEN s.status = 'FAILED' AND (r.id IS NULL OR r.status = 'FAILED' OR r.physical_id IS NULL)
            THEN 'failed'
        WHEN v.id IS NOT NULL THEN 'failed'
        WHEN g.observed_at > p.ended_at AND EXISTS (
            SELECT 1 FROM resource_verdict w WHERE w.id = p.fault_id AND w.unknown_since IS NULL)
            THEN 'failed'
        WHEN g.id IS NULL OR g.observed_at > p.ended_at THEN 'done' END AS status,
        CASE WHEN s.status = 'FAILED' THEN s.status_reason
            WHEN v.id IS NOT NULL THEN 'the difference was observed again' ELSE '' END AS reason
    FROM repair p LEFT JOIN stack s ON s.id = p.root_id
    LEFT JOIN LATERAL (
        SELECT r.* FROM resource r
        WHERE r.stack_id = p.stack_id AND r.name = p.name AND NOT r.deposed LIMIT 1) AS r ON true
    LEFT JOIN observation_group g ON g.id = p.group_id
    LEFT JOIN LATERAL (
        SELECT v.id FROM resource_verdict v
        WHERE v.stack_id = p.stack_id AND v.name = p.name AND v.id <> p.fault_id AND v.confirmed
            AND v.observed_at > p.ended_at LIMIT 1) AS v ON true
    WHERE p.status = 'started' AND p.ended_at IS NOT NULL
)
UPDATE repair x SET status = p.status, reason = CASE WHEN p.status = 'done' THEN '' ELSE p.reason END,
    traversal = CASE WHEN p.status <> 'waiting' THEN x.traversal END,
    started_at = CASE WHEN p.status <> 'waiting' THEN x.started_at END,
    ended_at = CASE WHEN p.status <> 'waiting' THEN x.ended_at END,
    due_at = CASE WHEN p.status = 'waiting' THEN now() + interval '5 seconds' END
FROM p WHERE x.id = p.id AND x.status = 'started' AND p.status IS NOT NULL
RETURNING x.status
"""
# A fault that a round after its failed repair has observed again, unchanged, is a new fault.
RENEW: Final = """
UPDATE resource_verdict v SET id = DEFAULT
FROM (SELECT p.fault_id FROM repair p JOIN resource_verdict x ON x.id = p.fault_id
    JOIN observation_group g ON g.id = p.group_id
    WHERE p.status = 'failed' AND g.observed_at > p.ended_at ORDER BY x.resource_id
    FOR UPDATE OF x SKIP LOCKED) AS f
WHERE v.id = f.fault_id
"""
# Faults that ended without a repair.
FORGET: Final = """
DELETE FROM repair p WHERE p.due_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM resource_verdict v WHERE v.id = p.fault_id)
"""
SELECT: Final = """
SELECT p.id, p.uuid, p.fault_id, s.uuid AS stack_uuid, s.name AS stack_name, root.uuid AS root_uuid,
    root.name AS root_name, p.name, p.type, p.physical_id, p.verdict, p.fault_reason, p.differences, p.action,
    p.status, p.reason, p.due_at, p.created_at, p.started_at, p.ended_at, p.decided_by, p.decided_at,
    p.comment
FROM repair p JOIN stack s ON s.id = p.stack_id JOIN stack root ON root.id = p.root_id
WHERE p.project_id = %(project_id)s"""
AFTER: Final = """ AND p.id > coalesce((SELECT m.id FROM repair m
    WHERE m.uuid::text = %(marker)s AND m.project_id = %(project_id)s), 0)"""
ANSWER: Final = f"""
UPDATE repair p SET status = %(status)s, decided_by = %(by)s, decided_at = now(), comment = %(comment)s,
    due_at = CASE WHEN %(status)s = 'approved' THEN now() END
FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
WHERE p.project_id = %(project_id)s AND p.id = %(id)s AND p.status = 'pending' AND v.id = p.fault_id
    AND p.action IS NOT DISTINCT FROM %(action)s AND v.differences = p.differences AND {IS_FAULT}
"""
# Rules have changed: decide again at once.
RECONSIDER: Final = f"""
UPDATE repair SET due_at = now() WHERE project_id = %(project_id)s AND {check_in("status", OPEN)}
"""


def due(db: Db, limit: int, group_id: int | None = None) -> list[FaultRow]:
    """Return faults that are due for a decision in projects with a policy for repairs; of a group if any."""
    with db.cursor(row_factory=class_row(FaultRow)) as cursor:
        return cursor.execute(DUE.encode(), {"limit": limit, "group_id": group_id}).fetchall()


def stacks(db: Db, ids: Collection[int]) -> dict[int, StackState]:
    """Return the state of live stacks."""
    rows = db.execute(STACKS, {"stacks": list(ids)}).fetchall()
    return {row[0]: StackState(*row) for row in rows}


def losses(db: Db, groups: Collection[int]) -> dict[int, Loss]:
    """Return the groups with a mass loss that is not approved."""
    rows = db.execute(LOSSES, {"groups": list(groups)}).fetchall()
    return {row[0]: Loss(*row[1:]) for row in rows}


def attempts(
    db: Db, faults: Iterable[FaultRow], memory: dt.timedelta
) -> dict[tuple[int, str], list[Attempt]]:
    """Return the recent repairs of these resources, by stack and name."""
    wanted = sorted({(fault.stack_id, fault.name) for fault in faults})
    values = {
        "stacks": [stack_id for stack_id, _ in wanted],
        "names": [name for _, name in wanted],
        "seconds": memory.total_seconds(),
    }
    found: dict[tuple[int, str], list[Attempt]] = {}
    for stack_id, name, at, status, action in db.execute(ATTEMPTS, values).fetchall():
        found.setdefault((stack_id, name), []).append(Attempt(at, status, action))
    return found


def decide(db: Db, decisions: Iterable[DecisionRow]) -> None:
    """Record decisions without a start, with an event for a new status that users should know."""
    rows = [decision._asdict() for decision in decisions]
    if rows:
        db.execute(DECIDE, {"decisions": orjson.dumps(rows).decode()})


def end(db: Db) -> list[str]:
    """Record the results of repairs; return them. Decisions about faults that ended are forgotten."""
    db.execute(FORGET)
    noted = db.execute(NOTE_ENDS).fetchall()
    groups = {group_id for group_id, _ in noted}
    if groups:
        db.execute(HASTEN, {"groups": sorted(groups)})
    ended = [status for _, status in noted if status != "started"]
    ended += [status for (status,) in db.execute(END).fetchall() if status != "waiting"]
    db.execute(RENEW)
    return ended


def undone(db: Db, project_id: str, stack_id: int, limit: int) -> list[RepairRow]:
    """Return faults of a stack and its nested stacks that are not repaired, with the reasons."""
    statuses = [*OPEN, "given_up", "declined"]
    query = f"{SELECT} AND p.status = ANY(%(statuses)s) AND (p.stack_id = %(stack)s OR p.root_id = %(stack)s)"
    query += " AND EXISTS (SELECT 1 FROM resource_verdict v WHERE v.id = p.fault_id)"
    values = {"project_id": project_id, "statuses": statuses, "stack": stack_id, "limit": limit}
    with db.cursor(row_factory=class_row(RepairRow)) as cursor:
        return cursor.execute(f"{query} ORDER BY p.id LIMIT %(limit)s".encode(), values).fetchall()


def listed(
    db: Db,
    project_id: str,
    *,
    statuses: Sequence[str] = (),
    stack_ids: Sequence[int] = (),
    uuid: uuid_.UUID | None = None,
    marker: str | None = None,
    limit: int | None = None,
) -> list[RepairRow]:
    """Return the repairs of a project, the oldest first."""
    query = SELECT
    query += " AND p.status = ANY(%(statuses)s)" if statuses else ""
    query += " AND (p.stack_id = ANY(%(stacks)s) OR p.root_id = ANY(%(stacks)s))" if stack_ids else ""
    query += " AND p.uuid = %(uuid)s" if uuid is not None else ""
    query += AFTER if marker is not None else ""
    values: dict[str, Any] = {
        "project_id": project_id, "statuses": list(statuses), "stacks": list(stack_ids), "uuid": uuid,
        "marker": marker, "limit": limit,
    }  # fmt: skip
    with db.cursor(row_factory=class_row(RepairRow)) as cursor:
        return cursor.execute(f"{query} ORDER BY p.id LIMIT %(limit)s".encode(), values).fetchall()


def answer(
    db: Db, project_id: str, repair: RepairRow, status: RepairStatus, by: str, comment: str | None
) -> bool:
    """Approve or decline a pending repair, unless its fault or its action has changed; return whether."""
    values = {
        "project_id": project_id, "id": repair.id, "action": repair.action, "status": status, "by": by,
        "comment": comment,
    }  # fmt: skip
    return db.execute(ANSWER, values).rowcount == 1


def reconsider(db: Db, project_id: str) -> None:
    """Let all open decisions of a project be made again: its rules have changed."""
    db.execute(RECONSIDER, {"project_id": project_id})
