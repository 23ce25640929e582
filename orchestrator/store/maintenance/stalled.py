"""The stall audit: finds stacks that no event can move any more, and restarts them
(docs/internals/protocol.md rule 16).

Every statement that ends a visit leaves work that some process will find. If a statement did not, or if rows
were lost or changed by hand, a stack would wait until its timeout. A stack in progress is alive while a node
of its traversal is queued, checking, waiting, or paused at a hook.
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

QUIET_SECONDS: Final = 30.0  # after the start of an action

# Queued nodes are found by the root only: while another stack of the tree has a queued node, a stall goes
# unnoticed.
_LIFELESS = f"""
    s.status = 'IN_PROGRESS' AND s.action_started_at < now() - make_interval(secs => %(seconds)s)
    AND NOT EXISTS (SELECT 1 FROM graph_node n WHERE n.root_id = s.root_id AND n.state = 'queued')
    AND NOT EXISTS (
        SELECT 1 FROM graph_node n WHERE n.stack_id = s.id AND n.traversal = s.traversal
            AND {check_in("n.state", STATES_AT_WORK)})
"""
# A stack that keeps going after failures may have nodes that are blocked by these.
STALLED = f"""
SELECT s.id, s.traversal, s.uuid::text FROM stack s
WHERE {_LIFELESS} AND s.halted_traversal IS DISTINCT FROM s.traversal
    AND NOT EXISTS (SELECT 1 FROM failure f WHERE f.stack_id = s.id AND f.traversal = s.traversal)
LIMIT 100
"""

# A failing stack that waits for operations without a node: they were started by an older traversal, on
# resources that this traversal had not reached.
UNPLANNED = f"""
SELECT s.id, s.traversal, s.uuid::text FROM stack s
WHERE {_LIFELESS} AND s.halted_traversal = s.traversal
    AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.stack_id = s.id AND r.op IS NOT NULL
        AND r.leased_until > clock_timestamp())
LIMIT 100
"""

# The same action in a new traversal: its revision, start and timeout are unchanged.
RESTART = """
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

SET_LOST_LEASES = "UPDATE graph_node SET lost_leases = %(lost_leases)s WHERE id = %(node_id)s"


def stalled_stacks(db: Db, seconds: float = QUIET_SECONDS) -> list[tuple[int, int, str]]:
    """Return stacks in progress that nothing can move any more: id, traversal, uuid."""
    return [(row[0], row[1], row[2]) for row in db.execute(STALLED, {"seconds": seconds}).fetchall()]


def unplanned_stacks(db: Db, seconds: float = QUIET_SECONDS) -> list[tuple[int, int, str]]:
    """Return failing stacks that wait for operations without a node: id, traversal, uuid."""
    return [(row[0], row[1], row[2]) for row in db.execute(UNPLANNED, {"seconds": seconds}).fetchall()]


def restart_traversal(db: Db, stack_id: int, traversal: int, *, lost_leases: int = 0) -> list[CheckMessage]:
    """Replace a traversal whose nodes are lost or inconsistent by a new traversal; return the messages to
    send.

    Completed work is not repeated, because a traversal is planned from the resources. Recounting `blocked_by`
    would be cheaper, and wrong where a node is lost: its work would be skipped. `lost_leases` counts the
    interruptions of its plan, which are bounded.
    """
    with db.transaction():
        row = db.execute(RESTART, {"stack_id": stack_id, "traversal": traversal}).fetchone()
        if row is None:
            return []
        fresh, root_id, root = row
        opened = traversals.supersede(db, stack_id=stack_id, root_id=root_id, root=root, traversal=fresh)
        if lost_leases:
            db.execute(SET_LOST_LEASES, {"lost_leases": lost_leases, "node_id": opened.plan_node_id})
    return [opened.message]
