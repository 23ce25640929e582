WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(changed)s::boolean AS changed, %(traversal)s::bigint AS traversal
)
, r AS (
    UPDATE resource r
    SET lease = NULL, leased_until = NULL
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
)
, decrement AS (
    SELECT d.id, 1 AS k, done.changed, d.nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) WITH ORDINALITY AS d(id, nth)
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
