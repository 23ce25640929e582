"""How a visit ends that made what takes its resource's place at once, as types that call nobody can
(operations/adr/0004): the statements REPLACE and SETTLE in one. In the forms of `outcome_sql.py`,
though only those for nodes that no claim was made for are ever used.
"""

from __future__ import annotations

from orchestrator.store.nodes.outcome_builder import (
    LEASE_IS_OURS,
    RELEASE,
    RESOURCE_LEASE_IS_OURS,
    ROWS,
    SETTLED,
    settle_and_release,
    variants,
)

MARK_READY = f"""
, done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), resource_id = m.id, lease = NULL,
        leased_until = NULL, retry_count = 0, last_error = NULL
    FROM i JOIN made m ON m.replaces = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND {LEASE_IS_OURS}
    RETURNING n.id, n.needed_by, i.changed
)"""
MOVED = settle_and_release(
    "made",
    """
        resource_id = CASE WHEN l.nth = 0 THEN l.made ELSE n.resource_id END, retry_count = 0,""",
)

# What is written is the heir's, but for the id of the resource: that of the one whose place it takes. Users
# read of the old one that its update is over (`was_fine`), then how the new one was made.
SETTLE_INLINE_REPLACEMENT = (
    ROWS
    + f"""
, fresh AS MATERIALIZED (
    SELECT i.resource_id, nextval('resource_id_seq') AS id FROM i
)
, r AS (
    UPDATE resource r
    SET leftover = true, lease = NULL, leased_until = NULL,
        replaced_by = (SELECT fresh.id FROM fresh WHERE fresh.resource_id = r.id)
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
    RETURNING r.id, r.replaced_by, r.type, r.physical_id
), made AS (
    INSERT INTO resource (id, uuid, stack_id, name, type, runs_as, replaces, action, status, status_reason,
        physical_id, reference_id, properties, attributes, metadata, data, sealed, definition_id,
        built_digest, requires, input_digests, value_digest, attempt, updated_at, observed, observed_at)
    OVERRIDING SYSTEM VALUE
    SELECT r.replaced_by, i.heir, i.stack_id, i.name, i.type, i.runs_as, r.id, i.action, i.status, i.reason,
        i.physical_id, i.reference_id, i.properties, i.attributes, i.metadata, i.data,
        convert_to(i.sealed, 'UTF8'), i.definition_id,
        decode(i.digest, 'hex'), i.requires, i.input_digests, i.value_digest, greatest(i.attempt, 1),
        CASE WHEN i.action = 'CREATE' THEN NULL ELSE now() END, i.observed, now()
    FROM i JOIN r ON r.id = i.resource_id
    RETURNING id, replaces
)"""
    + MARK_READY
    + """
, told AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties)
    SELECT i.stack_id, i.name, x.type, x.physical_id, x.action, x.status, x.reason,
        CASE WHEN i.sealed IS NULL AND x.nth = 4 THEN i.properties END
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES
        (1, i.was_fine, r.type, r.physical_id, 'UPDATE', 'IN_PROGRESS', 'state changed'),
        (2, i.was_fine, r.type, r.physical_id, 'UPDATE', 'COMPLETE', 'state changed'),
        (3, i.started, i.type, i.physical_id, i.action, 'IN_PROGRESS', 'state changed'),
        (4, true, i.type, i.physical_id, i.action, i.status, i.reason)
    ) AS x(nth, told, type, physical_id, action, status, reason)
    WHERE x.told ORDER BY i.node_id, x.nth
)"""
    + RELEASE
    + SETTLED
)

UNCLAIMED, OF_ONE = variants((SETTLE_INLINE_REPLACEMENT,), MARK_READY, MOVED)
