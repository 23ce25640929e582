WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x(node_id bigint, resource_id bigint, stack_id bigint, type text, changed boolean, definition_id bigint, digest text, requires bigint[], input_digests text[], continued boolean, runs_as text, status_read text)
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)
, locked AS MATERIALIZED (
    SELECT n.id FROM i JOIN graph_node n ON n.id = ANY (ARRAY[i.node_id])
    JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE n.state IN ('queued', '') AND n.resource_id = i.resource_id AND n.traversal = s.traversal
        AND (s.halted_traversal IS DISTINCT FROM s.traversal OR i.continued)
    ORDER BY i.node_id FOR UPDATE OF n
)
, r AS (
    UPDATE resource r
    SET definition_id = i.definition_id, built_digest = decode(i.digest, 'hex'),
        requires = i.requires, input_digests = i.input_digests, type = i.type, runs_as = i.runs_as,
        lease = NULL, leased_until = NULL
    FROM i, locked WHERE locked.id = i.node_id AND r.id = ANY (ARRAY[i.resource_id])
        AND (r.lease IS NULL OR r.leased_until < clock_timestamp()) AND r.status = i.status_read
    RETURNING r.id
)
, done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL,
        leased_until = NULL, last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('queued', '')
    RETURNING n.id, n.needed_by, i.changed
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
