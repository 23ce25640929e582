"""The end of a child stack, by the visit that settles its last node: a single statement without a claim.

It covers successful ends without further work. Every other end, and every end of a root stack, is a visit of
the finish node (`operations/stack_completion.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import TEMPLATE_ACTIONS
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.visit_sql import IS_QUEUED
from orchestrator.store.tables.base import check_in
from orchestrator.store.traversals.stack_end import COMPLETE_REASON, NOT_ENDED, StackEnd, render

# The stack is locked before the node, as in every statement: an update may arrive at this moment. Pending
# deletes (operations/adr/0002) and snapshots that are deleted with their stack prevent the end.
COMPLETE_CHILD: Final = StackEnd(
    "complete_child",
    {
        "k": f"""
    SELECT s.id, s.traversal FROM graph_node g JOIN stack s ON s.id = ANY (ARRAY[g.stack_id])
    WHERE g.id = %(node_id)s::bigint AND g.kind = 'finish' AND s.owner_id IS NOT NULL
        AND s.traversal = g.traversal AND s.halted_traversal IS DISTINCT FROM s.traversal
        AND s.{NOT_ENDED} AND s.action NOT IN ('CHECK', 'SNAPSHOT')
        AND s.queued_action IS NULL
        AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.stack_id = s.id AND r.deposed)
        AND (s.action <> 'DELETE' OR NOT EXISTS (SELECT 1 FROM snapshot x WHERE x.stack_id = s.id))
    FOR UPDATE OF s""",
        "n": f"""
    UPDATE graph_node g SET state = 'ready', observed_ready = true, observed_ready_at = now()
    FROM k WHERE g.id = %(node_id)s::bigint AND g.stack_id = k.id AND g.traversal = k.traversal
        AND g.{IS_QUEUED} AND g.blocked_by = 0
    RETURNING g.stack_id""",
        "s": f"""
    UPDATE stack
    SET status = 'COMPLETE', status_reason = {COMPLETE_REASON},
        good_revision_id = CASE WHEN {check_in("action", TEMPLATE_ACTIONS)}
            THEN revision_id ELSE good_revision_id END,
        deleted_at = CASE WHEN action = 'DELETE' THEN now() END
    FROM n WHERE stack.id = ANY (ARRAY[n.stack_id])
    RETURNING stack.id, stack.uuid, stack.name, stack.action, stack.status, stack.status_reason,
        stack.traversal, stack.revision_id, stack.root_id, stack.owner_id, stack.parent_resource_id,
        stack.automatic""",
    },
    "'complete'",
    """SELECT 'ended', s.id, s.traversal, s.action, s.uuid::text FROM s
UNION ALL SELECT 'send', id, traversal, queue, label FROM woken""",
    ends_snapshot=False,
)
_COMPLETE_CHILD: Final = render(COMPLETE_CHILD)


class CompletedChild(NamedTuple):
    """A child stack that is COMPLETE."""

    uuid: str
    action: str
    messages: Sequence[CheckMessage]  # for the nodes that wait for the child


def complete_child(db: repository.CheckConnection, node_id: int, root: str) -> CompletedChild | None:
    """Complete the child stack of this finish node; return None if that takes more than this statement, or if
    the traversal is over.
    """
    rows = repository.retried(db, _COMPLETE_CHILD, {"node_id": str(node_id)})
    messages = repository.settled(rows, root).messages
    return next(
        (CompletedChild(uuid, action, messages) for effect, _, _, action, uuid in rows if effect == "ended"),
        None,
    )
