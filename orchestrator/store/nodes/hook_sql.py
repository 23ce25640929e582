"""Pausing at hooks and going on, in SQL: rare, so in statements of their own.

What pauses a node takes the stack's row for share first: a traversal that ends, or gives way to another, then
either is seen here or sees the paused node, and lets go of it (`GIVE_UP`).
"""

from __future__ import annotations

from orchestrator.store.nodes import outcome_builder as parts
from orchestrator.store.nodes import outcome_sql as ending
from orchestrator.store.nodes.visit_sql import CHECKING, QUEUED

# A resource as events tell of it; r is a row of `resource`.
TELL = """
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT r.stack_id, r.name, r.type, r.physical_id, r.action, r.status, %(reason)s"""

# A node that comes to a hook before it acts: its resource stays as it is, and is let go of.
PAUSE = f"""
WITH s AS MATERIALIZED (
    SELECT s.id FROM stack s WHERE s.id = %(stack_id)s AND s.traversal = %(traversal)s
        AND s.halted_traversal IS DISTINCT FROM s.traversal
    FOR SHARE
), n AS (
    UPDATE graph_node n
    SET state = 'paused', hooks = ARRAY[%(hook)s] || array_remove(n.hooks, %(hook)s), lease = NULL,
        leased_until = NULL, rung_at = NULL, rings = 0, waiting_since = now()
    FROM s WHERE n.id = %(node_id)s AND n.stack_id = s.id AND {CHECKING} AND n.lease = %(lease)s
    RETURNING n.resource_id
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM n WHERE r.id = n.resource_id AND r.lease = %(lease)s
), told AS ({TELL} FROM n JOIN resource r ON r.id = n.resource_id)
SELECT resource_id FROM n
"""

PAUSE_UNCLAIMED = PAUSE.replace(f"{CHECKING} AND n.lease = %(lease)s", QUEUED)

# A node that comes to a hook with what it did: that is written, and nobody is released. A traversal that is
# over meanwhile has nobody to release either.
_PAUSED = f"""
, s AS MATERIALIZED (
    SELECT s.id FROM i JOIN graph_node n ON n.id = i.node_id JOIN stack s ON s.id = n.stack_id
    WHERE s.traversal = n.traversal AND s.halted_traversal IS DISTINCT FROM s.traversal
    FOR SHARE OF s
), done AS (
    UPDATE graph_node n
    SET state = CASE WHEN x.alive THEN 'paused' ELSE 'dropped' END, hooks = ARRAY[%(hook)s], lease = NULL,
        leased_until = NULL, rung_at = NULL, rings = 0, waiting_since = now(), last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id CROSS JOIN (SELECT EXISTS (SELECT 1 FROM s) AS alive) AS x
    WHERE n.id = i.node_id AND {parts.LEASE_IS_OURS}
    RETURNING n.state
), told AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN i.sealed IS NULL AND x.nth = 2 THEN i.properties END
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES (1, 'IN_PROGRESS', 'state changed'), (2, i.status, i.reason),
        (3, i.status, %(paused)s)) AS x(nth, status, reason)
    WHERE CASE x.nth WHEN 1 THEN i.started
        WHEN 3 THEN EXISTS (SELECT 1 FROM done WHERE state = 'paused') ELSE true END
    ORDER BY x.nth
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
"""

_SETTLE_PAUSED = ending.SETTLE.partition(parts.MARK_READY)[0] + _PAUSED

# What is gone keeps its row until the hook is cleared, as one that was never made: whoever comes next drops
# it.
_GONE_PAUSED = (
    parts.ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET action = i.action, status = i.status, status_reason = i.reason, physical_id = NULL, attempt = 0,
        updated_at = now(), op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL
    FROM i WHERE {parts.RESOURCE_LEASE_IS_OURS}
    RETURNING r.id
)"""
    + _PAUSED
)


# Whether the resource is gone, and whether the node was claimed -> the statement that pauses after it.
POST_HOOK_FORMS = {
    (False, True): parts.single_row_form(_SETTLE_PAUSED),
    (False, False): parts.single_row_form(parts.leaseless_form(_SETTLE_PAUSED)),
    (True, True): parts.single_row_form(_GONE_PAUSED),
    (True, False): parts.single_row_form(parts.leaseless_form(_GONE_PAUSED)),
}

# Every node of the name that waits at the hook goes on: two copies of a resource may be waiting to be
# deleted.
CLEAR = f"""
WITH n AS (
    UPDATE graph_node n
    SET state = 'queued', rung_at = now(), rings = 0, waiting_since = NULL,
        hooks = CASE WHEN %(after)s THEN ARRAY[%(changed)s] ELSE array_remove(n.hooks, %(hook)s) END
    FROM stack s, resource r
    WHERE s.id = %(stack_id)s AND n.stack_id = s.id AND n.traversal = s.traversal AND n.state = 'paused'
        AND n.hooks[1] = %(hook)s AND r.id = n.resource_id AND r.name = %(name)s
    RETURNING n.id, n.traversal, n.queue, n.label, n.resource_id, n.root_id
), told AS ({TELL} FROM n JOIN resource r ON r.id = n.resource_id)
SELECT n.id, n.traversal, n.queue, n.label, root.uuid::text FROM n JOIN stack root ON root.id = n.root_id
"""

# The stack before its nodes, as everybody takes them; not at all where nothing is paused.
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
), told AS ({TELL} FROM n JOIN resource r ON r.id = n.resource_id)
SELECT 1
"""

PUT = """
UPDATE graph_node n SET hooks = x.hooks::text[]
FROM unnest(%s::bigint[], %s::text[]) AS x(id, hooks) WHERE n.id = x.id
"""

PAUSED = """
SELECT r.name, n.hooks[1], r.action, r.status, n.waiting_since, n.id
FROM graph_node n JOIN resource r ON r.id = n.resource_id
WHERE n.stack_id = %(stack_id)s AND n.state = 'paused'
    AND (%(since)s::timestamptz IS NULL OR (n.waiting_since, n.id) > (%(since)s, %(node_id)s))
ORDER BY n.waiting_since, n.id LIMIT %(limit)s
"""
