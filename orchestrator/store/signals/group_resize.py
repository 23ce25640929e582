"""Groups resized by signals: found, claimed, updated through their child stack, and completed when that has
ended.

The requests of scaling policies are signals of the group itself. A policy's signal is replaced by such a
request in a single statement, so that no accepted signal is lost. The follow-up of a resize is a signal of
the group as well. Signals with the due time `infinity` wait for the end of the child
(`traversals/completion.py`), or for the end of an operation on the group (`resume`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import CheckMessage
from orchestrator.store.nodes import repository
from orchestrator.store.signals.queue import VISIT, WAKE, WRITTEN, Pending, SignalEffect, columns
from orchestrator.store.signals.watchers import ADJUSTMENT, RESIZED

Db = Connection[TupleRow]

MARK_BATCHED = """
WITH touched AS (
    UPDATE resource r SET action = 'UPDATE', updated_at = now()
    FROM stack s
    WHERE s.id = %(stack_id)s AND r.stack_id = s.id AND r.created_at < s.action_started_at AND NOT r.deposed
        AND r.action = 'CREATE' AND r.status = 'COMPLETE' AND r.op IS NULL AND r.lease IS NULL
        AND EXISTS (SELECT 1 FROM stack c WHERE c.parent_resource_id = r.id)
    RETURNING r.stack_id, r.name, r.type, r.physical_id
)
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT t.stack_id, t.name, t.type, t.physical_id, 'UPDATE', x.status, 'state changed'
FROM touched t CROSS JOIN (VALUES (1, 'IN_PROGRESS'), (2, 'COMPLETE')) AS x(nth, status)
ORDER BY t.name, x.nth
"""

FIND = f"""
SELECT r.id, r.name, coalesce(r.runs_as, r.type), r.action,
    (SELECT count(*) FROM signal g WHERE g.resource_id = r.id AND g.about = '{ADJUSTMENT}')
FROM resource r
WHERE r.stack_id = %(stack_id)s AND NOT r.deposed
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


def _forward(written: str) -> str:
    """Return the statement that replaces the signals of a policy by requests to groups."""
    return f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL{written} WHERE {_HOLDS_LEASE} {_BACK}),
taken AS (DELETE FROM signal g USING r WHERE g.id = ANY(%(signal_ids)s) AND g.resource_id = r.id),
recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT r.stack_id, r.name, r.type, r.physical_id, 'SIGNAL', coalesce(x.status, r.status), x.reason
    FROM r CROSS JOIN
        unnest(%(statuses)s::text[], %(reasons)s::text[]) WITH ORDINALITY AS x(status, reason, nth)
    ORDER BY x.nth
), forwarded AS (
    INSERT INTO signal (stack_id, resource_id, details, about, due_at)
    SELECT g.stack_id, g.id, x.details, '{ADJUSTMENT}', now() + make_interval(secs => %(ring_seconds)s)
    FROM r CROSS JOIN
        unnest(%(groups)s::bigint[], %(details)s::bytea[]) WITH ORDINALITY AS x(group_id, details, nth)
    JOIN resource g ON g.id = x.group_id ORDER BY x.nth
), {WAKE}
"""


FORWARD, FORWARD_WRITTEN = _forward(""), _forward(WRITTEN)

# The end of requests to a group, with the event of each policy.
_ANSWERED = """
taken AS (DELETE FROM signal g USING r WHERE g.id = ANY(%(signal_ids)s) AND g.resource_id = r.id),
recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT p.stack_id, p.name, p.type, p.physical_id, 'SIGNAL', coalesce(x.status, p.status), x.reason
    FROM r CROSS JOIN unnest(%(policies)s::bigint[], %(statuses)s::text[], %(reasons)s::text[])
        WITH ORDINALITY AS x(policy_id, status, reason, nth)
    JOIN resource p ON p.id = x.policy_id ORDER BY x.nth
), """
RECORD_STARTED = f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL{WRITTEN} WHERE {_HOLDS_LEASE} {_BACK}),
follow AS (
    INSERT INTO signal (stack_id, resource_id, details, about, due_at, tries)
    SELECT r.stack_id, r.id, %(details)s, '{RESIZED}', 'infinity', 1 FROM r
), {_ANSWERED}{WAKE}
"""
RECORD_UNCHANGED = f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL WHERE {_HOLDS_LEASE} {_BACK}),
{_ANSWERED}{WAKE}
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
), over AS (DELETE FROM signal g USING r WHERE g.id = ANY(%(signal_ids)s) AND g.resource_id = r.id),
recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT r.stack_id, r.name, r.type, r.physical_id, 'SIGNAL', 'FAILED', %(failure)s
    FROM r WHERE %(failure)s::text IS NOT NULL
), {WAKE}
"""
WAIT_ON = f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL WHERE {_HOLDS_LEASE} {_BACK}),
late AS (
    UPDATE signal g SET due_at = 'infinity', tries = greatest(g.tries, 1)
    FROM r WHERE g.id = ANY(%(signal_ids)s)
), {WAKE}
"""
POSTPONE = f"""
WITH r AS (UPDATE resource r SET lease = NULL, leased_until = NULL WHERE {_HOLDS_LEASE} {_BACK}),
late AS (
    UPDATE signal g SET due_at = clock_timestamp() + make_interval(secs => %(seconds)s), tries = g.tries + 1
    FROM r WHERE g.id = ANY(%(signal_ids)s)
), {WAKE}
"""
# The share locks order this statement and the end of the operation, which runs RESUME after it has written
# the resource, and the failure of the stack (`RESUME_REQUESTS` of `traversals/completion.py`).
WAIT_FOR_OPERATION = f"""
WITH r AS MATERIALIZED (
    SELECT r.id FROM resource r JOIN stack s ON s.id = r.stack_id
    WHERE r.id = %(resource_id)s AND r.op IS NOT NULL
        AND (s.status = 'IN_PROGRESS' OR r.op NOT IN ('CREATE', 'UPDATE'))
        AND EXISTS (
            SELECT 1 FROM signal g WHERE g.resource_id = r.id AND g.due_at <> 'infinity'
                AND g.about IN ('{ADJUSTMENT}', '{RESIZED}'))
    FOR SHARE OF r, s
)
UPDATE signal g SET due_at = 'infinity', tries = greatest(g.tries, 1)
FROM r WHERE g.resource_id = r.id AND g.about IN ('{ADJUSTMENT}', '{RESIZED}')
RETURNING g.id
"""
RESUME = f"""
UPDATE signal g SET due_at = now()
WHERE g.resource_id = %(resource_id)s AND g.due_at = 'infinity'
    AND g.about IN ('{ADJUSTMENT}', '{RESIZED}')
"""
REFRESH = f"""
INSERT INTO signal (stack_id, resource_id, details, about, due_at, tries)
SELECT r.stack_id, r.id, %(details)s, '{RESIZED}', now(), 1 FROM resource r WHERE r.id = %(resource_id)s
"""


class GroupTarget(NamedTuple):
    """A group."""

    id: int
    name: str
    kind: str
    action: str
    pending: int  # requests of policies


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


class Answer(NamedTuple):
    """The event of a policy whose request to a group has ended; without a status it has the policy's."""

    policy_id: int
    reason: str
    status: str | None = None


def forward(
    db: Db,
    pending: Pending,
    lease: int,
    signal_ids: Sequence[int],
    events: Sequence[SignalEffect],
    requests: Sequence[tuple[int, bytes]],
    written: tuple[Mapping[str, object], str | None] | None,
    ring_seconds: float,
) -> list[CheckMessage] | None:
    """Replace a policy's signals by requests, each to a group (its id, the details); return None if the lease
    is lost.

    `written` has the policy's values to be written, if they have changed.
    """
    parameters = {
        **({} if written is None else columns(*written)),
        "signal_ids": list(signal_ids),
        "statuses": [event.status for event in events],
        "reasons": [event.reason for event in events],
        "groups": [group for group, _ in requests],
        "details": [details for _, details in requests],
        "ring_seconds": ring_seconds,
    }
    return _run_held(db, FORWARD if written is None else FORWARD_WRITTEN, pending.visit, lease, parameters)


def record_started(
    db: Db,
    visit: ResourceVisit,
    lease: int,
    values: Mapping[str, object],
    sealed: str | None,
    details: bytes,
    signal_ids: Sequence[int],
    answers: Sequence[Answer],
) -> list[CheckMessage] | None:
    """Write a group whose child started to change, and the follow-up; return None if the lease is lost."""
    parameters = {**columns(values, sealed), **_answered(signal_ids, answers), "details": details}
    return _run_held(db, RECORD_STARTED, visit, lease, parameters)


def record_unchanged(
    db: Db, visit: ResourceVisit, lease: int, signal_ids: Sequence[int], answers: Sequence[Answer]
) -> list[CheckMessage]:
    """End requests that do not change the group."""
    return _run(db, RECORD_UNCHANGED, visit, lease, visit.stack.uuid, _answered(signal_ids, answers))


def _answered(signal_ids: Sequence[int], answers: Sequence[Answer]) -> dict[str, Any]:
    return {
        "signal_ids": list(signal_ids),
        "policies": [answer.policy_id for answer in answers],
        "statuses": [answer.status for answer in answers],
        "reasons": [answer.reason for answer in answers],
    }


def record_pending(
    db: Db, visit: ResourceVisit, lease: int, root: str, values: Mapping[str, object], sealed: str | None
) -> list[CheckMessage]:
    """Write a group's values and release it."""
    return _run(db, WRITE_AND_RELEASE, visit, lease, root, columns(values, sealed))


def record_finished(
    db: Db,
    visit: ResourceVisit,
    lease: int,
    signal_ids: Sequence[int],
    values: Mapping[str, object],
    sealed: str | None,
    failure: str | None,
) -> list[CheckMessage]:
    """Write a group whose child has ended, with an event if the child failed."""
    parameters = {**columns(values, sealed), "signal_ids": list(signal_ids), "failure": failure}
    return _run(db, ENDED, visit, lease, visit.stack.uuid, parameters)


def wait_for_child(db: Db, visit: ResourceVisit, lease: int, signal_ids: Sequence[int]) -> list[CheckMessage]:
    """Let signals of a group wait for the end of its child. Run in a transaction that locks the child:
    otherwise its end could be missed.
    """
    return _run(db, WAIT_ON, visit, lease, visit.stack.uuid, {"signal_ids": list(signal_ids)})


def postpone(
    db: Db, visit: ResourceVisit, lease: int, signal_ids: Sequence[int], seconds: float
) -> list[CheckMessage]:
    """Retry requests to a group later."""
    values = {"signal_ids": list(signal_ids), "seconds": seconds}
    return _run(db, POSTPONE, visit, lease, visit.stack.uuid, values)


def wait_for_operation(db: Db, resource_id: int) -> None:
    """Let the requests to a group wait for the end of the operation on it, if any."""
    repository.retried(db, WAIT_FOR_OPERATION, {"resource_id": resource_id})


def resume(db: Db, resource_id: int) -> None:
    """Make the requests due that waited for an operation on a group. Run in the transaction that ends it."""
    db.execute(RESUME, {"resource_id": resource_id})


def refresh(db: Db, resource_id: int, details: bytes) -> None:
    """Let a group read its outputs again: its update has failed."""
    db.execute(REFRESH, {"resource_id": resource_id, "details": details})


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


def _run_held(
    db: Db, statement: str, visit: ResourceVisit, lease: int, values: Mapping[str, object]
) -> list[CheckMessage] | None:
    parameters = {**values, "resource_id": visit.resource.id, "lease": lease}
    done = repository.run(db, statement, parameters, visit.stack.uuid)
    return done.messages if visit.resource.id in done.held else None
