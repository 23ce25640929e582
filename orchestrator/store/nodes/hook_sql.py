"""Pausing nodes at hooks and resuming them, in SQL. Rare, so the statements are separate.

A statement that pauses a node first takes a share lock on the stack's row: a traversal that ends or is
superseded is then either seen here, or sees the paused node and releases it (`RELEASE_PAUSED`).
"""

from __future__ import annotations

from typing import Final

from orchestrator.store.nodes.outcome_builder import (
    IS_SMALL,
    SHOWN,
    EventRule,
    Next,
    NodeEffect,
    OutcomeStatement,
)
from orchestrator.store.nodes.outcome_fences import LEASED_NODE
from orchestrator.store.nodes.outcome_sql import SETTLE
from orchestrator.store.nodes.visit_sql import QUEUED

# The event of a resource in its present state; r is a row of `resource`.
STATE_EVENT: Final = """
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT r.stack_id, r.name, r.type, r.physical_id, r.action, r.status, %(reason)s"""


def _pause_before(node: str) -> str:
    """Return the statement that pauses a node before its step: the resource is unchanged and released.

    `node` is the condition under which the node may be paused.
    """
    return f"""
WITH s AS MATERIALIZED (
    SELECT s.id FROM stack s WHERE s.id = %(stack_id)s AND s.traversal = %(traversal)s
        AND s.halted_traversal IS DISTINCT FROM s.traversal
    FOR SHARE
), n AS (
    UPDATE graph_node n
    SET state = 'paused', hooks = ARRAY[%(hook)s] || array_remove(n.hooks, %(hook)s), lease = NULL,
        leased_until = NULL, enqueued_at = NULL, re_enqueues = 0, waiting_since = now()
    FROM s WHERE n.id = %(node_id)s AND n.stack_id = s.id AND {node}
    RETURNING n.resource_id
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM n WHERE r.id = n.resource_id AND r.lease = %(lease)s
), recorded AS ({STATE_EVENT} FROM n JOIN resource r ON r.id = n.resource_id)
SELECT resource_id FROM n
"""


PAUSE_CLAIMED: Final = _pause_before(LEASED_NODE)
PAUSE_UNCLAIMED: Final = _pause_before(QUEUED)

# A node that pauses after its step: the outcome is written and no dependent is released. In a traversal that
# is over by now the node is dropped.
_PAUSED_NODE: Final = NodeEffect(
    before="""
, s AS MATERIALIZED (
    SELECT s.id FROM i JOIN graph_node n ON n.id = i.node_id JOIN stack s ON s.id = n.stack_id
    WHERE s.traversal = n.traversal AND s.halted_traversal IS DISTINCT FROM s.traversal
    FOR SHARE OF s
)""",
    set="""state = CASE WHEN x.alive THEN 'paused' ELSE 'dropped' END, hooks = ARRAY[%(hook)s], lease = NULL,
        leased_until = NULL, enqueued_at = NULL, re_enqueues = 0, waiting_since = now(), last_error = NULL""",
    source="JOIN r ON r.id = i.resource_id CROSS JOIN (SELECT EXISTS (SELECT 1 FROM s) AS alive) AS x",
    returning="n.state",
)
_PAUSED_EVENTS: Final = EventRule(
    f"""
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.nth = 2 AND {IS_SMALL} THEN {SHOWN} END
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES (1, 'IN_PROGRESS', 'state changed'), (2, i.status, i.reason),
        (3, i.status, %(paused)s)) AS x(nth, status, reason)
    WHERE CASE x.nth WHEN 1 THEN i.started
        WHEN 3 THEN EXISTS (SELECT 1 FROM done WHERE state = 'paused') ELSE true END
    ORDER BY x.nth""",
    "x.nth",
)
SETTLE_PAUSED: Final = OutcomeStatement(
    "settle_paused",
    resource=SETTLE.resource,
    node=_PAUSED_NODE,
    events=_PAUSED_EVENTS,
    next=Next.NOTHING,
)
# A resource that was deleted keeps its row until the hook is cleared, like a resource that was never created:
# the next visit deletes the row.
DELETE_PAUSED: Final = OutcomeStatement(
    "delete_paused",
    resource="""action = i.action, status = i.status, status_reason = i.reason, physical_id = NULL,
        attempt = 0, updated_at = now(), op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL,
        leased_until = NULL""",
    node=_PAUSED_NODE,
    events=_PAUSED_EVENTS,
    next=Next.NOTHING,
)

# Resume every node of the name that is paused at the hook: two incarnations of a resource may be waiting to
# be deleted.
CLEAR = f"""
WITH n AS (
    UPDATE graph_node n
    SET state = 'queued', enqueued_at = now(), re_enqueues = 0, waiting_since = NULL,
        hooks = CASE WHEN %(after)s THEN ARRAY[%(changed)s] ELSE array_remove(n.hooks, %(hook)s) END
    FROM stack s, resource r
    WHERE s.id = %(stack_id)s AND n.stack_id = s.id AND n.traversal = s.traversal AND n.state = 'paused'
        AND n.hooks[1] = %(hook)s AND r.id = n.resource_id AND r.name = %(name)s
    RETURNING n.id, n.traversal, n.queue, n.label, n.resource_id, n.root_id
), recorded AS ({STATE_EVENT} FROM n JOIN resource r ON r.id = n.resource_id)
SELECT n.id, n.traversal, n.queue, n.label, root.uuid::text FROM n JOIN stack root ON root.id = n.root_id
"""

# The stack is locked before its nodes, as in every statement, and only if a node is paused.
LOCK_WAITING = """
SELECT 1 FROM stack s WHERE s.id = %(stack_id)s
    AND EXISTS (SELECT 1 FROM graph_node n WHERE n.stack_id = %(stack_id)s AND n.state = 'paused')
FOR UPDATE
"""

RELEASE_PAUSED = f"""
WITH n AS (
    UPDATE graph_node n SET state = 'dropped', waiting_since = NULL
    FROM stack s
    WHERE s.id = %(stack_id)s AND n.stack_id = s.id AND n.state = 'paused'
        AND (n.traversal < s.traversal OR s.halted_traversal = n.traversal)
    RETURNING n.resource_id
), recorded AS ({STATE_EVENT} FROM n JOIN resource r ON r.id = n.resource_id)
SELECT 1
"""

SET_HOOKS = """
UPDATE graph_node n SET hooks = x.hooks::text[]
FROM unnest(%(ids)s::bigint[], %(hooks)s::text[]) AS x(id, hooks) WHERE n.id = x.id
"""

PAUSED = """
SELECT r.name, n.hooks[1], r.action, r.status, n.waiting_since, n.id
FROM graph_node n JOIN resource r ON r.id = n.resource_id
WHERE n.stack_id = %(stack_id)s AND n.state = 'paused'
    AND (%(since)s::timestamptz IS NULL OR (n.waiting_since, n.id) > (%(since)s, %(node_id)s))
ORDER BY n.waiting_since, n.id LIMIT %(limit)s
"""
