WITH released AS (
    UPDATE graph_node n
    SET state = 'queued', lease = NULL, leased_until = NULL, enqueued_at = now(), re_enqueues = 0
    WHERE n.id = ANY (%(ids)s::bigint[]) AND n.state = 'checking' AND n.lease = %(lease)s
    RETURNING n.id, n.traversal, n.queue, n.label, n.resource_id
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM released WHERE r.id = ANY (ARRAY[released.resource_id]) AND r.lease = %(lease)s
)
SELECT 'send', id, traversal, queue, label FROM released
