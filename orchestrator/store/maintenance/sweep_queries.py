"""The statements of the sweep: find nodes that are due or lost, set-based and bounded
(docs/internals/protocol.md rule 15). The stall audit is in `stalled.py`.

Nodes of ended traversals are dropped. Every statement locks the rows that it moves with SKIP LOCKED: a sweep
never waits for a check, nor a check for a sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import RESOURCE_KINDS, STATES_AT_WORK
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

# Operations of a traversal are followed to their end, also after the stack was failed at once by a cancel or
# a timeout: for up to a day beyond the timeout.
FOLLOWED = """
    s.action_started_at + make_interval(days => 1, mins => coalesce(s.timeout_mins, 60)::int) > now()
    AND EXISTS (SELECT 1 FROM resource r WHERE r.id = {0}.resource_id AND r.op IS NOT NULL)"""
RUNNING = f"(s.traversal = o.traversal AND (s.status = 'IN_PROGRESS' OR {FOLLOWED.format('o')}))"

HAS_DUE: Final = """(EXISTS (SELECT 1 FROM graph_node WHERE state = 'waiting' AND due_at <= now())
    OR EXISTS (SELECT 1 FROM graph_node WHERE state = 'checking' AND leased_until < now()))"""
HAS_QUEUED: Final = "EXISTS (SELECT 1 FROM graph_node WHERE state = 'queued')"
HAS_ENDING: Final = """EXISTS (SELECT 1 FROM stack WHERE status = 'IN_PROGRESS'
    AND (keep_going OR halted_traversal = traversal OR action_started_at
        < now() - make_interval(secs => coalesce(timeout_mins * 60.0, %(timeout)s)::float8)))"""

# Each statement first selects its rows through a dedicated index, in the order of that index, and only then
# joins the stack: in a free join the planner may walk all nodes of a large stack in progress. Nodes of ended
# traversals are dropped on the way.
DUE = f"""
WITH o AS MATERIALIZED (
    SELECT id, stack_id, traversal, resource_id FROM graph_node
    WHERE state = 'waiting' AND due_at <= now() ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE graph_node n
SET state = CASE WHEN {RUNNING} THEN 'queued' ELSE 'dropped' END, due_at = NULL, re_enqueues = 0,
    enqueued_at = CASE WHEN {RUNNING} THEN now() END
FROM o JOIN stack s ON s.id = o.stack_id JOIN stack root ON root.id = s.root_id
WHERE n.id = o.id RETURNING n.id, n.traversal, n.queue, n.label, root.uuid::text, n.state, (
    SELECT coalesce(r.runs_as, r.type) FROM resource r WHERE r.id = ANY (ARRAY[n.resource_id])
        AND n.retry_count = 0 AND n.lost_leases = 0 AND n.unreachable_tries = 0 AND n.refusal IS NULL
        AND r.physical_id IS NOT NULL AND (r.op = 'CREATE' OR r.op = 'DELETE' AND r.requested_at IS NOT NULL))
"""

# A lost lease is not a retry: it has its own counter and its own back-off (docs/internals/protocol.md rule
# 4). The first lost lease is followed up at once.
EXPIRED_LEASES = f"""
WITH o AS MATERIALIZED (
    SELECT id, stack_id, traversal, resource_id FROM graph_node
    WHERE state = 'checking' AND leased_until < now() ORDER BY leased_until LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
)
UPDATE graph_node n
SET state = CASE WHEN NOT {RUNNING} THEN 'dropped' WHEN n.lost_leases = 0 THEN 'queued' ELSE 'waiting' END,
    due_at = CASE WHEN {RUNNING} AND n.lost_leases > 0
        THEN clock_timestamp() + make_interval(secs => least(power(2, least(n.lost_leases, 6)), 60)) END,
    lost_leases = least(n.lost_leases + 1, 1000), lease = NULL, leased_until = NULL, re_enqueues = 0,
    enqueued_at = CASE WHEN {RUNNING} AND n.lost_leases = 0 THEN now() END
FROM o JOIN stack s ON s.id = o.stack_id JOIN stack root ON root.id = s.root_id
WHERE n.id = o.id RETURNING n.id, n.traversal, n.queue, n.label, root.uuid::text, n.state, n.kind,
    s.uuid::text, n.lost_leases
"""

# Loose index scan: a step per root stack with queued nodes, whatever their number.
ROOTS = """
WITH RECURSIVE roots AS (
    (SELECT root_id FROM graph_node WHERE state = 'queued' ORDER BY root_id LIMIT 1)
    UNION ALL
    SELECT (SELECT g.root_id FROM graph_node g WHERE g.state = 'queued' AND g.root_id > roots.root_id
        ORDER BY g.root_id LIMIT 1)
    FROM roots WHERE roots.root_id IS NOT NULL
)
SELECT roots.root_id, s.uuid::text, coalesce(extract(epoch FROM now() - (
    SELECT g.enqueued_at FROM graph_node g WHERE g.root_id = roots.root_id AND g.state = 'queued'
        AND g.enqueued_at IS NOT NULL ORDER BY g.enqueued_at LIMIT 1
)), 0)::float, EXISTS (
    SELECT 1 FROM graph_node g
    WHERE g.root_id = roots.root_id AND g.state = 'queued' AND g.enqueued_at IS NULL
)
FROM roots JOIN stack s ON s.id = roots.root_id
"""

RE_ENQUEUE = f"""
WITH o AS MATERIALIZED (
    SELECT id, stack_id, traversal, resource_id FROM graph_node
    WHERE root_id = %(root)s AND state = 'queued' AND enqueued_at < now() - make_interval(secs => %(seconds)s)
        AND enqueued_at < now() - make_interval(secs => %(seconds)s * power(2, least(re_enqueues, 2)))
        AND enqueued_at < now() - make_interval(secs => %(waiting)s)
    ORDER BY enqueued_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE graph_node n
SET state = CASE WHEN {RUNNING} THEN 'queued' ELSE 'dropped' END, re_enqueues = least(n.re_enqueues + 1, 100),
    enqueued_at = CASE WHEN {RUNNING} THEN now() END
FROM o JOIN stack s ON s.id = o.stack_id
WHERE n.id = o.id RETURNING n.id, n.traversal, n.queue, n.label, n.state
"""

# Queued nodes of idle stacks would be read again by every sweep.
DROP_SUPERSEDED = f"""
WITH s AS MATERIALIZED (
    SELECT id, action_started_at, timeout_mins FROM stack
    WHERE root_id = %(root)s AND status <> 'IN_PROGRESS'
), o AS MATERIALIZED (
    SELECT n.id FROM s JOIN graph_node n ON n.stack_id = s.id
    WHERE n.state = 'queued' AND NOT ({FOLLOWED.format("n")})
    LIMIT %(limit)s FOR UPDATE OF n SKIP LOCKED
)
UPDATE graph_node n SET state = 'dropped', enqueued_at = NULL FROM o WHERE n.id = o.id
"""

# A child stack without its own timeout ends with its parent, unless it is changed independently of it.
TIMED_OUT = """
SELECT id, traversal FROM stack s
WHERE status = 'IN_PROGRESS' AND (owner_id IS NULL OR timeout_mins IS NOT NULL
        OR NOT EXISTS (SELECT 1 FROM stack p WHERE p.id = s.owner_id AND p.status = 'IN_PROGRESS'))
    AND action_started_at < now() - make_interval(secs => coalesce(timeout_mins * 60.0, %(seconds)s)::float8)
LIMIT %(limit)s
"""

FAILING = """
SELECT id, traversal FROM stack WHERE status = 'IN_PROGRESS' AND halted_traversal = traversal LIMIT %(limit)s
"""

# The halted stacks that can end now: stacks with running operations must not hide them.
DRAINED = f"""
SELECT s.id, s.traversal FROM stack s
WHERE s.status = 'IN_PROGRESS' AND s.halted_traversal = s.traversal
    AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.stack_id = s.id AND r.op IS NOT NULL)
    AND NOT EXISTS (
        SELECT 1 FROM graph_node n WHERE n.stack_id = s.id AND n.traversal = s.traversal
            AND {check_in("n.state", STATES_AT_WORK)} AND {check_in("n.kind", RESOURCE_KINDS)}
            AND n.lease IS NOT NULL)
LIMIT %(limit)s
"""

# Stacks that keep going after a failure, and have no node left that could run.
KEEP_GOING_FINISHED = f"""
SELECT s.id, s.traversal FROM stack s
WHERE s.status = 'IN_PROGRESS' AND s.keep_going AND s.halted_traversal IS DISTINCT FROM s.traversal
    AND EXISTS (SELECT 1 FROM failure f WHERE f.stack_id = s.id AND f.traversal = s.traversal)
    AND NOT EXISTS (
        SELECT 1 FROM graph_node n WHERE n.stack_id = s.id AND n.traversal = s.traversal
            AND {check_in("n.state", STATES_AT_WORK)})
    AND NOT EXISTS (
        SELECT 1 FROM graph_node n WHERE n.root_id = s.root_id AND n.stack_id = s.id
            AND n.traversal = s.traversal AND n.state = 'queued')
LIMIT %(limit)s
"""

# A stopped process must not block others by an open transaction.
BOUND_TRANSACTIONS = "SET idle_in_transaction_session_timeout = '30s'"


def bound_transactions(db: Db) -> None:
    """Have the server end this connection when it idles in a transaction for 30 seconds."""
    db.execute(BOUND_TRANSACTIONS)


def due(db: Db, limit: int, shared_lists: Mapping[str, str]) -> list[CheckMessage]:
    """Queue the waiting nodes that are due. `shared_lists`: of resource types: the messages of nodes
    that only observe an operation without faults name theirs.
    """
    rows = db.execute(DUE, {"limit": limit}).fetchall()
    return [
        CheckMessage(id_, traversal, queue, label, root, shared_lists.get(type_name or "", ""))
        for id_, traversal, queue, label, root, state, type_name in rows
        if state == "queued"
    ]


class LostLease(NamedTuple):
    """A node whose lease has expired, and how often that happened to it."""

    node_id: int
    name: str  # of the resource
    kind: str
    stack: str
    times: int


def expired_leases(db: Db, limit: int) -> tuple[list[CheckMessage], list[LostLease]]:
    """Queue the nodes whose lease has expired, those that lost several after a pause; return the messages to
    send now, and all lost leases.
    """
    rows = db.execute(EXPIRED_LEASES, {"limit": limit}).fetchall()
    lost = [LostLease(node_id=row[0], name=row[3], kind=row[6], stack=row[7], times=row[8]) for row in rows]
    return _queued(rows), lost


def _queued(rows: list[tuple[Any, ...]]) -> list[CheckMessage]:
    return [CheckMessage(*row[:5]) for row in rows if row[5] == "queued"]


class QueuedRoot(NamedTuple):
    """A root stack with queued nodes: the age of their oldest message, and whether nodes have none."""

    id: int
    uuid: str
    message_seconds: float
    has_unsent: bool


def roots(db: Db) -> list[QueuedRoot]:
    """Return the root stacks that have queued nodes."""
    return [QueuedRoot(*row) for row in db.execute(ROOTS).fetchall()]


def re_enqueue(
    db: Db, root: QueuedRoot, seconds: float, limit: int, waiting: float = 0.0
) -> list[CheckMessage]:
    """Return messages for queued nodes whose last message must have been lost, with growing delays. Messages
    of the last `waiting` seconds wait in the broker.
    """
    values = {"root": root.id, "seconds": seconds, "limit": limit, "waiting": waiting}
    rows = db.execute(RE_ENQUEUE, values).fetchall()
    return [CheckMessage(row[0], row[1], row[2], row[3], root.uuid) for row in rows if row[4] == "queued"]


def drop_superseded(db: Db, root_id: int, limit: int) -> int:
    """Drop queued nodes of traversals that are over."""
    return db.execute(DROP_SUPERSEDED, {"root": root_id, "limit": limit}).rowcount


def timed_out(db: Db, default_seconds: float, limit: int = 100) -> list[tuple[int, int]]:
    """Return stacks whose action has run longer than allowed: id and traversal."""
    return [
        (row[0], row[1])
        for row in db.execute(TIMED_OUT, {"seconds": default_seconds, "limit": limit}).fetchall()
    ]


def failing(db: Db, limit: int = 10_000) -> list[tuple[int, int]]:
    """Return failing stacks: id and traversal."""
    return [(row[0], row[1]) for row in db.execute(FAILING, {"limit": limit}).fetchall()]


def drained(db: Db, limit: int = 100) -> list[tuple[int, int]]:
    """Return failing stacks that can end: id and traversal."""
    return [(row[0], row[1]) for row in db.execute(DRAINED, {"limit": limit}).fetchall()]


def keep_going_finished(db: Db, limit: int = 100) -> list[tuple[int, int]]:
    """Return stacks that kept going after a failure and have no work left: id and traversal."""
    return [(row[0], row[1]) for row in db.execute(KEEP_GOING_FINISHED, {"limit": limit}).fetchall()]
