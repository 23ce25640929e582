WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x(node_id bigint, resource_id bigint, stack_id bigint, physical_id text, properties json, metadata json, data json, sealed text, traversal bigint, step text)
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)
, r AS (
    UPDATE resource r
    SET step = i.step, physical_id = i.physical_id, properties = i.properties, data = i.data,
        metadata = i.metadata, sealed = convert_to(i.sealed, 'UTF8')
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
