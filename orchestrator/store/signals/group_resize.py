"""Groups resized by a signal: found, claimed, updated through their child stack, and completed when that has
ended.

A group has no node while it is resized, because the traversal of its stack is complete. The follow-up after
the child's end is a signal of the group itself, which the end of the child makes due
(`traversals/completion.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import CheckMessage
from orchestrator.store.nodes import repository
from orchestrator.store.signals.queue import VISIT, WAKE, WRITTEN, Pending, columns

Db = Connection[TupleRow]

MARK_BATCHED = """
WITH touched AS (
    UPDATE resource r SET action = 'UPDATE', updated_at = now()
    FROM stack s
    WHERE s.id = %(stack_id)s AND r.stack_id = s.id AND r.created_at < s.action_started_at AND NOT r.leftover
        AND r.action = 'CREATE' AND r.status = 'COMPLETE' AND r.op IS NULL AND r.lease IS NULL
        AND EXISTS (SELECT 1 FROM stack c WHERE c.parent_resource_id = r.id)
    RETURNING r.stack_id, r.name, r.type, r.physical_id
)
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT t.stack_id, t.name, t.type, t.physical_id, 'UPDATE', x.status, 'state changed'
FROM touched t CROSS JOIN (VALUES (1, 'IN_PROGRESS'), (2, 'COMPLETE')) AS x(nth, status)
ORDER BY t.name, x.nth
"""

FIND = """
SELECT r.id, r.name, coalesce(r.runs_as, r.type),
    r.status = 'COMPLETE' AND r.op IS NULL AND r.action <> 'SUSPEND'
FROM resource r
WHERE r.stack_id = %(stack_id)s AND NOT r.leftover AND r.action <> 'DELETE'
    AND (r.physical_id = %(id)s OR r.reference_id = %(id)s)
LIMIT 1
"""
CLAIM = """
UPDATE resource r
SET lease = %(lease)s, leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE r.id = %(resource_id)s AND r.lease IS NULL AND r.op IS NULL AND r.status = 'COMPLETE'
    AND r.action <> 'SUSPEND'
RETURNING r.id
"""

_HOLDS_LEASE = "r.id = %(resource_id)s AND r.lease = %(lease)s"
_BACK = "RETURNING r.id, r.stack_id, r.name, r.type, r.physical_id, r.action, r.status"
RELEASE = f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL WHERE {_HOLDS_LEASE} {_BACK}), {WAKE}
"""
# An internal signal. "infinity": until the end of the child.
RECORD_STARTED = f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL{WRITTEN} WHERE {_HOLDS_LEASE} {_BACK}),
follow AS (
    INSERT INTO signal (stack_id, resource_id, details, due_at, tries)
    SELECT r.stack_id, r.id, %(details)s, 'infinity', 1 FROM r
), {WAKE}
"""
# A group whose child failed is repaired by the next update, whatever that changes.
WRITE_AND_RELEASE = f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL{WRITTEN} WHERE {_HOLDS_LEASE} {_BACK}),
{WAKE}
"""
ENDED = f"""
WITH r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL{WRITTEN},
        built_digest = CASE WHEN %(failure)s::text IS NULL THEN r.built_digest END
    WHERE {_HOLDS_LEASE} {_BACK}
), over AS (DELETE FROM signal g USING r WHERE g.id = %(signal_id)s AND g.resource_id = r.id),
recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT r.stack_id, r.name, r.type, r.physical_id, 'SIGNAL', 'FAILED', %(failure)s
    FROM r WHERE %(failure)s::text IS NOT NULL
), {WAKE}
"""
WAIT_ON = f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL WHERE {_HOLDS_LEASE} {_BACK}),
late AS (UPDATE signal g SET due_at = 'infinity' FROM r WHERE g.id = %(signal_id)s), {WAKE}
"""


class GroupTarget(NamedTuple):
    """A group."""

    id: int
    name: str
    kind: str
    settled: bool  # and not claimed


def find(db: Db, stack_id: int, id_: str) -> GroupTarget | None:
    """Return the resource of a stack with this reference id or physical id."""
    row = db.execute(FIND, {"stack_id": stack_id, "id": id_}).fetchone()
    return None if row is None else GroupTarget(*row)


def claim(db: Db, resource_id: int, lease: int, seconds: float) -> ResourceVisit | None:
    """Claim a group; return None if it is claimed already or not settled."""
    values = {"resource_id": resource_id, "lease": lease, "seconds": seconds}
    if db.execute(CLAIM, values).fetchone() is None:
        return None
    row = db.execute(VISIT, values).fetchone()
    return None if row is None else repository.resource_visit(row)


def release(db: Db, visit: ResourceVisit, lease: int, root: str) -> list[CheckMessage]:
    """Release a group unchanged."""
    return _run(db, RELEASE, visit, lease, root, {})


def record_started(
    db: Db,
    visit: ResourceVisit,
    lease: int,
    root: str,
    values: Mapping[str, object],
    sealed: str | None,
    details: bytes,
) -> list[CheckMessage] | None:
    """Write a group whose child started to change, and the follow-up; return None if the lease is lost."""
    parameters = {**columns(values, sealed), "details": details}
    done = repository.run(
        db, RECORD_STARTED, {**parameters, "resource_id": visit.resource.id, "lease": lease}, root
    )
    return done.messages if visit.resource.id in done.held else None


def record_pending(
    db: Db, visit: ResourceVisit, lease: int, root: str, values: Mapping[str, object], sealed: str | None
) -> list[CheckMessage]:
    """Write a group's values and release it."""
    return _run(db, WRITE_AND_RELEASE, visit, lease, root, columns(values, sealed))


def record_finished(
    db: Db,
    pending: Pending,
    lease: int,
    root: str,
    values: Mapping[str, object],
    sealed: str | None,
    failure: str | None,
) -> list[CheckMessage]:
    """Write a group whose child has ended, with an event if the child failed."""
    parameters = {**columns(values, sealed), "signal_id": pending.id, "failure": failure}
    return _run(db, ENDED, pending.visit, lease, root, parameters)


def wait_for_child(db: Db, pending: Pending, lease: int, root: str) -> list[CheckMessage]:
    """Resume the child of a group. Run in a transaction that locks the child: otherwise its end could be
    missed.
    """
    return _run(db, WAIT_ON, pending.visit, lease, root, {"signal_id": pending.id})


def mark_batched(db: Db, child_id: int) -> None:
    """Record an update in the stacks among a group's members that were created in any batch but the last.

    Heat visits every nested stack in each batch, changed or not, and clients expect all members to read as
    updated after a rolling update. Here a batch visits only the members it changes.
    """
    db.execute(MARK_BATCHED, {"stack_id": child_id})


def _run(
    db: Db, statement: str, visit: ResourceVisit, lease: int, root: str, values: Mapping[str, object]
) -> list[CheckMessage]:
    parameters = {**values, "resource_id": visit.resource.id, "lease": lease}
    return repository.run(db, statement, parameters, root).messages
