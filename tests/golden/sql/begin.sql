WITH i AS NOT MATERIALIZED (
    SELECT %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(name)s::text AS name, %(type)s::text AS type, %(action)s::text AS action, %(started)s::boolean AS started, %(physical_id)s::text AS physical_id, %(properties)s::json AS properties, %(metadata)s::json AS metadata, %(sealed)s::text AS sealed, %(shown)s::json AS shown, %(definition_id)s::bigint AS definition_id, %(requires)s::bigint[] AS requires, %(input_digests)s::text[] AS input_digests, %(op)s::text AS op, %(attempt)s::integer AS attempt, %(traversal)s::bigint AS traversal, %(automatic)s::boolean AS automatic
)
, r AS (
    UPDATE resource r
    SET op = i.op, op_started_at = now(), attempt = i.attempt, action = i.action,
        status = 'IN_PROGRESS',
        physical_id = i.physical_id, lost_at = CASE WHEN r.attempt = i.attempt THEN r.lost_at END,
        status_reason = 'state changed', definition_id = coalesce(i.definition_id, r.definition_id),
        properties = CASE WHEN i.sealed IS NULL THEN coalesce(i.properties, r.properties) END,
        attributes = CASE WHEN i.sealed IS NULL THEN r.attributes END,
        data = CASE WHEN i.sealed IS NULL THEN r.data END,
        metadata = CASE WHEN i.sealed IS NULL THEN coalesce(i.metadata, r.metadata) END,
        sealed = coalesce(convert_to(i.sealed, 'UTF8'), r.sealed),
        requires = i.requires, input_digests = i.input_digests, step = NULL, requested_at = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (NULL, NULL)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE false END
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
