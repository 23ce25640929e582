WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(name)s::text AS name, %(type)s::text AS type, %(action)s::text AS action, %(status)s::text AS status, %(reason)s::text AS reason, %(started)s::boolean AS started, %(physical_id)s::text AS physical_id, %(properties)s::json AS properties, %(shown)s::json AS shown, %(traversal)s::bigint AS traversal
)
, r AS (
    UPDATE resource r
    SET action = i.action, status = i.status, status_reason = i.reason, physical_id = NULL,
        attempt = 0, updated_at = now(), op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL,
        leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
, s AS MATERIALIZED (
    SELECT s.id FROM i JOIN graph_node n ON n.id = i.node_id JOIN stack s ON s.id = n.stack_id
    WHERE s.traversal = n.traversal AND s.halted_traversal IS DISTINCT FROM s.traversal
    FOR SHARE OF s
)
, done AS (
    UPDATE graph_node n
    SET state = CASE WHEN x.alive THEN 'paused' ELSE 'dropped' END, hooks = ARRAY[%(hook)s], lease = NULL,
        leased_until = NULL, enqueued_at = NULL, re_enqueues = 0, waiting_since = now(), last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id CROSS JOIN (SELECT EXISTS (SELECT 1 FROM s) AS alive) AS x
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
    RETURNING n.state
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.nth = 2 AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES (1, 'IN_PROGRESS', 'state changed'), (2, i.status, i.reason),
        (3, i.status, %(paused)s)) AS x(nth, status, reason)
    WHERE CASE x.nth WHEN 1 THEN i.started
        WHEN 3 THEN EXISTS (SELECT 1 FROM done WHERE state = 'paused') ELSE true END
    ORDER BY x.nth
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
