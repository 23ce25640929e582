WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(reason)s::text AS reason, %(wait_seconds)s::float8 AS wait_seconds, %(retried)s::boolean AS retried, %(unreachable)s::boolean AS unreachable, %(refusal)s::text AS refusal, %(outage)s::boolean AS outage, %(absent)s::boolean AS absent, %(traversal)s::bigint AS traversal
)
, r AS (
    UPDATE resource r
    SET 
        unreachable_since = CASE WHEN i.unreachable THEN coalesce(r.unreachable_since, now()) END,
        unreachable_reason = CASE WHEN i.unreachable THEN i.reason END, lease = NULL, leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
, done AS (
    UPDATE graph_node n
    SET state = 'waiting', lease = NULL, leased_until = NULL, enqueued_at = NULL, re_enqueues = 0,
        lost_leases = 0, waiting_since = CASE WHEN n.unreachable_tries > 0 AND NOT i.outage THEN now()
            ELSE coalesce(n.waiting_since, now()) END,
        last_error = CASE WHEN i.retried OR i.refusal IS NOT NULL THEN i.reason
            WHEN n.unreachable_tries = 0 AND n.refusal IS NULL THEN n.last_error END,
        retry_count = n.retry_count + i.retried::int,
        unreachable_tries = CASE WHEN i.outage THEN least(n.unreachable_tries + 1, 1000) ELSE 0 END,
        refusal = i.refusal,
        refused_since = CASE WHEN i.outage THEN
                CASE WHEN n.unreachable_tries + 1 < 3 THEN n.refused_since END
            WHEN i.refusal IS NULL THEN n.refused_since
            ELSE jsonb_build_object(i.refusal, extract(epoch FROM now())) || coalesce(n.refused_since, '{}')
            END,
        absent = i.absent AND i.refusal IS NULL,
        due_at = CASE WHEN i.wait_seconds IS NULL THEN 'infinity'
            ELSE clock_timestamp() + make_interval(secs => i.wait_seconds) END
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
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
