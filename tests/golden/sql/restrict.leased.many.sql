WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x(node_id bigint, resource_id bigint, stack_id bigint, name text, type text, action text, status text, reason text, started boolean, physical_id text, properties json, shown json, observed text, unreachable boolean, traversal bigint, automatic boolean)
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)
, r AS (
    UPDATE resource r
    SET action = CASE WHEN i.status IS NULL THEN r.action ELSE i.action END,
        status = coalesce(i.status, CASE WHEN r.op IS NULL THEN r.status
            WHEN r.observed = 'failed' THEN 'FAILED' ELSE 'COMPLETE' END),
        status_reason = CASE WHEN i.status IS NULL AND r.op IS NULL THEN r.status_reason ELSE i.reason END,
        observed = coalesce(i.observed, r.observed),
        observed_at = CASE WHEN i.observed IS NULL THEN r.observed_at ELSE now() END,
        repair = CASE WHEN i.observed IS NULL THEN r.repair END,
        observed_reason = CASE WHEN i.observed IS NULL THEN r.observed_reason ELSE i.reason END,
        unreachable_since = CASE WHEN i.unreachable THEN coalesce(r.unreachable_since, now())
            WHEN i.observed IS NULL THEN r.unreachable_since END,
        unreachable_reason = CASE WHEN i.unreachable THEN i.reason
            WHEN i.observed IS NULL THEN r.unreachable_reason END,
        op = NULL, op_started_at = NULL,  -- only the CHECK of a stack has one open
        lease = NULL, leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
, done AS (
    UPDATE graph_node n
    SET state = 'failed', lease = NULL, leased_until = NULL, due_at = NULL, last_error = 'ResourceActionRestricted: resources.' || i.name || ': ' || i.reason
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
    RETURNING n.id, n.stack_id, n.traversal, n.needed_by, true AS changed, i.name,
        n.last_error AS reason, i.type, i.physical_id, i.action, n.retry_count
), recorded_failure AS (
    INSERT INTO failure (stack_id, traversal, resource_name, reason, resource_type, physical_id, action,
        attempts)
    SELECT stack_id, traversal, name, reason, type, physical_id, action, retry_count + 1 FROM done
)
, halted AS (
    UPDATE stack s
    SET halted_traversal = s.traversal,
        status_reason = 'Stack ' || s.action || ' is winding down: ' || f.reason
    FROM (SELECT stack_id, traversal, (array_agg(reason ORDER BY id))[1] AS reason FROM done
        GROUP BY stack_id, traversal) f
    WHERE s.id = ANY (ARRAY[f.stack_id]) AND s.traversal = f.traversal AND NOT s.keep_going
        AND s.halted_traversal IS DISTINCT FROM s.traversal
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), ('FAILED', i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE true END
    ORDER BY i.node_id, x.status <> 'IN_PROGRESS'
), woken AS (
UPDATE graph_node n SET state = 'queued', due_at = NULL, enqueued_at = now(), re_enqueues = 0
FROM i CROSS JOIN LATERAL (
    SELECT m.id FROM graph_node m
    WHERE m.stack_id = i.stack_id AND m.resource_id = i.resource_id AND m.id <> i.node_id
        AND m.state IN ('checking', 'waiting') AND m.due_at IS NOT NULL OFFSET 0) AS blocked_node
WHERE n.id = ANY (ARRAY[blocked_node.id]) AND n.due_at IS NOT NULL
RETURNING n.id, n.traversal, n.queue, n.label
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
UNION ALL SELECT 'send', id, traversal, queue, label FROM woken
