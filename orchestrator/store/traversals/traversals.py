"""Beginning and ending a traversal: the few statements that change a stack's own state
(docs/internals/protocol.md rules 6, 12, 13).

Every one is guarded by the traversal it speaks for, so that a late writer matches no row. A stack's final
event is written by the statement that writes its final state, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import NODE_ENDS, RESOURCE_KINDS, Outcome
from orchestrator.logs import request_id
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
