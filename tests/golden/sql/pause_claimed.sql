WITH s AS MATERIALIZED (
    SELECT s.id FROM stack s WHERE s.id = %(stack_id)s AND s.traversal = %(traversal)s
        AND s.halted_traversal IS DISTINCT FROM s.traversal
    FOR SHARE
), n AS (
    UPDATE graph_node n
    SET state = 'paused', hooks = ARRAY[%(hook)s] || array_remove(n.hooks, %(hook)s), lease = NULL,
        leased_until = NULL, enqueued_at = NULL, re_enqueues = 0, waiting_since = now()
    FROM s WHERE n.id = %(node_id)s AND n.stack_id = s.id AND n.state IN ('checking', '') AND n.lease = %(lease)s
    RETURNING n.resource_id
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM n WHERE r.id = n.resource_id AND r.lease = %(lease)s
), recorded AS (
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT r.stack_id, r.name, r.type, r.physical_id, r.action, r.status, %(reason)s FROM n JOIN resource r ON r.id = n.resource_id)
SELECT resource_id FROM n
