"""Objects that notifications name, and the group that observes them (operations/adr/0020).

A row per object of a resource, however often it is named, and at most MAX_PENDING per project. A round takes
the due rows, and removes those that were not named again meanwhile.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import RoundMessage
from orchestrator.store.observation.groups import LEASE_SECONDS, Group
from orchestrator.store.stacks.physical_ids import IS_NAMED

Db = Connection[TupleRow]

MAX_PENDING: Final = 1_000  # objects of a project
REPEATED_SECONDS: Final = 0.2  # within which a repeated notification writes nothing

NOTE: Final = f"""
WITH r AS MATERIALIZED (
    SELECT r.physical_id, r.stack_id FROM resource r
    WHERE {IS_NAMED} AND NOT r.deposed AND r.action <> 'DELETE'
), x AS MATERIALIZED (
    SELECT DISTINCT r.physical_id AS id FROM r JOIN stack s ON s.id = r.stack_id
    WHERE s.project_id = %(project_id)s AND s.deleted_at IS NULL
), room AS MATERIALIZED (
    SELECT greatest(%(most)s - (SELECT count(*) FROM observation_notice WHERE project_id = %(project_id)s), 0)
        AS n
), known AS (
    UPDATE observation_notice o SET noted_at = now(), due_at = least(o.due_at, now()) FROM x
    WHERE o.project_id = %(project_id)s AND o.physical_id = x.id
        AND o.noted_at < now() - make_interval(secs => %(repeated_seconds)s)
), added AS (
    INSERT INTO observation_notice (project_id, physical_id)
    SELECT %(project_id)s, x.id FROM x WHERE NOT EXISTS (
        SELECT 1 FROM observation_notice o WHERE o.project_id = %(project_id)s AND o.physical_id = x.id)
    ORDER BY x.id LIMIT (SELECT n FROM room)
    ON CONFLICT DO NOTHING
)
SELECT (SELECT count(*) FROM x), (SELECT count(*) FROM x) > (SELECT n FROM room)
"""
PROJECTS: Final = "SELECT DISTINCT project_id FROM observation_group WHERE region = %(region)s"
# The next round begins no earlier than the pause after the last one. Without an effect if one is due anyway:
# so a flood writes a row per round. Projects without stacks have no group.
RING: Final = """
INSERT INTO observation_group AS g (project_id, region, service, kind, due_at, enqueued_at)
SELECT %(project_id)s, %(region)s, '', 'notified', now(), now()
WHERE EXISTS (SELECT 1 FROM stack s WHERE s.project_id = %(project_id)s AND s.deleted_at IS NULL)
ON CONFLICT (project_id, region, service, kind) DO UPDATE SET
    due_at = greatest(now(), g.observed_at + make_interval(secs => g.interval_seconds)),
    enqueued_at = CASE WHEN g.leased_until IS NULL OR g.leased_until < now() THEN
        CASE WHEN now() >= coalesce(g.observed_at + make_interval(secs => g.interval_seconds), now())
            THEN now() END END
WHERE g.due_at > greatest(now(), g.observed_at + make_interval(secs => g.interval_seconds))
RETURNING id, enqueued_at IS NOT NULL
"""
TAKE: Final = """
SELECT physical_id, noted_at FROM observation_notice
WHERE project_id = %(project_id)s AND due_at <= now() ORDER BY due_at LIMIT %(limit)s
"""
REMOVE: Final = """
DELETE FROM observation_notice o USING unnest(%(ids)s::text[], %(noted)s::timestamptz[]) AS x(id, noted_at)
WHERE o.project_id = %(project_id)s AND o.physical_id = x.id AND o.noted_at = x.noted_at
"""
POSTPONE: Final = """
UPDATE observation_notice SET due_at = now() + make_interval(secs => %(seconds)s)
WHERE project_id = %(project_id)s AND physical_id = ANY(%(ids)s)
"""
FINISH: Final = """
UPDATE observation_group SET lease = NULL, leased_until = NULL, rounds = rounds + 1, seconds = %(seconds)s,
    objects = %(objects)s, calls = %(calls)s, observed_at = clock_timestamp(), interval_seconds = %(pause)s,
    due_at = 'infinity'
WHERE id = %(id)s AND lease = %(lease)s
"""
# After FINISH: notifications that arrived during the round, and postponed objects.
CONTINUE: Final = """
UPDATE observation_group g SET due_at = greatest(
    (SELECT min(due_at) FROM observation_notice o WHERE o.project_id = g.project_id),
    g.observed_at + make_interval(secs => g.interval_seconds))
WHERE g.id = %(id)s AND EXISTS (SELECT 1 FROM observation_notice o WHERE o.project_id = g.project_id)
"""
# A group of a service is held for some of its objects; its round does not begin meanwhile.
HOLD: Final = """
UPDATE observation_group SET lease = %(lease)s,
    leased_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
WHERE project_id = %(project_id)s AND region = %(region)s AND service = %(service)s AND kind = %(kind)s
    AND (leased_until IS NULL OR leased_until < clock_timestamp())
RETURNING id, project_id, region, service, kind, lease, clock_timestamp(), observed_at, interval_seconds,
    after_id, credential_id, failing_since IS NOT NULL, loss_since IS NOT NULL, objects, types
"""
LET_GO: Final = """
UPDATE observation_group SET lease = NULL, leased_until = NULL,
    loss_since = CASE WHEN %(lost)s > 0 THEN coalesce(loss_since, now()) ELSE loss_since END,
    lost = CASE WHEN %(lost)s > 0 THEN %(lost)s ELSE lost END,
    lost_of = CASE WHEN %(lost)s > 0 THEN objects ELSE lost_of END,
    loss_approved_at = CASE WHEN %(lost)s > 0 THEN NULL ELSE loss_approved_at END,
    loss_approved_by = CASE WHEN %(lost)s > 0 THEN NULL ELSE loss_approved_by END
WHERE id = %(id)s AND lease = %(lease)s
"""
# A round over the lists of a group, for many of its objects: it begins now (with `enqueued_at`), or when
# enough time has passed since the last one.
HASTEN: Final = """
UPDATE observation_group g SET interval_seconds = 0, due_at = least(g.due_at, x.at),
    enqueued_at = CASE WHEN x.at <= now() THEN now() ELSE g.enqueued_at END
FROM (SELECT id, greatest(now(), observed_at + make_interval(secs => greatest(
        %(shortest)s::float8, %(share)s::float8 * coalesce(seconds, 0)))) AS at
    FROM observation_group WHERE id = %(id)s AND (leased_until IS NULL OR leased_until < now())) AS x
WHERE g.id = x.id
RETURNING x.at <= now()
"""
# All groups of a project, if more objects are named than are kept; not more often than the shortest interval.
HASTEN_ALL: Final = """
UPDATE observation_group g SET due_at = now(), interval_seconds = 0
FROM (SELECT id FROM observation_group
    WHERE project_id = %(project_id)s AND kind = 'lists' AND due_at > now()
        AND (observed_at IS NULL OR observed_at < now() - make_interval(secs => %(seconds)s))
    ORDER BY id FOR UPDATE SKIP LOCKED) AS x
WHERE g.id = x.id
"""


class Noted(NamedTuple):
    """How many of the named objects exist, and whether there was no room for all of them."""

    known: int
    is_full: bool


def note(db: Db, project_id: str, ids: Collection[str]) -> Noted:
    """Note those objects that resources of the project have; others leave no trace."""
    values = {
        "project_id": project_id,
        "ids": list(ids),
        "most": MAX_PENDING,
        "repeated_seconds": REPEATED_SECONDS,
    }
    row = db.execute(NOTE, values).fetchone()
    return Noted(0, is_full=False) if row is None else Noted(*row)


def projects(db: Db, region: str) -> list[str]:
    """Return the projects whose objects are observed."""
    return [row[0] for row in db.execute(PROJECTS, {"region": region}).fetchall()]


def ring(db: Db, project_id: str, region: str) -> list[RoundMessage]:
    """Make the observation of noted objects due; return its message if it is to begin now."""
    row = db.execute(RING, {"project_id": project_id, "region": region}).fetchone()
    return [RoundMessage(row[0], "notified", project_id)] if row is not None and row[1] else []


def hasten(db: Db, group: Group, shortest: float, share: float) -> bool:
    """Make a group due that is not held; return whether its round is to begin now. Otherwise it begins
    `shortest` seconds, and `share` durations of the last round, after that.
    """
    values = {"id": group.id, "shortest": shortest, "share": share}
    row = db.execute(HASTEN, values).fetchone()
    return row is not None and bool(row[0])


def hasten_all(db: Db, project_id: str, seconds: float) -> None:
    """Make all groups with lists due that were not observed within some seconds."""
    db.execute(HASTEN_ALL, {"project_id": project_id, "seconds": seconds})


def take(db: Db, project_id: str, limit: int = MAX_PENDING) -> dict[str, dt.datetime]:
    """Return objects that are to be observed now, with the times of their last notifications."""
    return dict(db.execute(TAKE, {"project_id": project_id, "limit": limit}).fetchall())


def remove(db: Db, project_id: str, noted: dict[str, dt.datetime]) -> None:
    """Remove objects that were observed; those that were named again stay."""
    db.execute(REMOVE, {"project_id": project_id, "ids": list(noted), "noted": list(noted.values())})


def postpone(db: Db, project_id: str, ids: Sequence[str], seconds: float) -> None:
    """Observe objects again after some seconds."""
    if ids:
        db.execute(POSTPONE, {"project_id": project_id, "ids": list(ids), "seconds": seconds})


def finish(db: Db, group: Group, *, seconds: float, pause: float, objects: int, calls: int) -> None:
    """End a round of noted objects."""
    values = {"seconds": seconds, "pause": pause, "objects": objects, "calls": calls}
    db.execute(FINISH, {"id": group.id, "lease": group.lease, **values})
    db.execute(CONTINUE, {"id": group.id})


def hold(db: Db, of: Group, service: str, kind: str) -> Group | None:
    """Claim the group of a service for some of its objects; None: it is being observed, or does not exist."""
    values = {
        "project_id": of.project_id,
        "region": of.region,
        "service": service,
        "kind": kind,
        "lease": of.lease,
        "lease_seconds": LEASE_SECONDS,
    }
    row = db.execute(HOLD, values).fetchone()
    return None if row is None else Group(*row)


def let_go(db: Db, group: Group, lost: int) -> None:
    """Give a group back; `lost`: so many of its objects are missing that nothing is to be repaired."""
    db.execute(LET_GO, {"id": group.id, "lease": group.lease, "lost": lost})
