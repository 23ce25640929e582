WITH i AS NOT MATERIALIZED (
    SELECT %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(physical_id)s::text AS physical_id, %(properties)s::json AS properties, %(metadata)s::json AS metadata, %(data)s::json AS data, %(sealed)s::text AS sealed, %(traversal)s::bigint AS traversal, %(step)s::text AS step
)
, r AS (
    UPDATE resource r
    SET step = i.step, physical_id = i.physical_id, properties = i.properties, data = i.data,
        attributes = CASE WHEN i.sealed IS NULL THEN r.attributes END,
        metadata = i.metadata, sealed = convert_to(i.sealed, 'UTF8')
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
