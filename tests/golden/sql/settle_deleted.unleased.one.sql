WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(name)s::text AS name, %(type)s::text AS type, %(action)s::text AS action, %(status)s::text AS status, %(reason)s::text AS reason, %(started)s::boolean AS started, %(changed)s::boolean AS changed, %(physical_id)s::text AS physical_id, %(properties)s::json AS properties, %(shown)s::json AS shown, %(continued)s::boolean AS continued, %(status_read)s::text AS status_read, %(automatic)s::boolean AS automatic
)
, locked AS MATERIALIZED (
    SELECT n.id, n.id || n.needed_by AS node_ids FROM i JOIN graph_node n ON n.id = ANY (ARRAY[i.node_id])
    JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE n.state IN ('queued', '') AND n.resource_id = i.resource_id AND n.traversal = s.traversal
        AND (s.halted_traversal IS DISTINCT FROM s.traversal OR i.continued)
    ORDER BY i.node_id FOR UPDATE OF n
)
, r AS (
    DELETE FROM resource r USING i, locked WHERE locked.id = i.node_id AND r.id = ANY (ARRAY[i.resource_id])
        AND (r.lease IS NULL OR r.leased_until < clock_timestamp()) AND r.status = i.status_read
    RETURNING r.id
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (i.status, i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE true END AND i.action IS NOT NULL
)
, released AS (
    UPDATE graph_node n
    SET state = CASE WHEN l.nth = 0 THEN 'ready' WHEN n.blocked_by = 1 THEN 'queued' ELSE 'blocked' END,
        observed_ready = l.nth = 0, observed_ready_at = CASE WHEN l.nth = 0 THEN now() END, last_error = NULL,
        lease = NULL, leased_until = NULL,
        blocked_by = CASE WHEN l.nth = 0 THEN 0 ELSE n.blocked_by - 1 END, dirty = n.dirty OR l.changed,
        enqueued_at = CASE WHEN l.nth = 0 THEN n.enqueued_at
            WHEN n.blocked_by = 1 AND (n.dirty OR l.changed) AND l.nth <= %(max_messages)s THEN now() END
    FROM (
        SELECT d.id, d.nth - 1 AS nth, i.changed, r.id AS written_id
        FROM i CROSS JOIN r CROSS JOIN locked
        CROSS JOIN LATERAL unnest(locked.node_ids) WITH ORDINALITY AS d(id, nth)
        ORDER BY d.id  -- every statement locks in this order: no deadlocks
    ) l
    WHERE n.id = ANY (ARRAY[l.id]) AND n.state = CASE WHEN l.nth = 0 THEN 'queued' ELSE 'blocked' END
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.enqueued_at, n.dirty
)
SELECT CASE WHEN NOT dirty THEN 'clean' WHEN enqueued_at IS NULL THEN 'queued' ELSE 'send' END, id, traversal,
    queue, label
FROM released WHERE state = 'queued'
UNION ALL SELECT 'held', r.id, NULL, NULL, NULL FROM r
