"""The rows that an outcome may write: under its lease, or free."""

from __future__ import annotations

from typing import Final

from orchestrator.store.nodes.visit_sql import CHECKING, QUEUED


def lock_queued_node(*, with_dependents: bool = False) -> str:
    """Return the CTE that locks a node without a claim.

    It matches a node once, in the current traversal of its stack, while the node still visits the resource
    that was read: a replacement may have taken its place.
    """
    ids = "n.id, n.id || n.needed_by AS node_ids" if with_dependents else "n.id"
    return f"""
, locked AS MATERIALIZED (
    SELECT {ids} FROM i JOIN graph_node n ON n.id = ANY (ARRAY[i.node_id])
    JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE {QUEUED} AND n.resource_id = i.resource_id AND n.traversal = s.traversal
        AND (s.halted_traversal IS DISTINCT FROM s.traversal OR i.continued)
    ORDER BY i.node_id FOR UPDATE OF n
)"""


# A replacement needs its node: a node that has lost its lease is visited again, and the resource, whose lease
# another visit has not replaced yet, would be replaced twice.
LOCK_CLAIMED_NODE: Final = f"""
, locked AS MATERIALIZED (
    SELECT n.id FROM i JOIN graph_node n ON n.id = ANY (ARRAY[i.node_id])
    WHERE {CHECKING} AND n.lease = %(lease)s
    ORDER BY i.node_id FOR UPDATE OF n
)"""
# The lease fences a claimed resource. A row with a traversal is written only while that is the stack's.
LEASED: Final = """r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))"""
LEASED_RESOURCE: Final = f"i WHERE {LEASED}"
REPLACED_RESOURCE: Final = f"i, locked WHERE locked.id = i.node_id AND {LEASED}"
# A resource that was not claimed is written while it is free and has the status that the visit read.
FREE_RESOURCE: Final = """i, locked WHERE locked.id = i.node_id AND r.id = ANY (ARRAY[i.resource_id])
        AND (r.lease IS NULL OR r.leased_until < clock_timestamp()) AND r.status = i.status_read"""

LEASED_NODE: Final = f"{CHECKING} AND n.lease = %(lease)s"
LEASED_OR_EXPIRED_NODE: Final = (
    "(n.state = 'checking' AND n.lease = %(lease)s OR n.state IN ('queued', 'waiting'))"
)
