"""Beginning and ending a traversal: the few statements that change a stack's own state
(docs/internals/protocol.md rules 6, 12, 13).

Every one is guarded by the traversal it speaks for, so that a late writer matches no row. A stack's final
event is written by the statement that writes its final state, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import NODE_ENDS, RESOURCE_KINDS, STATES_VISITED, TEMPLATE_ACTIONS, Outcome
from orchestrator.logs import request_id
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.nodes import hooks
from orchestrator.store.tables.base import check_in, check_not_in

STACK_EVENT = """
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT s.id, s.name, 'OS::Heat::Stack', s.uuid::text, s.action, s.status, s.status_reason FROM s
"""

BUMP = (
    """
WITH s AS (
    UPDATE stack
    SET traversal = traversal + 1, halted_traversal = NULL, action = %(action)s, status = 'IN_PROGRESS',
        status_reason = 'Stack ' || %(action)s || ' started', updated_at = now(), action_started_at = now(),
        revision_id = coalesce(%(revision_id)s, revision_id), converge = %(converge)s,
        retain = %(retain)s OR retain AND %(action)s = 'DELETE',  -- deleting again what is being let go of
        request_id = coalesce(%(request_id)s, request_id)  -- a rollback is of the request that failed
    WHERE id = %(stack_id)s AND deleted_at IS NULL
        AND (%(traversal)s::bigint IS NULL OR traversal = %(traversal)s)
    RETURNING *
), told AS ("""
    + STACK_EVENT
    + """ RETURNING id)
SELECT s.traversal, s.root_id, (SELECT x.uuid::text FROM stack x WHERE x.id = s.root_id), told.id
FROM s CROSS JOIN told
"""
)

# A child's end wakes the node of the resource that it stands for (docs/internals/protocol.md rule 12). The
# conditions are those of ix_graph_node_at_work.
WOKEN = f"""
, woken AS (
    UPDATE graph_node n SET state = 'queued', due_at = NULL, rung_at = now(), rings = 0
    FROM s CROSS JOIN LATERAL (
        SELECT m.id FROM graph_node m
        WHERE m.stack_id = s.owner_id AND m.resource_id = s.parent_resource_id
            AND {check_in("m.state", STATES_VISITED)} AND m.due_at IS NOT NULL OFFSET 0) AS held_up
    WHERE n.id = ANY (ARRAY[held_up.id]) AND n.due_at IS NOT NULL
    RETURNING n.id, n.traversal, n.queue, n.label, s.root_id
), followed AS (  -- what a group that was resized has waited for (`signals/group_resize.py`)
    UPDATE signal g SET due_at = now() FROM s
    WHERE g.resource_id = s.parent_resource_id AND g.due_at = 'infinity'
)"""
RINGS = """(
    SELECT json_agg(json_build_array(w.id, w.traversal, w.queue, w.label, x.uuid))
    FROM woken w JOIN stack x ON x.id = w.root_id)"""

# The history: the revision that was being carried out is so no longer, and another one is, unless the action
# has none.
BRING = """
WITH over AS (
    UPDATE revision SET outcome = %(ended)s, ended_at = now()
    WHERE stack_id = %(stack_id)s AND outcome IS NULL AND traversal < %(traversal)s
)
UPDATE revision SET traversal = %(traversal)s, first_event = %(event)s WHERE id = %(revision_id)s
"""

# What hung on the old traversal's end hangs on the new one's (docs/internals/protocol.md rule 12).
INHERIT_FINISH = f"""
WITH old AS (
    UPDATE graph_node SET state = 'dropped', blocked_by = 0, due_at = NULL, rung_at = NULL, lease = NULL,
        leased_until = NULL
    WHERE stack_id = %(stack_id)s AND kind = 'finish' AND traversal < %(traversal)s
        AND {check_not_in("state", NODE_ENDS)}
    RETURNING needed_by
)
SELECT coalesce(array_agg(x.id), '{{}}') FROM old CROSS JOIN LATERAL unnest(old.needed_by) AS x(id)
"""

# A snapshot ends with the traversal that makes it (docs/internals/protocol.md rule 14).
END_SNAPSHOT = """
UPDATE snapshot x SET status = s.status, status_reason = s.status_reason
    FROM s WHERE s.action = 'SNAPSHOT' AND x.stack_id = s.id AND x.traversal = s.traversal
        AND x.action = 'CREATE' AND x.status = 'IN_PROGRESS'
"""
FAIL_UNFINISHED_SNAPSHOT = """
UPDATE snapshot
SET status = 'FAILED', status_reason = 'Stack ' || %(action)s || ' began before it was complete'
WHERE stack_id = %(stack_id)s AND action = 'CREATE' AND status = 'IN_PROGRESS'
"""

FIRST_NODES = """
WITH finish AS (
    INSERT INTO graph_node (stack_id, root_id, traversal, kind, queue, label, needed_by, blocked_by, state)
    VALUES (%(stack_id)s, %(root_id)s, %(traversal)s, 'finish', 'bulk', 'finish',
        %(needed_by)s, 1, 'blocked')
    RETURNING id
)
INSERT INTO graph_node
    (stack_id, root_id, traversal, kind, queue, label, needed_by, state, rung_at, lease, leased_until)
SELECT %(stack_id)s, %(root_id)s, %(traversal)s, 'plan', 'bulk', 'plan', ARRAY[finish.id],
    CASE WHEN %(lease)s::bigint IS NULL THEN 'queued' ELSE 'checking' END, now(),
    %(lease)s,
        CASE WHEN %(lease)s::bigint IS NOT NULL
        THEN clock_timestamp() + make_interval(secs => %(seconds)s) END
FROM finish RETURNING id
"""

# The stack before the node, as BUMP and END_FAILED take them: an update may come at this very moment.
COMPLETE = (
    f"""
WITH k AS MATERIALIZED (
    SELECT s.id FROM stack s WHERE s.id = (SELECT g.stack_id FROM graph_node g WHERE g.id = %(node_id)s)
    FOR UPDATE
), n AS (
    UPDATE graph_node g
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL
    FROM k WHERE g.id = %(node_id)s AND g.stack_id = k.id AND g.state IN ('checking', '')
        AND g.lease = %(lease)s AND g.blocked_by = 0
    RETURNING g.stack_id, g.traversal
), s AS (
    UPDATE stack
    SET status = 'COMPLETE', status_reason = 'Stack ' || action || ' completed successfully' || CASE
            WHEN action = 'CHECK' AND EXISTS (
                SELECT 1 FROM resource r WHERE r.stack_id = stack.id AND r.action = 'CHECK'
                    AND r.status_reason LIKE 'CHECK not supported for %%')
            THEN '. ''CHECK'' not fully supported (see resources)' ELSE '' END,
        good_revision_id = CASE WHEN {check_in("action", TEMPLATE_ACTIONS)}
            THEN revision_id
            ELSE good_revision_id END,
        deleted_at = CASE WHEN action = 'DELETE' THEN now() END
    FROM n WHERE stack.id = ANY (ARRAY[n.stack_id]) AND stack.traversal = n.traversal
        AND stack.halted_traversal IS DISTINCT FROM n.traversal AND stack.status IN ('IN_PROGRESS', '')
    RETURNING stack.*
), r AS (
    UPDATE revision SET outcome = 'complete', ended_at = now() FROM s
    WHERE revision.id = s.revision_id AND revision.traversal = s.traversal AND revision.outcome IS NULL
), let_go AS (  -- what the stack held of its user's rights (`operations/keystone/delegated_credentials.py`)
    UPDATE credential c SET state = 'going', due_at = now() FROM s
    WHERE s.deleted_at IS NOT NULL AND c.stack_id = s.id AND c.state IN ('held', '')
), snapshot_ended AS ("""
    + END_SNAPSHOT
    + """), told AS ("""
    + STACK_EVENT
    + ")"
    + WOKEN
    + f"\nSELECT action, {RINGS} FROM s"
)

# The end of a failed traversal: when none of its operations is open any more, or at once when told so.
# Its reason has the first causes, in the order they happened; the others are only counted.
END_FAILED = (
    f"""
WITH failures AS (
    SELECT id, reason FROM failure WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s
), causes AS (
    SELECT (SELECT string_agg(CASE WHEN length(reason) > %(longest)s
                THEN left(reason, %(longest)s) || '…' ELSE reason END, '; ' ORDER BY id)
            FROM (SELECT id, reason FROM failures ORDER BY id LIMIT %(most)s) AS first)
        || CASE WHEN count(*) > %(most)s THEN '; and ' || count(*) - %(most)s || ' more' ELSE '' END AS text
    FROM failures
), s AS (
    UPDATE stack
    SET status = 'FAILED',
        status_reason = coalesce(%(reason)s, 'Resource ' || action || ' failed: ' || causes.text, 'Unknown')
    FROM causes
    WHERE id = %(stack_id)s AND traversal = %(traversal)s AND halted_traversal = %(traversal)s
        AND status = 'IN_PROGRESS'
        AND (%(at_once)s OR NOT EXISTS (  -- nothing is being operated on, and no operation is open
            SELECT 1 FROM graph_node n
            WHERE n.stack_id = %(stack_id)s AND n.traversal = %(traversal)s
                AND {check_in("n.kind", RESOURCE_KINDS)}
                AND {check_in("n.state", STATES_VISITED)} AND n.lease IS NOT NULL
            UNION ALL SELECT 1 FROM resource r WHERE r.stack_id = %(stack_id)s AND r.op IS NOT NULL))
    RETURNING stack.*
), f AS (
    UPDATE graph_node n
    SET state = 'failed', blocked_by = 0, due_at = NULL, rung_at = NULL, lease = NULL, leased_until = NULL,
        last_error = s.status_reason
    FROM s WHERE n.stack_id = s.id AND n.traversal = s.traversal AND n.kind = 'finish'
        AND {check_not_in("n.state", NODE_ENDS)}
), r AS (
    UPDATE revision SET outcome = %(outcome)s, ended_at = now() FROM s
    WHERE revision.id = s.revision_id AND revision.traversal = s.traversal AND revision.outcome IS NULL
), snapshot_ended AS ("""
    + END_SNAPSHOT
    + """), told AS ("""
    + STACK_EVENT
    + ")"
    + WOKEN
    + f"\nSELECT action, disable_rollback, delete_on_failure, good_revision_id, {RINGS} FROM s"
)

MOST_CAUSES = 10  # that a stack's reason tells
LONGEST_CAUSE = 1_000  # characters of each

LOCK = """
SELECT traversal, action, status, good_revision_id FROM stack WHERE id = %s AND deleted_at IS NULL FOR UPDATE
"""

HALT = """
UPDATE stack SET halted_traversal = traversal
WHERE id = %(stack_id)s AND traversal = %(traversal)s AND halted_traversal IS DISTINCT FROM traversal
    AND status = 'IN_PROGRESS'
"""

# What older traversals opened and this one, halted, would never have come to is followed to its end: a node
# that waits for its turn has it now, one that waits to be told is told so, and what has none gets one
# (docs/internals/protocol.md rule 13).
FOLLOW_OPEN = f"""
WITH s AS (
    SELECT id, root_id, traversal FROM stack
    WHERE id = %(stack_id)s AND traversal = %(traversal)s AND halted_traversal = traversal
), open AS MATERIALIZED (
    SELECT r.id, r.name, s.id AS stack_id, s.root_id, s.traversal,
        CASE r.op WHEN 'DELETE' THEN 'cleanup' ELSE 'update' END AS kind
    FROM s JOIN resource r ON r.stack_id = s.id WHERE r.op IS NOT NULL
), there AS MATERIALIZED (
    SELECT n.id, n.resource_id, n.state
    FROM open JOIN graph_node n ON n.stack_id = open.stack_id AND n.traversal = open.traversal
        AND {check_in("n.kind", RESOURCE_KINDS)} AND n.resource_id = open.id
), freed AS (
    UPDATE graph_node n SET state = 'queued', blocked_by = 0, due_at = NULL
    FROM there
    WHERE n.id = there.id AND (n.state = 'blocked' OR n.state = 'waiting' AND n.due_at = 'infinity')
)
INSERT INTO graph_node (stack_id, root_id, traversal, kind, resource_id, queue, label, state)
SELECT stack_id, root_id, traversal, kind, id, 'provider', name, 'queued' FROM open
WHERE NOT EXISTS (
    SELECT 1 FROM there
    WHERE there.resource_id = open.id AND {check_not_in("there.state", NODE_ENDS)})
"""


@dataclass(frozen=True, slots=True)
class StartedTraversal:
    """A traversal that has begun, with its plan node."""

    traversal: int
    plan_node_id: int
    ring: CheckMessage


def first_nodes(
    db: Connection[TupleRow],
    *,
    stack_id: int,
    root_id: int,
    root: str,
    traversal: int,
    needed_by: Sequence[int] = (),
    lease: int | None = None,
    seconds: float = 30.0,
) -> StartedTraversal:
    """Insert a traversal's plan node and the finish node it holds; with a `lease` the caller goes on to plan
    itself.
    """
    values = {
        "stack_id": stack_id,
        "root_id": root_id,
        "traversal": traversal,
        "needed_by": list(needed_by),
        "lease": lease,
        "seconds": seconds,
    }
    row = db.execute(FIRST_NODES, values).fetchone()
    assert row is not None
    return StartedTraversal(traversal, row[0], CheckMessage(row[0], traversal, "bulk", "plan", root))


def start_traversal(
    db: Connection[TupleRow],
    stack_id: int,
    action: str,
    *,
    revision_id: int | None = None,
    expected: int | None = None,
    lease: int | None = None,
    converge: bool = False,
    retain: bool = False,
    ended: Outcome = "superseded",
) -> StartedTraversal | None:
    """Begin the next traversal of a live stack; None when it is gone or, with `expected`, has moved on. Run
    in a transaction.

    `ended` is what the history says of the revision that was being carried out. With `converge` it looks at
    what is there before it compares; with `retain` it leaves every thing alone.
    """
    values = {
        "stack_id": stack_id,
        "action": action,
        "revision_id": revision_id,
        "traversal": expected,
        "converge": converge,
        "retain": retain,
        "request_id": request_id(),
    }
    row = db.execute(BUMP, values).fetchone()
    if row is None:
        return None
    traversal, root_id, root, event = row
    attach_revision(db, stack_id, traversal, revision_id, event, ended)
    db.execute(FAIL_UNFINISHED_SNAPSHOT, {"stack_id": stack_id, "action": action})
    return renew(db, stack_id=stack_id, root_id=root_id, root=root, traversal=traversal, lease=lease)


def renew(
    db: Connection[TupleRow],
    *,
    stack_id: int,
    root_id: int,
    root: str,
    traversal: int,
    lease: int | None = None,
) -> StartedTraversal:
    """Insert the first nodes of a traversal that follows another, with all that hung on the other's end."""
    hooks.give_up(db, stack_id)
    inherited = db.execute(INHERIT_FINISH, {"stack_id": stack_id, "traversal": traversal}).fetchone()
    assert inherited is not None
    return first_nodes(
        db,
        stack_id=stack_id,
        root_id=root_id,
        root=root,
        traversal=traversal,
        needed_by=inherited[0],
        lease=lease,
    )


def attach_revision(
    db: Connection[TupleRow],
    stack_id: int,
    traversal: int,
    revision_id: int | None,
    event: int,
    ended: Outcome = "superseded",
) -> None:
    """Note that a traversal begins to bring a stack to a revision, if to any, and that none before it does;
    `event` tells of it.
    """
    values = {
        "stack_id": stack_id,
        "traversal": traversal,
        "revision_id": revision_id,
        "event": event,
        "ended": ended,
    }
    db.execute(BRING, values)


POSTPONE = """
UPDATE graph_node SET state = 'waiting', due_at = clock_timestamp() + make_interval(secs => %(seconds)s),
    waiting_since = coalesce(waiting_since, now()), last_error = %(reason)s, rung_at = NULL, rings = 0,
    lease = NULL, leased_until = NULL
WHERE id = %(node_id)s AND state IN ('checking', '') AND lease = %(lease)s
"""


def postpone(db: Connection[TupleRow], node_id: int, lease: int, seconds: float, reason: str) -> None:
    """Let a claimed finish node come due again: the traversal's end waits for what is no node of it."""
    db.execute(POSTPONE, {"node_id": node_id, "lease": lease, "seconds": seconds, "reason": reason})


def complete(db: Connection[TupleRow], node_id: int, lease: int) -> list[CheckMessage] | None:
    """Settle a claimed finish node: the stack is COMPLETE. Return what that wakes; None when the traversal is
    no longer the stack's, or has failed.
    """
    for row in fetch_prepared(db, COMPLETE, {"node_id": node_id, "lease": lease}):
        return _rings(row[1])
    return None


def _rings(found: Sequence[Sequence[Any]] | None) -> list[CheckMessage]:
    return [CheckMessage(*one) for one in found or ()]


@dataclass(frozen=True, slots=True)
class EndedFailed:
    """How a traversal failed, and what its end wakes."""

    action: str
    rollback_disabled: bool
    delete_on_failure: bool
    good_revision_id: int | None
    rings: list[CheckMessage]


def end_failed(
    db: Connection[TupleRow],
    stack_id: int,
    traversal: int,
    *,
    reason: str | None = None,
    at_once: bool = False,
    outcome: Outcome = "failed",
) -> EndedFailed | None:
    """End a halted traversal as FAILED once nothing of it runs; None when that is not now.

    `outcome` is what the history says of its revision.
    """
    values: dict[str, Any] = {
        "stack_id": stack_id,
        "traversal": traversal,
        "reason": reason,
        "at_once": at_once,
        "outcome": outcome,
        "most": MOST_CAUSES,
        "longest": LONGEST_CAUSE,
    }
    hooks.give_up(db, stack_id)
    for row in fetch_prepared(db, END_FAILED, values):
        return EndedFailed(row[0], row[1], row[2], row[3], _rings(row[4]))
    return None


def has_failures(db: Connection[TupleRow], stack_id: int, traversal: int) -> bool:
    """Whether anything failed in a traversal."""
    query = "SELECT EXISTS (SELECT 1 FROM failure WHERE stack_id = %s AND traversal = %s)"
    row = db.execute(query, (stack_id, traversal)).fetchone()
    return row is not None and row[0]


@dataclass(frozen=True, slots=True)
class Locked:
    """A live stack, as it is until the transaction ends."""

    traversal: int
    action: str
    status: str
    good_revision_id: int | None  # with which it was last COMPLETE

    @property
    def state(self) -> str:
        """`CREATE_COMPLETE` and the like."""
        return f"{self.action}_{self.status}"


def lock(db: Connection[TupleRow], stack_id: int) -> Locked | None:
    """Let nothing move a stack before the transaction ends; None when it is gone."""
    row = db.execute(LOCK, (stack_id,)).fetchone()
    return None if row is None else Locked(*row)


def halt(db: Connection[TupleRow], stack_id: int, traversal: int) -> None:
    """Start nothing more in this traversal."""
    db.execute(HALT, {"stack_id": stack_id, "traversal": traversal})


def enqueue_open_operations(db: Connection[TupleRow], stack_id: int, traversal: int) -> None:
    """Let a halted traversal come to every operation that is open, whoever opened it. Once is enough: it
    opens no more.
    """
    db.execute(FOLLOW_OPEN, {"stack_id": stack_id, "traversal": traversal})
