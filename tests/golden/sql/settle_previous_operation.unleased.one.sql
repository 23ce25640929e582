WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(name)s::text AS name, %(type)s::text AS type, %(action)s::text AS action, %(status)s::text AS status, %(reason)s::text AS reason, %(started)s::boolean AS started, %(physical_id)s::text AS physical_id, %(reference_id)s::text AS reference_id, %(properties)s::json AS properties, %(attributes)s::json AS attributes, %(metadata)s::json AS metadata, %(data)s::json AS data, %(sealed)s::text AS sealed, %(shown)s::json AS shown, %(requires)s::bigint[] AS requires, %(input_digests)s::text[] AS input_digests, %(value_digest)s::text AS value_digest, %(observed)s::text AS observed, %(continued)s::boolean AS continued, %(status_read)s::text AS status_read, %(automatic)s::boolean AS automatic
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
    SET action = i.action, status = i.status, status_reason = i.reason, physical_id = i.physical_id,
        reference_id = i.reference_id, properties = i.properties, attributes = i.attributes,
        metadata = i.metadata, data = i.data, sealed = convert_to(i.sealed, 'UTF8'),
        built_digest = (SELECT d.digest FROM resource_definition d WHERE d.id = ANY (ARRAY[r.definition_id])),
        suspended = CASE i.action WHEN 'SUSPEND' THEN true WHEN 'RESUME' THEN false ELSE r.suspended END,
        value_digest = i.value_digest, attempt = greatest(r.attempt, 1), updated_at = now(),
        requires = i.requires, input_digests = i.input_digests,
        observed = i.observed, observed_at = now(), observed_reason = NULL, repair = NULL,
        unreachable_since = NULL, unreachable_reason = NULL,
        op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL
    FROM i, locked WHERE locked.id = i.node_id AND r.id = ANY (ARRAY[i.resource_id])
        AND (r.lease IS NULL OR r.leased_until < clock_timestamp()) AND r.status = i.status_read
    RETURNING r.id
)
, done AS (
    UPDATE graph_node n
    SET state = 'queued', lease = NULL, leased_until = NULL, enqueued_at = now(), re_enqueues = 0,
        last_error = NULL, absent = false, refusal = NULL, refused_since = NULL
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('queued', '')
    RETURNING n.id, n.traversal, n.queue, n.label
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (i.status, i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE true END
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
UNION ALL SELECT 'send', id, traversal, queue, label FROM done
