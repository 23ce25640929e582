WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(name)s::text AS name, %(type)s::text AS type, %(action)s::text AS action, %(status)s::text AS status, %(reason)s::text AS reason, %(started)s::boolean AS started, %(physical_id)s::text AS physical_id, %(properties)s::json AS properties, %(attributes)s::json AS attributes, %(data)s::json AS data, %(sealed)s::text AS sealed, %(shown)s::json AS shown, %(definition_id)s::bigint AS definition_id, %(requires)s::bigint[] AS requires, %(input_digests)s::text[] AS input_digests, %(observed)s::text AS observed, %(attempt)s::integer AS attempt, %(traversal)s::bigint AS traversal, %(lost_seconds)s::float8 AS lost_seconds, %(automatic)s::boolean AS automatic
)
, r AS (
    UPDATE resource r
    SET op = NULL, op_started_at = NULL, action = i.action, status = 'FAILED',
        status_reason = i.reason, attempt = i.attempt,
        physical_id = i.physical_id, properties = i.properties, data = i.data,
        attributes = CASE WHEN i.sealed IS NOT NULL THEN NULL WHEN r.sealed IS NULL THEN r.attributes
            ELSE i.attributes END,
        sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
        input_digests = i.input_digests,
        built_digest = CASE WHEN i.action = 'UPDATE' THEN NULL ELSE r.built_digest END,
        observed = coalesce(i.observed, r.observed),
        observed_at = CASE WHEN i.observed IS NULL THEN r.observed_at ELSE now() END,
        repair = CASE WHEN i.observed IS NULL THEN r.repair END,
        lost_at = coalesce(clock_timestamp() - make_interval(secs => i.lost_seconds), r.lost_at),
        lease = NULL, leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
, done AS (
    UPDATE graph_node n
    SET state = 'failed', lease = NULL, leased_until = NULL, due_at = NULL, last_error = i.reason
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND (n.state = 'checking' AND n.lease = %(lease)s OR n.state IN ('queued', 'waiting'))
    RETURNING n.id, n.stack_id, n.traversal, i.name, i.reason, i.type, i.physical_id, i.action,
        n.retry_count
), recorded_failure AS (
    INSERT INTO failure (stack_id, traversal, resource_name, reason, resource_type, physical_id, action,
        attempts)
    SELECT stack_id, traversal, name, reason, type, physical_id, action, retry_count + 1 FROM done ORDER BY id
)
, halted AS (
    UPDATE stack s
    SET halted_traversal = s.traversal,
        status_reason = 'Stack ' || s.action || ' is winding down: ' || f.reason
    FROM (SELECT stack_id, traversal, (array_agg(reason ORDER BY id))[1] AS reason FROM done
        GROUP BY stack_id, traversal) f
    WHERE s.id = ANY (ARRAY[f.stack_id]) AND s.traversal = f.traversal AND NOT s.keep_going
        AND s.halted_traversal IS DISTINCT FROM s.traversal
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (i.status, i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE true END
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
