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
    SET state = 'failed', lease = NULL, leased_until = NULL, due_at = NULL, last_error = CASE i.action WHEN 'CHECK' THEN i.name || ': ' || i.reason ELSE i.reason END
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
    RETURNING n.id, n.stack_id, n.traversal, n.needed_by, true AS changed, i.name,
        n.last_error AS reason, i.type, i.physical_id, i.action, n.retry_count
), recorded_failure AS (
    INSERT INTO failure (stack_id, traversal, resource_name, reason, resource_type, physical_id, action,
        attempts)
    SELECT stack_id, traversal, name, reason, type, physical_id, action, retry_count + 1 FROM done
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (i.status, i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE i.status IS NOT NULL END
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
