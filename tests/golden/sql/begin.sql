WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x(node_id bigint, resource_id bigint, stack_id bigint, name text, type text, action text, started boolean, physical_id text, properties json, metadata json, sealed text, definition_id bigint, requires bigint[], input_digests text[], op text, attempt integer, traversal bigint, automatic boolean)
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)
, r AS (
    UPDATE resource r
    SET op = i.op, op_started_at = now(), attempt = i.attempt, action = i.action,
        status = 'IN_PROGRESS',
        physical_id = i.physical_id, lost_at = CASE WHEN r.attempt = i.attempt THEN r.lost_at END,
        status_reason = 'state changed', definition_id = coalesce(i.definition_id, r.definition_id),
        properties = coalesce(i.properties, r.properties), metadata = coalesce(i.metadata, r.metadata),
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
        CASE WHEN i.sealed IS NULL AND x.status <> 'IN_PROGRESS' AND pg_column_size(i.properties) <= 65536 THEN i.properties END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (NULL, NULL)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE false END
    ORDER BY i.node_id, x.status <> 'IN_PROGRESS'
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
