WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x(node_id bigint, resource_id bigint, stack_id bigint, name text, type text, action text, status text, reason text, started boolean, physical_id text, reference_id text, properties json, attributes json, metadata json, data json, sealed text, shown json, requires bigint[], input_digests text[], value_digest text, observed text, continued boolean, status_read text, automatic boolean)
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
    ORDER BY i.node_id, x.status <> 'IN_PROGRESS'
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
UNION ALL SELECT 'send', id, traversal, queue, label FROM done
