"""The queue of signals to a resource, and marks on its health. Rare, so the statements are separate.

A signal is a row from before its request is answered until its resource has processed it. The processing
worker holds the resource's lease (docs/internals/protocol.md rule 1), so no other operation runs on the
resource. A visit cannot overwrite the result with older values either: resources that accept signals are
claimed before they are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from psycopg import Connection, errors
from psycopg.rows import TupleRow
from psycopg.types.json import Json

from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import CheckMessage, SignalMessage
from orchestrator.engine.states import STATES_VISITED
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.hook_sql import STATE_EVENT
from orchestrator.store.nodes.outcome_builder import WAKE_WAITING_NODE
from orchestrator.store.nodes.visit_sql import LOST_AT, VISIT_COLUMNS, VISIT_JOINS
from orchestrator.store.signals import watchers
from orchestrator.store.stacks.accepted_resources import IS_PLANNING
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

REFUSE = f"""
{STATE_EVENT} FROM resource r WHERE r.id = %(resource_id)s AND r.stack_id = %(stack_id)s
"""

PLANNING = f"SELECT {IS_PLANNING} FROM stack s WHERE s.id = %(stack_id)s"

# An expired lease is claimed only after the sweep has found its check lost. Otherwise that check would end
# without an outcome, and its node with it. Signals of scaling policies to a group wait for the end of an
# operation on the group, and so does the end of a resize; they take over an update whose stack has ended.
CLAIM = f"""
UPDATE resource r
SET lost_at = {LOST_AT}, lease = %(lease)s,
    leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE r.id = %(resource_id)s
    AND (r.lease IS NULL OR r.leased_until < clock_timestamp() AND NOT EXISTS (
        SELECT 1 FROM graph_node n WHERE n.stack_id = r.stack_id AND n.resource_id = r.id
            AND {check_in("n.state", STATES_VISITED)} AND n.lease = r.lease))
    AND (SELECT (g.tries = 0 OR g.due_at <= clock_timestamp())
            AND (r.op IS NULL OR coalesce(g.about, '') NOT IN ('{watchers.ADJUSTMENT}', '{watchers.RESIZED}')
                OR r.op IN ('CREATE', 'UPDATE') AND EXISTS (
                    SELECT 1 FROM stack s WHERE s.id = r.stack_id AND s.status <> 'IN_PROGRESS'))
        FROM signal g WHERE g.resource_id = r.id AND g.due_at <> 'infinity' ORDER BY g.id LIMIT 1)
RETURNING r.id
"""

# Signals that cannot be processed now: retried soon while the resource is claimed, and deleted if the
# resource is gone.
POSTPONE_BUSY = """
WITH gone AS (
    DELETE FROM signal g
    WHERE g.resource_id = %(resource_id)s AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = g.resource_id)
)
UPDATE signal g SET due_at = least(r.leased_until, clock_timestamp() + interval '1 second')
FROM resource r
WHERE g.resource_id = %(resource_id)s AND g.tries = 0 AND r.id = g.resource_id
    AND r.leased_until >= clock_timestamp()
"""

HAS_PENDING = "SELECT EXISTS (SELECT 1 FROM signal g WHERE g.resource_id = %(resource_id)s)"

_VISITED = f"""
FROM (
    SELECT 0::bigint AS id, 'signal' AS kind, 0::bigint AS traversal, 'provider' AS queue, held.name AS label,
        0 AS retry_count, 0 AS lost_leases, held.stack_id, held.id AS resource_id,
        NULL::bigint AS definition_id, '{{}}'::text[] AS hooks, 0 AS unreachable_tries,
        false AS absent, NULL::jsonb AS refused_since,
        NULL::text AS refusal,
        NULL::timestamptz AS waiting_since, NULL::bigint[] AS needed_by, NULL::bigint[] AS early_needed_by
    FROM resource held WHERE held.id = %(resource_id)s AND held.lease = %(lease)s) AS n
{VISIT_JOINS}"""
VISIT = f"SELECT {VISIT_COLUMNS}{_VISITED}"  # a claimed resource, in the form of a visit

# The same, with the oldest signals.
READ_PENDING = f"""
SELECT {VISIT_COLUMNS}, g.ids, g.abouts, g.details, g.tries{_VISITED}
CROSS JOIN LATERAL (
    SELECT array_agg(o.id ORDER BY o.id) AS ids, array_agg(o.about ORDER BY o.id) AS abouts,
        array_agg(o.details ORDER BY o.id) AS details, array_agg(o.tries ORDER BY o.id) AS tries
    FROM (SELECT * FROM signal WHERE resource_id = n.resource_id ORDER BY id LIMIT %(limit)s) AS o) AS g
WHERE g.ids IS NOT NULL
"""

_RELEASE = """
WITH r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL{written}
    WHERE r.id = %(resource_id)s AND r.lease = %(lease)s
    RETURNING r.id, r.stack_id, r.name, r.type, r.physical_id, r.action, r.status
)"""

WRITTEN = """, data = %(data)s, metadata = %(metadata)s, attributes = %(attributes)s,
        reference_id = %(reference_id)s, value_digest = %(value_digest)s, properties = %(properties)s,
        sealed = convert_to(%(sealed)s, 'UTF8')"""

WAKE = f"""
i AS (SELECT 0::bigint AS node_id, r.stack_id, r.id AS resource_id FROM r),
woken AS ({WAKE_WAITING_NODE})
SELECT 'held', r.id, NULL, NULL, NULL FROM r
UNION ALL SELECT 'send', id, traversal, queue, label FROM woken
"""

_TAKEN = """
, taken AS (DELETE FROM signal g USING r WHERE g.id = ANY(%(signal_ids)s) AND g.resource_id = r.id),
recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT r.stack_id, r.name, r.type, r.physical_id, 'SIGNAL', coalesce(x.status, r.status), x.reason
    FROM r CROSS JOIN
        unnest(%(statuses)s::text[], %(reasons)s::text[]) WITH ORDINALITY AS x(status, reason, nth)
    ORDER BY x.nth
), """

RECORD = _RELEASE.format(written=WRITTEN) + _TAKEN + WAKE
DISCARD = """
DELETE FROM signal g USING resource r
WHERE g.resource_id = %(resource_id)s AND r.id = g.resource_id AND r.lease = %(lease)s
"""
DISMISS = _RELEASE.format(written="") + _TAKEN + WAKE
RELEASE = f"{_RELEASE.format(written='')}, {WAKE}"
POSTPONE = (
    _RELEASE.format(written="")
    + """
, late AS (
    UPDATE signal g SET tries = g.tries + 1, due_at = clock_timestamp() + make_interval(secs => %(seconds)s)
    FROM r WHERE g.id = ANY(%(signal_ids)s) AND g.resource_id = r.id
), """
    + WAKE
)

# Watchers of the resource are notified in the transaction that writes the effect of a signal, by a statement
# that starts after the resource's row is locked (store/signals/watchers.py). A watcher with an open operation
# and a waiting node is woken at once: the visit of that node reads the new values. All other watchers get a
# signal, because a visit may have read the old values just now.
NOTIFY_WATCHERS = f"""
WITH w AS MATERIALIZED (
    SELECT r.id, r.stack_id, r.op, r.name FROM watcher w JOIN resource r ON r.id = ANY (ARRAY[w.watcher_id])
    WHERE w.resource_id = %(resource_id)s
), woken AS (
    UPDATE graph_node n SET state = 'queued', due_at = NULL, enqueued_at = now(), re_enqueues = 0
    FROM w JOIN stack s ON s.id = ANY (ARRAY[w.stack_id]) CROSS JOIN LATERAL (
        SELECT m.id FROM graph_node m
        WHERE m.stack_id = w.stack_id AND m.resource_id = w.id
            AND {check_in("m.state", STATES_VISITED)} AND m.due_at IS NOT NULL OFFSET 0) AS held_up
    WHERE w.op IS NOT NULL AND n.id = ANY (ARRAY[held_up.id]) AND n.traversal + 0 = s.traversal
        AND n.state IN ('waiting', '') AND n.due_at IS NOT NULL
    RETURNING n.id, n.traversal, n.queue, n.label, n.resource_id
), notified AS (
    INSERT INTO signal (stack_id, resource_id, details, about, due_at)
    SELECT w.stack_id, w.id, %(details)s, '{watchers.SIGNALLED}', now() + make_interval(secs => %(seconds)s)
    FROM w WHERE NOT EXISTS (SELECT 1 FROM woken WHERE woken.resource_id = w.id)
    RETURNING resource_id
)
SELECT 'notified', w.id, NULL, NULL, w.name FROM notified JOIN w ON w.id = notified.resource_id
UNION ALL SELECT 'send', id, traversal, queue, label FROM woken
"""

# The message was lost or postponed: send it again, with growing delays for signals that were never tried.
HAS_DUE: Final = "EXISTS (SELECT 1 FROM signal WHERE due_at <= now())"
DUE = """
WITH o AS MATERIALIZED (
    SELECT id FROM signal WHERE due_at <= now() ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), enqueued AS (
    UPDATE signal g
    SET due_at = CASE WHEN g.tries = 0 THEN now() + make_interval(secs => %(seconds)s) ELSE g.due_at END
    FROM o WHERE g.id = o.id
    RETURNING g.resource_id, g.stack_id
)
SELECT enqueued.resource_id, coalesce(r.name, ''), root.uuid::text
FROM (SELECT DISTINCT resource_id, stack_id FROM enqueued) AS enqueued
JOIN stack s ON s.id = enqueued.stack_id JOIN stack root ON root.id = s.root_id
LEFT JOIN resource r ON r.id = enqueued.resource_id
"""

FIND = """
SELECT r.id FROM resource r
WHERE r.stack_id = %(stack_id)s AND r.physical_id = %(physical_id)s AND NOT r.deposed LIMIT 2
"""

# Write only the mark, and only while the resource is not claimed.
# An open create or update is given up: the object will be replaced. A child stack ends its own operation.
MARK = f"""
WITH r AS (
    UPDATE resource r SET action = 'CHECK', status = %(status)s::text, status_reason = %(reason)s,
        marked_unhealthy = %(status)s::text = 'FAILED', op = NULL, op_started_at = NULL
    WHERE r.id = %(resource_id)s AND r.stack_id = %(stack_id)s
        AND (r.lease IS NULL OR r.leased_until < clock_timestamp())
        AND CASE WHEN %(status)s::text = 'FAILED' THEN r.action <> 'DELETE'
            ELSE r.action = 'CHECK' AND r.status = 'FAILED' END
        AND (r.op IS NULL OR %(status)s::text = 'FAILED' AND r.op IN ('CREATE', 'UPDATE', 'DISCARD')
            AND NOT EXISTS (SELECT 1 FROM stack c WHERE c.parent_resource_id = r.id AND c.deleted_at IS NULL))
    RETURNING *
), due AS (
    UPDATE graph_node n SET due_at = now() FROM r
    WHERE n.stack_id = r.stack_id AND n.resource_id = r.id AND n.state = 'waiting'
), recorded AS ({STATE_EVENT} FROM r)
SELECT id FROM r
"""
MARKABLE = """
SELECT r.leased_until >= clock_timestamp(), r.op IS NOT NULL FROM resource r WHERE r.id = %(resource_id)s
"""
# A resource is `claimed` for the moment, or `busy` with an operation that cannot be given up.
MarkResult = Literal["done", "claimed", "busy"]


class PendingSignal(NamedTuple):
    """A stored signal."""

    id: int
    about: str | None  # NULL: sent by a client; otherwise an internal signal (store/signals/watchers.py)
    details: bytes  # encrypted
    tries: int


class SignalEffect(NamedTuple):
    """The event that a signal causes; without a status it shows the resource's."""

    reason: str
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """The oldest signals of a claimed resource, with the resource."""

    sent: tuple[PendingSignal, ...]
    visit: ResourceVisit  # without a node

    @property
    def id(self) -> int:
        """The id of the oldest signal."""
        return self.sent[0].id

    @property
    def name(self) -> str:
        """The name of the resource."""
        return self.visit.resource.name


def record_refusal_event(db: Db, stack_id: int, resource_id: int, action: str) -> None:
    """Write the event of a signal that the resource's action does not permit."""
    values = {
        "stack_id": stack_id,
        "resource_id": resource_id,
        "reason": f"Cannot signal resource during {action}",
    }
    db.execute(REFUSE, values)


def is_planning(db: Db, stack_id: int) -> bool:
    """Return whether a planner is still writing rows of the stack's resources."""
    row = db.execute(PLANNING, {"stack_id": stack_id}).fetchone()
    return bool(row and row[0])


def claim(db: Db, resource_id: int, lease: int, seconds: float) -> bool:
    """Claim a resource with a due signal; return False if there is none, or if it is claimed already."""
    values = {"resource_id": resource_id, "lease": lease, "seconds": seconds}
    if fetch_prepared(db, CLAIM, values):
        return True
    fetch_prepared(db, POSTPONE_BUSY, {"resource_id": resource_id})
    return False


def has_pending(db: Db, resource_id: int) -> bool:
    """Return whether a resource has signals to process, now or later.

    Call it after the processed signals are committed: signals that arrived while these existed sent no
    message.
    """
    return bool(fetch_prepared(db, HAS_PENDING, {"resource_id": resource_id})[0][0])


def read_pending(db: Db, resource_id: int, lease: int, limit: int) -> Pending | None:
    """Read the oldest signals of a claimed resource."""
    rows = fetch_prepared(db, READ_PENDING, {"resource_id": resource_id, "lease": lease, "limit": limit})
    if not rows:
        return None
    sent = [PendingSignal(*fields_) for fields_ in zip(*rows[0][-4:], strict=True)]
    return Pending(tuple(sent), repository.resource_visit(rows[0]))


def record(
    db: Db,
    pending: Pending,
    lease: int,
    done: Sequence[PendingSignal],
    events: Sequence[SignalEffect],
    values: Mapping[str, object],
    sealed: str | None,
    effect: bytes,
    ring_seconds: float,
) -> list[CheckMessage | SignalMessage]:
    """Write the effects of signals and release the resource; return the messages for woken nodes.

    Watchers of the resource are woken, or get the signal `effect`.
    """
    parameters = {**columns(values, sealed), **_which(pending, lease, done), **_events(events)}
    root = pending.visit.stack.uuid
    notification = {"details": effect, "seconds": ring_seconds, "resource_id": parameters["resource_id"]}
    while True:
        try:
            with db.transaction():
                ended = repository.run(db, RECORD, parameters, root, tries=1)
                rows = fetch_prepared(db, NOTIFY_WATCHERS, notification) if ended.held else []
        except (errors.DeadlockDetected, errors.SerializationFailure):
            continue
        looks = [SignalMessage(row[1], row[4], root) for row in rows if row[0] == "notified"]
        return [*ended.messages, *repository.settled(rows, root).messages, *looks]


def columns(values: Mapping[str, object], sealed: str | None) -> dict[str, Any]:
    """Return a resource's values as parameters of `WRITTEN`."""
    shown = {} if sealed is not None else values
    return {
        "data": Json(shown["data"]) if "data" in shown else None,
        "metadata": Json(shown["metadata"]) if shown.get("metadata") is not None else None,
        "attributes": Json(shown["attributes"]) if "attributes" in shown else None,
        "properties": Json(shown["properties"]) if "properties" in shown else None,
        "reference_id": shown.get("reference_id"),
        "value_digest": values["value_digest"],
        "sealed": sealed,
    }


def reject(
    db: Db, pending: Pending, lease: int, done: Sequence[PendingSignal], events: Sequence[SignalEffect] = ()
) -> list[CheckMessage]:
    """Delete signals that had no effect."""
    return _ended(db, DISMISS, pending, {**_which(pending, lease, done), **_events(events)})


def postpone(
    db: Db, pending: Pending, lease: int, signal: PendingSignal, seconds: float
) -> list[CheckMessage]:
    """Retry a signal later; the signals after it wait."""
    return _ended(db, POSTPONE, pending, {**_which(pending, lease, [signal]), "seconds": seconds})


def release(db: Db, resource_id: int, lease: int) -> list[CheckMessage]:
    """Release a resource whose signals another worker has processed already."""
    return repository.run(db, RELEASE, {"resource_id": resource_id, "lease": lease}, "").messages


def discard(db: Db, resource_id: int, lease: int) -> list[CheckMessage]:
    """Delete all signals of a claimed resource that cannot be read, and release it."""
    values = {"resource_id": resource_id, "lease": lease}
    db.execute(DISCARD, values)
    return release(db, resource_id, lease)


def _ended(db: Db, statement: str, pending: Pending, values: Mapping[str, object]) -> list[CheckMessage]:
    return repository.run(db, statement, values, pending.visit.stack.uuid).messages


def _which(pending: Pending, lease: int, done: Sequence[PendingSignal]) -> dict[str, Any]:
    return {
        "signal_ids": [signal.id for signal in done],
        "resource_id": pending.visit.resource.id,
        "lease": lease,
    }


def _events(events: Sequence[SignalEffect]) -> dict[str, list[str | None]]:
    return {"statuses": [event.status for event in events], "reasons": [event.reason for event in events]}


def due(db: Db, seconds: float, limit: int) -> list[SignalMessage]:
    """Return the resources that have due signals."""
    rows = db.execute(DUE, {"seconds": seconds, "limit": limit}).fetchall()
    return [SignalMessage(*row) for row in rows]


def with_physical_id(db: Db, stack_id: int, physical_id: str) -> list[int]:
    """Return the resources of a stack with a physical id, at most two."""
    values = {"stack_id": stack_id, "physical_id": physical_id}
    return [row[0] for row in db.execute(FIND, values).fetchall()]


def mark(db: Db, stack_id: int, resource_id: int, reason: str, *, healthy: bool) -> MarkResult:
    """Mark a resource's health. A mark that changes nothing succeeds."""
    values = {
        "stack_id": stack_id,
        "resource_id": resource_id,
        "status": "COMPLETE" if healthy else "FAILED",
        "reason": reason,
    }
    if db.execute(MARK, values).fetchone() is not None:
        return "done"
    row = db.execute(MARKABLE, {"resource_id": resource_id}).fetchone()
    if row is not None and row[0]:
        return "claimed"
    return "busy" if row is not None and row[1] else "done"
