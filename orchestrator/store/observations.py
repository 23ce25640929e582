"""Observation passes: the resources of a stack observed beside its operations.

A pass is a row per stack, and a row for each resource that is selected and not yet observed; at most `WINDOW`
per pass. A message carries only a resource id, and may be lost or repeated: the sweep sends it again. The
verdict is written to the resource's row by the statement that removes the row of the observation. It never
overwrites the result of an operation: the resource must still have the same object and the same open
operation, and no newer observation.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Final, Literal, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import ObservationMessage
from orchestrator.engine.observation.repairs import Mark
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.visit_sql import VISIT_COLUMNS, VISIT_JOINS

Db = Connection[TupleRow]
Verdict = Literal["ready", "not-ready", "absent", "error"]

WINDOW: Final = 16  # maximum number of resources of a pass that are being observed
SLICE: Final = 500  # resources read at a time to select the next for observation
SHOWN: Final = {"absent": "Observed absent", "error": "Observed in error"}  # verdicts with an event
MARKS: Final = {"absent": Mark("MISSING", "recreate"), "error": Mark("FAILED", "replace")}

# The event has no physical id: it is not an event of the stack's state (`traversals/queued_actions.py`).
BEGIN = """
WITH p AS (
    INSERT INTO observation_pass (stack_id, credential_id) VALUES (%(stack_id)s, %(credential_id)s)
    ON CONFLICT (stack_id) DO NOTHING
    RETURNING stack_id
)
INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason)
SELECT s.id, s.name, 'OS::Heat::Stack', 'CHECK', 'IN_PROGRESS', %(reason)s
FROM p JOIN stack s ON s.id = p.stack_id
"""

LOCK = """
SELECT after_name, after_id, exhausted, (
    SELECT count(*) FROM observation o WHERE o.stack_id = p.stack_id)
FROM observation_pass p WHERE p.stack_id = %(stack_id)s FOR UPDATE SKIP LOCKED
"""

CANDIDATES = """
SELECT r.id, r.name, coalesce(r.runs_as, r.type),
    r.physical_id IS NOT NULL AND NOT r.deposed AND r.action <> 'DELETE' AND coalesce(r.op, '') <> 'DISCARD'
FROM resource r WHERE r.stack_id = %(stack_id)s AND (r.name, r.id) > (%(after_name)s, %(after_id)s)
ORDER BY r.name, r.id LIMIT %(limit)s
"""

SELECT_NEXT = """
WITH p AS (
    UPDATE observation_pass
    SET after_name = %(after_name)s, after_id = %(after_id)s, exhausted = %(exhausted)s,
        due_at = now() + make_interval(secs => %(seconds)s)
    WHERE stack_id = %(stack_id)s RETURNING stack_id
), o AS (
    INSERT INTO observation (resource_id, stack_id, due_at)
    SELECT x.id, p.stack_id, now() + make_interval(secs => %(re_enqueue_seconds)s)
    FROM p CROSS JOIN unnest(%(ids)s::bigint[]) AS x(id)
    ON CONFLICT (resource_id) DO NOTHING
    RETURNING resource_id
)
SELECT o.resource_id, coalesce(r.name, ''), root.uuid::text
FROM o JOIN stack s ON s.id = %(stack_id)s JOIN stack root ON root.id = s.root_id
LEFT JOIN resource r ON r.id = o.resource_id
"""

# An outage that began after the last successful observation is not over.
UNREACHABLE: Final = "r.unreachable_since > coalesce(r.observed_at, '-infinity')"

END = f"""
WITH p AS (
    DELETE FROM observation_pass p WHERE p.stack_id = %(stack_id)s AND p.exhausted
        AND NOT EXISTS (SELECT 1 FROM observation o WHERE o.stack_id = p.stack_id)
    RETURNING p.stack_id, p.requested_at
), counted AS (
    SELECT count(*) FILTER (WHERE r.observed = 'ready') AS ready,
        count(*) FILTER (WHERE r.observed = 'not-ready') AS not_ready,
        count(*) FILTER (WHERE r.observed = 'absent') AS absent,
        count(*) FILTER (WHERE r.observed IN ('error', 'failed')) AS errors
    FROM p JOIN resource r ON r.stack_id = p.stack_id AND r.observed_at >= p.requested_at
        AND r.physical_id IS NOT NULL AND NOT coalesce({UNREACHABLE}, false)
), unreachable AS (
    SELECT count(*) AS number FROM p JOIN resource r ON r.stack_id = p.stack_id AND {UNREACHABLE}
)
INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason)
SELECT s.id, s.name, 'OS::Heat::Stack', 'CHECK', 'COMPLETE',
    'Observation of the resources ended: ' || ready || ' ready, ' || not_ready || ' not ready, ' || absent
    || ' absent, ' || errors || ' in error, ' || unreachable.number || ' unreachable'
FROM p JOIN stack s ON s.id = p.stack_id CROSS JOIN counted CROSS JOIN unreachable
"""

READ = f"""
SELECT {VISIT_COLUMNS}, clock_timestamp(), r.op_started_at, n.tries, (
    SELECT p.credential_id FROM observation_pass p WHERE p.stack_id = s.id)
FROM (
    SELECT 0::bigint AS id, 'observation' AS kind, 0::bigint AS traversal, 'observe' AS queue,
        r.name AS label,
        0 AS retry_count, 0 AS lost_leases, r.stack_id, r.id AS resource_id, NULL::bigint AS definition_id,
        '{{}}'::text[] AS hooks, 0 AS unreachable_tries, false AS absent, NULL::jsonb AS refused_since,
        NULL::text AS refusal,
        NULL::timestamptz AS waiting_since, NULL::bigint[] AS needed_by, NULL::bigint[] AS early_needed_by,
        o.tries
    FROM observation o JOIN resource r ON r.id = o.resource_id
    WHERE o.resource_id = %(resource_id)s) AS n
{VISIT_JOINS}"""

OWNER = "SELECT stack_id FROM observation WHERE resource_id = %(resource_id)s"
DROP = "DELETE FROM observation WHERE resource_id = %(resource_id)s"
POSTPONE = """
UPDATE observation SET tries = tries + %(tries)s,
    due_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE resource_id = %(resource_id)s
"""

_RECORD = """
WITH taken AS (
    DELETE FROM observation WHERE resource_id = %(resource_id)s RETURNING resource_id
), r AS (
    UPDATE resource r SET {changes}
    FROM taken
    WHERE r.id = taken.resource_id AND r.physical_id = %(physical_id)s AND r.attempt = %(attempt)s
        AND r.op IS NOT DISTINCT FROM %(op)s AND r.op_started_at IS NOT DISTINCT FROM %(op_started_at)s
        AND (r.observed_at IS NULL OR r.observed_at < %(at)s)
    RETURNING r.stack_id, r.name, r.type, r.physical_id, r.unreachable_since
)
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT r.stack_id, r.name, r.type, r.physical_id, 'CHECK', 'FAILED', %(event)s FROM r
WHERE {shown}
"""
RECORD_VERDICT = _RECORD.format(
    changes="""observed = %(verdict)s, observed_at = %(at)s, observed_reason = %(reason)s,
        repair = %(repair)s, unreachable_since = NULL, unreachable_reason = NULL""",
    shown="%(event)s::text IS NOT NULL",
)
RECORD_UNREACHABLE = _RECORD.format(
    changes=f"""unreachable_reason = %(reason)s,
        unreachable_since = CASE WHEN {UNREACHABLE} THEN r.unreachable_since ELSE %(at)s END""",
    shown="r.unreachable_since = %(at)s",  # an event per outage
)

CHILD = """
SELECT c.id, c.name, c.action, c.status, c.status_reason FROM stack c
WHERE c.parent_resource_id = %(resource_id)s AND c.deleted_at IS NULL
"""

HAS_DUE: Final = "EXISTS (SELECT 1 FROM observation WHERE due_at <= now())"
DUE = """
WITH o AS MATERIALIZED (
    SELECT resource_id FROM observation WHERE due_at <= now()
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), sent AS (
    UPDATE observation x SET due_at = now() + make_interval(secs => %(seconds)s)
    FROM o WHERE x.resource_id = o.resource_id RETURNING x.resource_id, x.stack_id
)
SELECT sent.resource_id, coalesce(r.name, ''), root.uuid::text
FROM sent JOIN stack s ON s.id = sent.stack_id JOIN stack root ON root.id = s.root_id
LEFT JOIN resource r ON r.id = sent.resource_id
"""
HAS_DUE_PASSES: Final = "EXISTS (SELECT 1 FROM observation_pass WHERE due_at <= now())"
DUE_PASSES = """
SELECT stack_id FROM observation_pass WHERE due_at <= now() ORDER BY due_at LIMIT %(limit)s
"""


class Selection(NamedTuple):
    """The state of a locked pass."""

    after_name: str
    after_id: int
    exhausted: bool
    under_way: int  # selected resources that are not observed yet


class Candidate(NamedTuple):
    """A resource in the order of a pass."""

    id: int
    name: str
    type_name: str
    has_object: bool


class Selected(NamedTuple):
    """A resource to be observed, in the form of a visit, with the time of its reading."""

    visit: ResourceVisit
    at: dt.datetime
    op_started_at: dt.datetime | None
    tries: int
    credential_id: int | None  # of the caller who started the pass


class ChildStack(NamedTuple):
    """The child stack of a resource."""

    id: int
    name: str
    action: str
    status: str
    status_reason: str


def begin(db: Db, stack_id: int, reason: str, credential_id: int | None = None) -> bool:
    """Insert a pass with its first event; return False if the stack has a pass already."""
    values = {"stack_id": stack_id, "reason": reason, "credential_id": credential_id}
    return db.execute(BEGIN, values).rowcount == 1


def lock(db: Db, stack_id: int) -> Selection | None:
    """Lock a pass for the rest of the transaction; return None if it is gone or locked."""
    row = db.execute(LOCK, {"stack_id": stack_id}).fetchone()
    return None if row is None else Selection(*row)


def candidates(db: Db, stack_id: int, after_name: str, after_id: int) -> list[Candidate]:
    """Return the next resources of a stack by name, at most SLICE."""
    values = {"stack_id": stack_id, "after_name": after_name, "after_id": after_id, "limit": SLICE}
    return [Candidate(*row) for row in db.execute(CANDIDATES, values).fetchall()]


def select_next(
    db: Db,
    stack_id: int,
    ids: Collection[int],
    *,
    after: tuple[str, int],
    exhausted: bool,
    seconds: float,
    re_enqueue_seconds: float,
) -> list[ObservationMessage]:
    """Select resources of a locked pass; the sweep continues the pass in `seconds`."""
    values = {
        "stack_id": stack_id,
        "ids": list(ids),
        "after_name": after[0],
        "after_id": after[1],
        "exhausted": exhausted,
        "seconds": seconds,
        "re_enqueue_seconds": re_enqueue_seconds,
    }
    return _messages(db.execute(SELECT_NEXT, values).fetchall())


def end(db: Db, stack_id: int) -> None:
    """End a pass whose resources are all observed, with an event."""
    db.execute(END, {"stack_id": stack_id})


def owner(db: Db, resource_id: int) -> int | None:
    """Return the stack of a resource that is still to be observed."""
    row = db.execute(OWNER, {"resource_id": resource_id}).fetchone()
    return None if row is None else row[0]


def read(db: Db, resource_id: int) -> Selected | None:
    """Read a resource that is to be observed; return None if it is gone."""
    row = db.execute(READ, {"resource_id": resource_id}).fetchone()
    return None if row is None else Selected(repository.resource_visit(row), *row[-4:])


def drop(db: Db, resource_id: int) -> None:
    """Remove the observation of a resource without a verdict."""
    db.execute(DROP, {"resource_id": resource_id})


def postpone(db: Db, resource_id: int, seconds: float, *, tries: int) -> None:
    """Observe the resource again later, after so many more `tries` that have failed."""
    db.execute(POSTPONE, {"resource_id": resource_id, "seconds": seconds, "tries": tries})


def record_verdict(db: Db, selected: Selected, verdict: Verdict, reason: str) -> None:
    """Write the verdict of a successful observation, with an event for an absent object or one in error."""
    event = f"{SHOWN[verdict]}: {reason}" if verdict in SHOWN else None
    mark = MARKS.get(verdict)
    values = {**_fence(selected), "verdict": verdict, "reason": reason or None, "event": event}
    values["repair"] = None if mark is None else Jsonb(mark.as_json())
    db.execute(RECORD_VERDICT, values)


def record_unreachable(db: Db, selected: Selected, reason: str) -> None:
    """Record that the resource could not be observed; the last successful observation stays."""
    values = {**_fence(selected), "reason": reason, "event": f"It could not be observed: {reason}"}
    db.execute(RECORD_UNREACHABLE, values)


def _fence(selected: Selected) -> dict[str, object]:
    resource = selected.visit.resource
    return {
        "resource_id": resource.id,
        "physical_id": resource.physical_id,
        "attempt": resource.attempt,
        "op": resource.op,
        "op_started_at": selected.op_started_at,
        "at": selected.at,
    }


def child_of(db: Db, resource_id: int) -> ChildStack | None:
    """Return the child stack of a resource, None if it does not exist."""
    row = db.execute(CHILD, {"resource_id": resource_id}).fetchone()
    return None if row is None else ChildStack(*row)


def due(db: Db, seconds: float, limit: int) -> list[ObservationMessage]:
    """Return messages for the resources whose message was lost or postponed."""
    return _messages(db.execute(DUE, {"seconds": seconds, "limit": limit}).fetchall())


def due_passes(db: Db, limit: int = 100) -> list[int]:
    """Return the stacks whose pass must be continued."""
    return [row[0] for row in db.execute(DUE_PASSES, {"limit": limit}).fetchall()]


def _messages(rows: Sequence[TupleRow]) -> list[ObservationMessage]:
    return [ObservationMessage(*row) for row in rows]
