"""Finding what is due or lost, set-based and bounded (docs/internals/protocol.md rule 15): the sweep's
statements. What stands still is in `stalled.py`.

Nodes of traversals that are over are nobody's business here. Every statement takes the rows it moves with
SKIP LOCKED, so that a sweep never waits for a check, and a check never for a sweep.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import RESOURCE_KINDS, STATES_AT_WORK
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

# Whether nobody sweeps now, nor began to lately: then it is ours until the transaction ends. Where two ask at
# one moment both may have it, which costs a sweep.
TURN = """
SELECT CASE WHEN EXISTS (
        SELECT 1 FROM sweep_turn WHERE begun_at > clock_timestamp() - make_interval(secs => %(apart)s))
    THEN false ELSE pg_try_advisory_xact_lock(%(lock)s) END
"""
TAKEN = """INSERT INTO sweep_turn (id, begun_at) VALUES (1, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET begun_at = excluded.begun_at
"""

# What a traversal began is followed to its end also when the stack was told at once that it failed: it was
# cancelled, or timed out. An operation that goes on and on is looked at for a day beyond the time it had.
FOLLOWED = """
    s.action_started_at + make_interval(days => 1, mins => coalesce(s.timeout_mins, 60)::int) > now()
    AND EXISTS (SELECT 1 FROM resource r WHERE r.id = {0}.resource_id AND r.op IS NOT NULL)"""
RUNNING = f"(s.traversal = o.traversal AND (s.status = 'IN_PROGRESS' OR {FOLLOWED.format('o')}))"

# Each first takes its rows by an index made for it, in that order, and only then asks whose they are: joined
# freely, the planner may walk the whole of a large stack in progress. What belongs to a traversal that is
# over is let go of on the way.
DUE = f"""
WITH o AS MATERIALIZED (
    SELECT id, stack_id, traversal, resource_id FROM graph_node
    WHERE state = 'waiting' AND due_at <= now() ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE graph_node n
SET state = CASE WHEN {RUNNING} THEN 'queued' ELSE 'dropped' END, due_at = NULL, rings = 0,
    rung_at = CASE WHEN {RUNNING} THEN now() END
FROM o JOIN stack s ON s.id = o.stack_id JOIN stack root ON root.id = s.root_id
WHERE n.id = o.id RETURNING n.id, n.traversal, n.queue, n.label, root.uuid::text, n.state
"""

# A lost lease is not a retry: its own counter, its own back-off (docs/internals/protocol.md rule 4). The
# first is looked after at once.
LOST = f"""
WITH o AS MATERIALIZED (
    SELECT id, stack_id, traversal, resource_id FROM graph_node
    WHERE state = 'checking' AND leased_until < now() ORDER BY leased_until LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
)
UPDATE graph_node n
SET state = CASE WHEN NOT {RUNNING} THEN 'dropped' WHEN n.lost_leases = 0 THEN 'queued' ELSE 'waiting' END,
    due_at = CASE WHEN {RUNNING} AND n.lost_leases > 0
        THEN clock_timestamp() + make_interval(secs => least(power(2, least(n.lost_leases, 6)), 60)) END,
    lost_leases = least(n.lost_leases + 1, 1000), lease = NULL, leased_until = NULL, rings = 0,
    rung_at = CASE WHEN {RUNNING} AND n.lost_leases = 0 THEN now() END
FROM o JOIN stack s ON s.id = o.stack_id JOIN stack root ON root.id = s.root_id
WHERE n.id = o.id RETURNING n.id, n.traversal, n.queue, n.label, root.uuid::text, n.state
"""

# Loose index scan: one step per root stack that has queued nodes, however many those are.
ROOTS = """
WITH RECURSIVE roots AS (
    (SELECT root_id FROM graph_node WHERE state = 'queued' ORDER BY root_id LIMIT 1)
    UNION ALL
    SELECT (SELECT g.root_id FROM graph_node g WHERE g.state = 'queued' AND g.root_id > roots.root_id
        ORDER BY g.root_id LIMIT 1)
    FROM roots WHERE roots.root_id IS NOT NULL
)
SELECT roots.root_id, s.uuid::text FROM roots JOIN stack s ON s.id = roots.root_id
"""

RING_AGAIN = f"""
WITH o AS MATERIALIZED (
    SELECT id, stack_id, traversal, resource_id FROM graph_node
    WHERE root_id = %(root)s AND state = 'queued' AND rung_at < now() - make_interval(secs => %(seconds)s)
        AND rung_at < now() - make_interval(secs => %(seconds)s * power(2, least(rings, 2)))
    ORDER BY rung_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE graph_node n
SET state = CASE WHEN {RUNNING} THEN 'queued' ELSE 'dropped' END, rings = least(n.rings + 1, 100),
    rung_at = CASE WHEN {RUNNING} THEN now() END
FROM o JOIN stack s ON s.id = o.stack_id
WHERE n.id = o.id RETURNING n.id, n.traversal, n.queue, n.label, n.state
"""

# What stacks that are not in progress left queued would be looked at by every sweep.
DROP_OVER = f"""
WITH s AS MATERIALIZED (
    SELECT id, action_started_at, timeout_mins FROM stack
    WHERE root_id = %(root)s AND status <> 'IN_PROGRESS'
), o AS MATERIALIZED (
    SELECT n.id FROM s JOIN graph_node n ON n.stack_id = s.id
    WHERE n.state = 'queued' AND NOT ({FOLLOWED.format("n")})
    LIMIT %(limit)s FOR UPDATE OF n SKIP LOCKED
)
UPDATE graph_node n SET state = 'dropped', rung_at = NULL FROM o WHERE n.id = o.id
"""

TIMED_OUT = """
SELECT id, traversal FROM stack
WHERE status = 'IN_PROGRESS' AND (owner_id IS NULL OR timeout_mins IS NOT NULL)
    AND action_started_at < now() - make_interval(secs => coalesce(timeout_mins * 60.0, %(seconds)s)::float8)
LIMIT %(limit)s
"""

HALTED = """
SELECT id, traversal FROM stack WHERE status = 'IN_PROGRESS' AND halted_traversal = traversal LIMIT %(limit)s
"""

# Those of them that can end now: what others still do must not keep them from being found.
WOUND_DOWN = f"""
SELECT s.id, s.traversal FROM stack s
WHERE s.status = 'IN_PROGRESS' AND s.halted_traversal = s.traversal
    AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.stack_id = s.id AND r.op IS NOT NULL)
    AND NOT EXISTS (
        SELECT 1 FROM graph_node n WHERE n.stack_id = s.id AND n.traversal = s.traversal
            AND {check_in("n.state", STATES_AT_WORK)} AND {check_in("n.kind", RESOURCE_KINDS)}
            AND n.lease IS NOT NULL)
LIMIT %(limit)s
"""

# Those that go on after a failure, and have come to where nothing can be done any more.
EXHAUSTED = f"""
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


def acquire_sweep_turn(db: Db, lock: int, apart: float) -> bool:
    """Return whether to sweep, which nobody else does until the transaction is over: unless somebody is at
    it, or began to less than `apart` seconds ago.
    """
    row = db.execute(TURN, {"lock": lock, "apart": apart}).fetchone()
    ours = row is not None and bool(row[0])
    if ours:
        db.execute(TAKEN)
    return ours


def due(db: Db, limit: int) -> list[CheckMessage]:
    """Queue the waiting nodes whose time has come."""
    return _queued(db.execute(DUE, {"limit": limit}).fetchall())


def expired_leases(db: Db, limit: int) -> list[CheckMessage]:
    """Queue again the nodes whose worker let its lease run out."""
    return _queued(db.execute(LOST, {"limit": limit}).fetchall())


def _queued(rows: list[tuple[Any, ...]]) -> list[CheckMessage]:
    return [CheckMessage(*row[:5]) for row in rows if row[5] == "queued"]


def roots(db: Db) -> list[tuple[int, str]]:
    """Return the root stacks that have queued nodes: id and uuid."""
    return [(row[0], row[1]) for row in db.execute(ROOTS).fetchall()]


def re_enqueue(db: Db, root_id: int, root: str, seconds: float, limit: int) -> list[CheckMessage]:
    """Ring for queued nodes whose message must have been lost, ever more rarely."""
    values = {"root": root_id, "seconds": seconds, "limit": limit}
    rows = db.execute(RING_AGAIN, values).fetchall()
    return [CheckMessage(row[0], row[1], row[2], row[3], root) for row in rows if row[4] == "queued"]


def drop_superseded(db: Db, root_id: int, limit: int) -> int:
    """Take out of the queue what belongs to traversals that are over."""
    return db.execute(DROP_OVER, {"root": root_id, "limit": limit}).rowcount


def timed_out(db: Db, default_seconds: float, limit: int = 100) -> list[tuple[int, int]]:
    """Return root stacks whose action has run longer than allowed: id and traversal."""
    return [
        (row[0], row[1])
        for row in db.execute(TIMED_OUT, {"seconds": default_seconds, "limit": limit}).fetchall()
    ]


def halted(db: Db, limit: int = 10_000) -> list[tuple[int, int]]:
    """Return stacks that are winding down: id and traversal."""
    return [(row[0], row[1]) for row in db.execute(HALTED, {"limit": limit}).fetchall()]


def wound_down(db: Db, limit: int = 100) -> list[tuple[int, int]]:
    """Return stacks that were winding down and can end: id and traversal."""
    return [(row[0], row[1]) for row in db.execute(WOUND_DOWN, {"limit": limit}).fetchall()]


def keep_going_finished(db: Db, limit: int = 100) -> list[tuple[int, int]]:
    """Return stacks that went on after a failure as far as they can: id and traversal."""
    return [(row[0], row[1]) for row in db.execute(EXHAUSTED, {"limit": limit}).fetchall()]
