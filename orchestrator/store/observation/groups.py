"""Observation groups: which are due, who holds them, and the end of a round.

Every statement is its own transaction. A message carries only the id of a group and may be lost or
repeated: `enqueued_at` is set with the message and cleared by the claim, so a second message finds nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import RoundMessage
from orchestrator.engine.observation.drift import GroupKind

Db = Connection[TupleRow]

LEASE_SECONDS: Final = 60.0  # renewed with each page
MESSAGE_SECONDS: Final = 30.0  # after which an unclaimed message counts as lost
MAX_LEASE: Final = 2**63

# The projects with live stacks, read by steps in the index: as many as there are projects, not stacks.
START_DISCOVERIES = """
WITH RECURSIVE p AS (
    (SELECT project_id FROM stack WHERE deleted_at IS NULL ORDER BY project_id LIMIT 1)
    UNION ALL
    SELECT (SELECT s.project_id FROM stack s WHERE s.deleted_at IS NULL AND s.project_id > p.project_id
        ORDER BY s.project_id LIMIT 1)
    FROM p WHERE p.project_id IS NOT NULL
)
INSERT INTO observation_group (project_id, region, service, kind, due_at)
SELECT p.project_id, %(region)s, '', 'discovery', now() + make_interval(secs => %(seconds)s * random())
FROM p WHERE p.project_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM observation_group g
    WHERE g.project_id = p.project_id AND g.region = %(region)s AND g.service = '' AND g.kind = 'discovery')
ON CONFLICT (project_id, region, service, kind) DO NOTHING
"""

INSERT = """
INSERT INTO observation_group AS g (project_id, region, service, kind, types)
SELECT %(project_id)s, %(region)s, x.service, x.kind, array_agg(x.type ORDER BY x.type)
FROM unnest(%(services)s::text[], %(kinds)s::text[], %(types)s::text[]) AS x(service, kind, type)
GROUP BY x.service, x.kind
ON CONFLICT (project_id, region, service, kind) DO UPDATE SET types = excluded.types
WHERE g.types <> excluded.types
"""

# Groups of services that the project's resources no longer use; verdicts end with their resources.
REMOVE_OTHERS = """
DELETE FROM observation_group g
WHERE g.project_id = %(project_id)s AND g.region = %(region)s AND g.service <> ''
    AND (g.service, g.kind) NOT IN (
        SELECT * FROM unnest(%(services)s::text[], %(kinds)s::text[]))
    AND (g.leased_until IS NULL OR g.leased_until < now())
    AND NOT EXISTS (SELECT 1 FROM resource_verdict v WHERE v.group_id = g.id)
"""
REMOVE = """
DELETE FROM observation_group g WHERE g.id = %(id)s AND g.lease = %(lease)s
    AND NOT EXISTS (SELECT 1 FROM stack s WHERE s.project_id = g.project_id AND s.deleted_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM observation_group o WHERE o.project_id = g.project_id AND o.service <> '')
"""
REMOVE_NOTIFIED = """
WITH g AS (DELETE FROM observation_group WHERE project_id = %(project_id)s AND kind = 'notified')
DELETE FROM observation_notice WHERE project_id = %(project_id)s
"""

HAS_DUE: Final = "EXISTS (SELECT 1 FROM observation_group WHERE due_at <= now())"
DUE = """
WITH g AS MATERIALIZED (
    SELECT id FROM observation_group
    WHERE due_at <= now() AND (leased_until IS NULL OR leased_until < now())
        AND (enqueued_at IS NULL OR enqueued_at < now() - make_interval(secs => %(message_seconds)s))
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE observation_group o SET enqueued_at = now() FROM g WHERE o.id = g.id
RETURNING o.id, o.service || ' ' || o.kind, o.project_id
"""

CLAIM = """
UPDATE observation_group SET enqueued_at = NULL, lease = %(lease)s,
    leased_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s),
    round_at = CASE WHEN after_id > 0 THEN round_at ELSE clock_timestamp() END
WHERE id = %(id)s AND enqueued_at IS NOT NULL AND (leased_until IS NULL OR leased_until < clock_timestamp())
RETURNING id, project_id, region, service, kind, lease, round_at, observed_at, interval_seconds, after_id,
    credential_id, failing_since IS NOT NULL, loss_since IS NOT NULL, objects, types
"""

_GROUP = """id, project_id, region, service, kind, coalesce(lease, 0), clock_timestamp(), observed_at,
    interval_seconds, after_id, credential_id, failing_since IS NOT NULL, loss_since IS NOT NULL, objects,
    types"""
OF_TYPE = f"""
SELECT {_GROUP} FROM observation_group
WHERE project_id = %(project_id)s AND kind <> 'discovery' AND types @> ARRAY[%(type)s]::text[]
ORDER BY id LIMIT 1
"""

RENEW = """
UPDATE observation_group SET leased_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
WHERE id = %(id)s AND lease = %(lease)s
"""

# A loss ends when most of the objects are back: the verdicts of the group decide.
FINISH = """
UPDATE observation_group SET lease = NULL, leased_until = NULL, after_id = 0,
    due_at = clock_timestamp() + make_interval(secs => %(pause)s), interval_seconds = %(interval)s,
    previous_at = observed_at, observed_at = round_at, rounds = rounds + 1, seconds = %(seconds)s,
    objects = %(objects)s, calls = %(calls)s, credential_id = %(credential_id)s,
    failing_since = NULL, failing_reason = NULL,
    loss_since = CASE WHEN %(lost)s > 0 THEN coalesce(loss_since, now()) WHEN %(restored)s THEN NULL
        ELSE loss_since END,
    lost = CASE WHEN %(lost)s > 0 THEN %(lost)s WHEN %(restored)s THEN NULL ELSE lost END,
    lost_of = CASE WHEN %(lost)s > 0 THEN %(objects)s WHEN %(restored)s THEN NULL ELSE lost_of END,
    loss_approved_at = CASE WHEN %(lost)s > 0 OR %(restored)s THEN NULL ELSE loss_approved_at END,
    loss_approved_by = CASE WHEN %(lost)s > 0 OR %(restored)s THEN NULL ELSE loss_approved_by END
WHERE id = %(id)s AND lease = %(lease)s
"""

# The round is to be continued by another task.
CONTINUE = """
UPDATE observation_group SET lease = NULL, leased_until = NULL, after_id = %(after_id)s,
    due_at = clock_timestamp() + make_interval(secs => %(pause)s), objects = %(objects)s
WHERE id = %(id)s AND lease = %(lease)s
"""

FAIL = """
UPDATE observation_group SET lease = NULL, leased_until = NULL, after_id = 0,
    due_at = clock_timestamp() + make_interval(secs => %(pause)s), interval_seconds = %(interval)s,
    failing_since = coalesce(failing_since, now()), failing_reason = coalesce(failing_reason, %(reason)s)
WHERE id = %(id)s AND lease = %(lease)s
"""

# Observe soon: after a change.
HASTEN = """
UPDATE observation_group g SET due_at = now(), interval_seconds = 0
FROM (SELECT id FROM observation_group
    WHERE project_id = %(project_id)s AND service = ANY(%(services)s) AND due_at > now() + interval '1 second'
    ORDER BY id FOR UPDATE SKIP LOCKED) AS x
WHERE g.id = x.id
"""

CREDENTIALS = """
SELECT c.stack_id FROM credential c
WHERE c.project_id = %(project_id)s AND c.state = 'held' AND c.stack_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM observation_fault f WHERE f.root_id = c.stack_id
        AND f.tried_at > greatest(c.created_at, now() - make_interval(secs => %(retry_seconds)s)))
GROUP BY c.stack_id
ORDER BY c.stack_id = %(preferred)s DESC, c.stack_id LIMIT %(limit)s
"""

RECORD_FAULT = """
WITH f AS (
    INSERT INTO observation_fault AS f (root_id, project_id, reason)
    SELECT s.id, s.project_id, %(reason)s FROM stack s WHERE s.id = %(root_id)s AND s.deleted_at IS NULL
    ON CONFLICT (root_id) DO UPDATE SET tried_at = now()
    RETURNING root_id, since = now() AS begun
)
INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason)
SELECT s.id, s.name, 'OS::Heat::Stack', 'CHECK', 'FAILED',
    'The resources cannot be observed: the credential of the stack is refused: ' || %(reason)s
FROM f JOIN stack s ON s.id = f.root_id WHERE f.begun
"""
CLEAR_FAULT = "DELETE FROM observation_fault WHERE root_id = %(root_id)s"
CLEAR_OLD_FAULTS = """
DELETE FROM observation_fault f WHERE f.project_id = %(project_id)s
    AND (NOT EXISTS (SELECT 1 FROM stack s WHERE s.id = f.root_id AND s.deleted_at IS NULL)
        OR EXISTS (SELECT 1 FROM credential c
            WHERE c.stack_id = f.root_id AND c.state = 'held' AND c.created_at > f.tried_at))
"""
FAULTS = "SELECT root_id, reason FROM observation_fault WHERE project_id = %(project_id)s"


class Group(NamedTuple):
    """A claimed group."""

    id: int
    project_id: str
    region: str
    service: str
    kind: GroupKind
    lease: int
    round_at: dt.datetime
    observed_at: dt.datetime | None
    interval_seconds: float
    after_id: int
    credential_id: int | None
    failing: bool
    lossy: bool  # many objects are lost, and are not back
    objects: int  # of the round so far, or of the last one
    types: Sequence[str]


class ObservedType(NamedTuple):
    """A type in use, and its group."""

    service: str
    kind: GroupKind
    name: str


class RoundEnd(NamedTuple):
    """The facts of a complete round."""

    pause: float  # seconds until the next round
    interval: float
    seconds: float
    objects: int
    calls: int
    credential_id: int | None = None
    lost: int = 0  # objects, if so many that no repair is to be started
    restored: bool = False  # few objects are missing


def start_discoveries(db: Db, region: str, seconds: float) -> int:
    """Insert the missing groups of projects with stacks, due within `seconds`; return their number."""
    return db.execute(START_DISCOVERIES, {"region": region, "seconds": seconds}).rowcount


def replace_services(db: Db, project_id: str, region: str, types: Iterable[ObservedType]) -> None:
    """Insert the missing groups of the types that a project uses, and remove all others."""
    used = sorted(set(types))
    values = {
        "project_id": project_id,
        "region": region,
        "services": [type_.service for type_ in used],
        "kinds": [type_.kind for type_ in used],
        "types": [type_.name for type_ in used],
    }
    db.execute(INSERT, values)
    db.execute(REMOVE_OTHERS, values)
    db.execute(CLEAR_OLD_FAULTS, values)


def remove_unused(db: Db, group: Group) -> bool:
    """Remove the discovery of a project without stacks and groups. Return whether it is removed."""
    removed = db.execute(REMOVE, {"id": group.id, "lease": group.lease}).rowcount == 1
    if removed:
        db.execute(REMOVE_NOTIFIED, {"project_id": group.project_id})
    return removed


def due(db: Db, limit: int) -> list[RoundMessage]:
    """Return messages for the groups that are due and have no message."""
    rows = db.execute(DUE, {"limit": limit, "message_seconds": MESSAGE_SECONDS}).fetchall()
    return [RoundMessage(*row) for row in rows]


def claim(db: Db, group_id: int, lease: int) -> Group | None:
    """Claim a group for a round; None if another task has it, or has had it for this message."""
    values = {"id": group_id, "lease": lease, "lease_seconds": LEASE_SECONDS}
    row = db.execute(CLAIM, values).fetchone()
    return None if row is None else Group(*row)


def of_type(db: Db, project_id: str, type_name: str) -> Group | None:
    """Return the group that observes a type, as if a round had just begun; it is not claimed."""
    row = db.execute(OF_TYPE, {"project_id": project_id, "type": type_name}).fetchone()
    return None if row is None else Group(*row)


def renew(db: Db, group: Group) -> bool:
    """Renew the lease of a group; False: it is lost."""
    values = {"id": group.id, "lease": group.lease, "lease_seconds": LEASE_SECONDS}
    return db.execute(RENEW, values).rowcount == 1


def finish(db: Db, group: Group, end: RoundEnd) -> None:
    """End a complete round."""
    db.execute(FINISH, {"id": group.id, "lease": group.lease, **end._asdict()})


def proceed(db: Db, group: Group, after_id: int, objects: int, pause: float) -> None:
    """End a task in the middle of a round."""
    values = {"after_id": after_id, "objects": objects, "pause": pause}
    db.execute(CONTINUE, {"id": group.id, "lease": group.lease, **values})


def fail(db: Db, group: Group, reason: str, interval: float, pause: float) -> None:
    """End a round in which the group could not be observed: all its resources are unknown."""
    values = {"reason": reason, "interval": interval, "pause": pause}
    db.execute(FAIL, {"id": group.id, "lease": group.lease, **values})


def hasten(db: Db, project_id: str, services: Iterable[str]) -> None:
    """Make the groups of these services due."""
    db.execute(HASTEN, {"project_id": project_id, "services": list(services)})


def credentials(
    db: Db, project_id: str, preferred: int | None, retry_seconds: float, limit: int
) -> list[int]:
    """Return the root stacks whose credential may read the lists of a project, the preferred one first."""
    values = {
        "project_id": project_id,
        "preferred": preferred or 0,
        "retry_seconds": retry_seconds,
        "limit": limit,
    }
    return [row[0] for row in db.execute(CREDENTIALS, values).fetchall()]


def record_fault(db: Db, root_id: int, reason: str) -> None:
    """Record that the credential of a stack tree is refused; with an event, once."""
    db.execute(RECORD_FAULT, {"root_id": root_id, "reason": reason})


def clear_fault(db: Db, root_id: int) -> None:
    """Record that the credential of a stack tree is accepted again."""
    db.execute(CLEAR_FAULT, {"root_id": root_id})


def faults(db: Db, project_id: str) -> dict[int, str]:
    """Return the reasons by root stack."""
    return {row[0]: row[1] for row in db.execute(FAULTS, {"project_id": project_id}).fetchall()}
