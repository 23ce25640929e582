WITH i AS (SELECT NULL::bigint AS node_id WHERE false), r AS (SELECT NULL::bigint AS id WHERE false),
clean AS MATERIALIZED (
    SELECT n.id, n.resource_id, x.nth
    FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS x(id, nth)
    JOIN graph_node n ON n.id = ANY (ARRAY[x.id])
    JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE x.id > 0 AND n.state = 'queued' AND NOT n.dirty AND s.traversal = n.traversal
        AND s.halted_traversal IS DISTINCT FROM s.traversal
    ORDER BY x.id FOR UPDATE OF n SKIP LOCKED
), stale AS (
    UPDATE graph_node n SET dirty = true, enqueued_at = CASE WHEN clean.nth <= %(max_messages)s THEN now() END
    FROM clean WHERE n.id = ANY (ARRAY[clean.id]) AND EXISTS (
        SELECT 1 FROM resource o CROSS JOIN LATERAL unnest(o.requires, o.input_digests) AS x(id, digest)
        LEFT JOIN resource q ON q.id = ANY (ARRAY[x.id])
        WHERE o.id = ANY (ARRAY[clean.resource_id]) AND (q.id IS NULL OR q.deposed OR x.digest IS DISTINCT FROM q.value_digest
        AND NOT coalesce(starts_with(x.digest, 'early-') AND string_to_array(x.digest, '/')
            <@ string_to_array(q.value_digest, '/'), false)))
    RETURNING n.id, n.traversal, n.queue, n.label, n.enqueued_at
), done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), enqueued_at = NULL
    FROM clean WHERE n.id = ANY (ARRAY[clean.id]) AND clean.id NOT IN (SELECT id FROM stale)
    RETURNING n.id, n.needed_by, false AS changed
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
UNION ALL
SELECT CASE WHEN enqueued_at IS NULL THEN 'queued' ELSE 'send' END, id, traversal, queue, label FROM stale
