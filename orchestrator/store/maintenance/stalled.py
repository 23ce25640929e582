"""Finding what stands still for no reason, and moving it again (docs/internals/protocol.md rule 16).

Every statement that ends a visit leaves something that somebody will come to. Should one not, or should rows
be lost or changed by hand, a stack would wait until its time is up. A stack in progress is alive while a node
of its traversal is queued, being checked, waiting, or paused at a hook.
"""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import STATES_AT_WORK
from orchestrator.store.tables.base import check_in
from orchestrator.store.traversals import traversals

Db = Connection[TupleRow]

QUIET_SECONDS: Final = 30.0  # into an action before it can stand still

# Queued nodes are found by the root alone. One of another stack of the tree hides a stall while it lasts.
_LIFELESS = f"""
    s.status = 'IN_PROGRESS' AND s.action_started_at < now() - make_interval(secs => %(seconds)s)
    AND NOT EXISTS (SELECT 1 FROM graph_node n WHERE n.root_id = s.root_id AND n.state = 'queued')
    AND NOT EXISTS (
        SELECT 1 FROM graph_node n WHERE n.stack_id = s.id AND n.traversal = s.traversal
            AND {check_in("n.state", STATES_AT_WORK)})
"""
# What is left of a stack that keeps going over failures may be blocked behind them.
STALLED = f"""
SELECT s.id, s.traversal, s.uuid::text FROM stack s
WHERE {_LIFELESS} AND s.halted_traversal IS DISTINCT FROM s.traversal
    AND NOT EXISTS (SELECT 1 FROM failure f WHERE f.stack_id = s.id AND f.traversal = s.traversal)
LIMIT 100
"""

# It winds down, and waits for operations that no node of it follows: they are an older traversal's, on what
# this one had not come to.
STRANDED = f"""
SELECT s.id, s.traversal, s.uuid::text FROM stack s
WHERE {_LIFELESS} AND s.halted_traversal = s.traversal
    AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.stack_id = s.id AND r.op IS NOT NULL
        AND r.leased_until > clock_timestamp())
LIMIT 100
"""

# The same action once more: what it is about, when it began and when its time is up stay as they are.
BEGIN_AGAIN = """
WITH s AS (
    UPDATE stack SET traversal = traversal + 1
    WHERE id = %(stack_id)s AND traversal = %(traversal)s AND status = 'IN_PROGRESS'
        AND halted_traversal IS DISTINCT FROM traversal
    RETURNING id, traversal, root_id, uuid
), revised AS (
    UPDATE revision r SET traversal = s.traversal FROM s
    WHERE r.stack_id = s.id AND r.traversal = s.traversal - 1
), copied AS (
    UPDATE snapshot c SET traversal = s.traversal FROM s
    WHERE c.stack_id = s.id AND c.traversal = s.traversal - 1
)
SELECT s.traversal, s.root_id, s.uuid::text FROM s
"""

INTERRUPTED = "UPDATE graph_node SET lost_leases = %s WHERE id = %s"


def stalled_stacks(db: Db, seconds: float = QUIET_SECONDS) -> list[tuple[int, int, str]]:
    """Return stacks in progress that nothing will ever move again: id, traversal, uuid."""
    return [(row[0], row[1], row[2]) for row in db.execute(STALLED, {"seconds": seconds}).fetchall()]


def unplanned_stacks(db: Db, seconds: float = QUIET_SECONDS) -> list[tuple[int, int, str]]:
    """Return stacks that wind down and wait for what nobody does: id, traversal, uuid."""
    return [(row[0], row[1], row[2]) for row in db.execute(STRANDED, {"seconds": seconds}).fetchall()]


def restart_traversal(db: Db, stack_id: int, traversal: int, *, lost_leases: int = 0) -> list[CheckMessage]:
    """Put a fresh traversal in the place of one whose nodes are lost or make no sense; return what to ring.

    What was done is not done again: a traversal is planned from the resources, whatever came before it. To
    count anew what holds nodes back would be cheaper, and wrong where a node is lost: what it was to bring
    about would be passed over. `lost_leases` is how often its plan was interrupted: not for ever.
    """
    with db.transaction():
        row = db.execute(BEGIN_AGAIN, {"stack_id": stack_id, "traversal": traversal}).fetchone()
        if row is None:
            return []
        fresh, root_id, root = row
        opened = traversals.renew(db, stack_id=stack_id, root_id=root_id, root=root, traversal=fresh)
        if lost_leases:
            db.execute(INTERRUPTED, (lost_leases, opened.plan_node_id))
    return [opened.ring]
