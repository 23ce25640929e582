"""The start of a traversal: the statements that change a stack's own state (docs/internals/protocol.md rules
6, 12, 13).

Every statement is guarded by its traversal, so that a late writer matches no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import NODE_ENDS, RESOURCE_KINDS, Outcome, is_reached
from orchestrator.errors import Conflict
from orchestrator.logs import request_id
from orchestrator.store.nodes import hooks
from orchestrator.store.tables.base import check_in, check_not_in
from orchestrator.store.traversals import queued_actions

STACK_EVENT = """
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason, automatic)
SELECT s.id, s.name, 'OS::Heat::Stack', s.uuid::text, s.action, s.status, s.status_reason, s.automatic FROM s
"""

START = (
    """
WITH s AS (
    UPDATE stack
    SET traversal = traversal + 1, halted_traversal = NULL, action = %(action)s, status = 'IN_PROGRESS',
        status_reason = 'Stack ' || %(action)s || ' started', updated_at = now(), action_started_at = now(),
        revision_id = coalesce(%(revision_id)s, revision_id), converge = %(converge)s, resume_at = NULL,
        resume_tries = CASE WHEN %(resumed)s THEN resume_tries ELSE 0 END,
        automatic = %(automatic)s,
        credential_id = CASE WHEN %(revision_id)s::bigint IS NULL THEN credential_id ELSE (
            SELECT CASE WHEN v.author IS NULL AND v.credential_id IS NULL  -- of a child, or an older version
                THEN stack.credential_id ELSE v.credential_id END
            FROM revision v WHERE v.id = %(revision_id)s::bigint) END,
        operation_credential_id =
            CASE WHEN %(resumed)s THEN operation_credential_id ELSE %(credential_id)s::bigint END,
        retain = %(retain)s OR retain AND %(action)s = 'DELETE',  -- a repeated delete keeps retaining
        request_id = coalesce(%(request_id)s, request_id)  -- a rollback belongs to the request that failed
    WHERE id = %(stack_id)s AND deleted_at IS NULL
        AND (%(traversal)s::bigint IS NULL OR traversal = %(traversal)s)
    RETURNING *
), recorded AS ("""
    + STACK_EVENT
    + """ RETURNING id)
SELECT s.traversal, s.root_id, (SELECT x.uuid::text FROM stack x WHERE x.id = s.root_id), recorded.id,
    s.queued_action
FROM s CROSS JOIN recorded
"""
)


# The history: the previous revision in progress has ended, and the new revision, if the action has any, is in
# progress.
ATTACH_REVISION = """
WITH previous AS (
    UPDATE revision SET outcome = %(ended)s, ended_at = now()
    WHERE stack_id = %(stack_id)s AND outcome IS NULL AND traversal < %(traversal)s
)
UPDATE revision SET traversal = %(traversal)s, first_event = %(event)s WHERE id = %(revision_id)s
"""

# Dependents of the old traversal's end become dependents of the new one's (docs/internals/protocol.md rule
# 12).
INHERIT_FINISH = f"""
WITH old AS (
    UPDATE graph_node SET state = 'dropped', blocked_by = 0, due_at = NULL, enqueued_at = NULL, lease = NULL,
        leased_until = NULL
    WHERE stack_id = %(stack_id)s AND kind = 'finish' AND traversal < %(traversal)s
        AND {check_not_in("state", NODE_ENDS)}
    RETURNING needed_by
)
SELECT coalesce(array_agg(x.id), '{{}}') FROM old CROSS JOIN LATERAL unnest(old.needed_by) AS x(id)
"""

FAIL_UNFINISHED_SNAPSHOT = """
UPDATE snapshot
SET status = 'FAILED', status_reason = 'Stack ' || %(action)s || ' began before it was complete'
WHERE stack_id = %(stack_id)s AND action = 'CREATE' AND status = 'IN_PROGRESS'
    AND traversal > 0  -- not the snapshot of a queued action
"""

FIRST_NODES = """
WITH finish AS (
    INSERT INTO graph_node (stack_id, root_id, traversal, kind, queue, label, needed_by, blocked_by, state)
    VALUES (%(stack_id)s, %(root_id)s, %(traversal)s, 'finish', 'bulk', 'finish',
        %(needed_by)s, 1, 'blocked')
    RETURNING id
)
INSERT INTO graph_node
    (stack_id, root_id, traversal, kind, queue, label, needed_by, state, enqueued_at, lease, leased_until)
SELECT %(stack_id)s, %(root_id)s, %(traversal)s, 'plan', 'bulk', 'plan', ARRAY[finish.id],
    CASE WHEN %(lease)s::bigint IS NULL THEN 'queued' ELSE 'checking' END, now(),
    %(lease)s,
        CASE WHEN %(lease)s::bigint IS NOT NULL
        THEN clock_timestamp() + make_interval(secs => %(seconds)s) END
FROM finish RETURNING id
"""


LOCK = """
SELECT traversal, action, status, good_revision_id, queued_action, revision_id FROM stack
WHERE id = %(stack_id)s AND deleted_at IS NULL FOR UPDATE
"""

HAS_OPEN_OPERATIONS = """
SELECT EXISTS (SELECT 1 FROM resource WHERE stack_id = %(stack_id)s AND op IS NOT NULL)
"""

HALT = """
UPDATE stack SET halted_traversal = traversal
WHERE id = %(stack_id)s AND traversal = %(traversal)s AND halted_traversal IS DISTINCT FROM traversal
    AND status = 'IN_PROGRESS'
"""

# A halted traversal follows open operations of older traversals to their end: a blocked node is queued, a
# node that waits for its child is queued, and a resource without a node gets a node
# (docs/internals/protocol.md rule 13).
ENQUEUE_OPEN_OPERATIONS = f"""
WITH s AS (
    SELECT id, root_id, traversal FROM stack
    WHERE id = %(stack_id)s AND traversal = %(traversal)s AND halted_traversal = traversal
), open AS MATERIALIZED (
    SELECT r.id, r.name, s.id AS stack_id, s.root_id, s.traversal,
        CASE r.op WHEN 'DELETE' THEN 'cleanup' ELSE 'update' END AS kind
    FROM s JOIN resource r ON r.stack_id = s.id WHERE r.op IS NOT NULL
), existing AS MATERIALIZED (
    SELECT n.id, n.resource_id, n.state
    FROM open JOIN graph_node n ON n.stack_id = open.stack_id AND n.traversal = open.traversal
        AND {check_in("n.kind", RESOURCE_KINDS)} AND n.resource_id = open.id
), requeued AS (
    UPDATE graph_node n SET state = 'queued', blocked_by = 0, due_at = NULL
    FROM existing
    WHERE n.id = existing.id AND (n.state = 'blocked' OR n.state = 'waiting' AND n.due_at = 'infinity')
)
INSERT INTO graph_node (stack_id, root_id, traversal, kind, resource_id, queue, label, state)
SELECT stack_id, root_id, traversal, kind, id, 'provider', name, 'queued' FROM open
WHERE NOT EXISTS (
    SELECT 1 FROM existing
    WHERE existing.resource_id = open.id AND {check_not_in("existing.state", NODE_ENDS)})
"""


class RevisionChanged(Conflict):
    """The newest revision of the stack is not the one that the request expects."""

    heat_type = "RevisionChanged"

    def __init__(self, name: str, number: int, expected: int) -> None:
        """Name the stack, its newest revision, and the expected one."""
        super().__init__(
            f"Stack {name} has revision {number}, not {expected}: another request has changed it. Nothing "
            "was done."
        )


@dataclass(frozen=True, slots=True)
class StartedTraversal:
    """A traversal that was started, with its plan node."""

    traversal: int
    plan_node_id: int
    message: CheckMessage


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
    """Insert a traversal's plan node and the finish node that depends on it; with a `lease` the caller plans
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
    automatic: bool = False,
    ended: Outcome = "superseded",
    resumed: bool = False,
    credential_id: int | None = None,
) -> StartedTraversal | None:
    """Start the next traversal of a live stack; return None if the stack is gone or, with `expected`, in
    another traversal. Run in a transaction.

    `ended` is recorded for the previous revision in progress. `converge`: compare with the observed state.
    `retain`: leave all provider objects in place. `automatic`: nobody has requested it.
    `resumed`: the same action continues after an outage. `credential_id` is the caller's of a DELETE or
    CHECK, in place of the content's.
    """
    values = {
        "stack_id": stack_id,
        "action": action,
        "revision_id": revision_id,
        "traversal": expected,
        "converge": converge,
        "retain": retain,
        "automatic": automatic,
        "resumed": resumed,
        "credential_id": credential_id,
        "request_id": request_id(),
    }
    row = db.execute(START, values).fetchone()
    if row is None:
        return None
    traversal, root_id, root, event, queued_action = row
    if queued_action is not None:
        _update_queue(db, stack_id, queued_action, action)
    attach_revision(db, stack_id, traversal, revision_id, event, ended)
    db.execute(FAIL_UNFINISHED_SNAPSHOT, {"stack_id": stack_id, "action": action})
    return supersede(db, stack_id=stack_id, root_id=root_id, root=root, traversal=traversal, lease=lease)


def _update_queue(db: Connection[TupleRow], stack_id: int, queued_action: str, action: str) -> None:
    """Remove the queued action if this action makes it unnecessary; any other action postpones it."""
    if action == "DELETE":
        reason = f"The queued {queued_action} was dropped: the stack is being deleted"
        queued_actions.drop(db, stack_id, queued_action, reason)
    elif action == queued_action and action != "SNAPSHOT":
        queued_actions.clear(db, stack_id, queued_action)


def supersede(
    db: Connection[TupleRow],
    *,
    stack_id: int,
    root_id: int,
    root: str,
    traversal: int,
    lease: int | None = None,
) -> StartedTraversal:
    """Insert the first nodes of a traversal that supersedes another, and pass on the other's dependents."""
    hooks.release_paused(db, stack_id)
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
    """Record that a traversal starts to apply a revision, if any, and that no earlier traversal does; `event`
    is its first event.
    """
    values = {
        "stack_id": stack_id,
        "traversal": traversal,
        "revision_id": revision_id,
        "event": event,
        "ended": ended,
    }
    db.execute(ATTACH_REVISION, values)


@dataclass(frozen=True, slots=True)
class Locked:
    """A live stack, locked until the transaction ends."""

    traversal: int
    action: str
    status: str
    good_revision_id: int | None  # the last revision that was COMPLETE
    queued_action: str | None  # it starts when the stack comes to rest
    revision_id: int | None  # the desired revision

    @property
    def state(self) -> str:
        """Action and status: `CREATE_COMPLETE`."""
        return f"{self.action}_{self.status}"

    @property
    def reached(self) -> bool:
        """Whether the stack has reached its desired revision."""
        return is_reached(self.action, self.revision_id, self.good_revision_id)


def lock(db: Connection[TupleRow], stack_id: int) -> Locked | None:
    """Lock a stack until the transaction ends; return None if it is gone."""
    row = db.execute(LOCK, {"stack_id": stack_id}).fetchone()
    return None if row is None else Locked(*row)


def has_open_operations(db: Connection[TupleRow], stack_id: int) -> bool:
    """Return whether an operation on a resource of the stack is open."""
    row = db.execute(HAS_OPEN_OPERATIONS, {"stack_id": stack_id}).fetchone()
    return row is not None and bool(row[0])


def halt(db: Connection[TupleRow], stack_id: int, traversal: int) -> None:
    """Start no more steps in this traversal."""
    db.execute(HALT, {"stack_id": stack_id, "traversal": traversal})


def enqueue_open_operations(db: Connection[TupleRow], stack_id: int, traversal: int) -> None:
    """Have a halted traversal follow every open operation, whatever traversal opened it. Call it once: a
    halted traversal opens no more operations.
    """
    db.execute(ENQUEUE_OPEN_OPERATIONS, {"stack_id": stack_id, "traversal": traversal})
