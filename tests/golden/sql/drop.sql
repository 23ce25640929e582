WITH i AS MATERIALIZED (
    SELECT n.id AS node_id, n.stack_id,
        n.resource_id FROM graph_node n WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s RETURNING r.id
), done AS (
    UPDATE graph_node n SET state = 'dropped', lease = NULL, leased_until = NULL
    FROM i WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '')
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
