WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x(node_id bigint, resource_id bigint, stack_id bigint, name text, type text, action text, status text, reason text, started boolean, changed boolean, physical_id text, reference_id text, properties json, attributes json, metadata json, data json, sealed text, shown json, definition_id bigint, digest text, requires bigint[], input_digests text[], value_digest text, observed text, traversal bigint, automatic boolean)
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)
, r AS (
    UPDATE resource r
    SET action = i.action, status = 'COMPLETE', status_reason = i.reason,
        physical_id = i.physical_id, reference_id = i.reference_id, properties = i.properties,
        attributes = i.attributes, metadata = i.metadata, data = i.data,
        sealed = convert_to(i.sealed, 'UTF8'), lost_at = NULL,
        value_digest = i.value_digest, updated_at = now(), marked_unhealthy = false,
        definition_id = i.definition_id, built_digest = decode(i.digest, 'hex'), requires = i.requires,
        input_digests = i.input_digests, observed = i.observed, observed_at = now(), observed_reason = NULL,
        repair = NULL, unreachable_since = NULL, unreachable_reason = NULL,
        lease = NULL, leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
, done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL,
        leased_until = NULL, last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
    RETURNING n.id, n.needed_by, i.changed
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (i.status, i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE true END
    ORDER BY i.node_id, x.status <> 'IN_PROGRESS'
)
, decrement AS (
    SELECT d.id, count(*) AS k, bool_or(done.changed) AS changed, row_number() OVER () AS nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) AS d(id) GROUP BY d.id
), released AS (
    UPDATE graph_node n
    SET blocked_by = n.blocked_by - l.k, dirty = n.dirty OR l.changed,
        state = CASE WHEN n.blocked_by = l.k THEN 'queued' ELSE 'blocked' END,
        enqueued_at = CASE WHEN n.blocked_by = l.k AND (n.dirty OR l.changed) AND l.nth <= %(max_messages)s
            THEN now() END
    FROM (SELECT * FROM decrement ORDER BY id) l  -- every statement locks in this order: no deadlocks
    WHERE n.id = ANY (ARRAY[l.id]) AND n.state = 'blocked'
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.enqueued_at, n.dirty
)
SELECT CASE WHEN NOT dirty THEN 'clean' WHEN enqueued_at IS NULL THEN 'queued' ELSE 'send' END, id, traversal,
    queue, label
FROM released WHERE state = 'queued'
UNION ALL SELECT 'held', r.id, NULL, NULL, NULL FROM r
