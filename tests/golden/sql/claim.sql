WITH want AS MATERIALIZED (
    SELECT n.id, n.resource_id FROM unnest(%(ids)s::bigint[]) AS x(id)
    JOIN graph_node n ON n.id = ANY (ARRAY[x.id])
    WHERE x.id > 0 AND n.traversal + 0 = %(traversal)s AND n.state IN ('queued', '')
    ORDER BY x.id FOR UPDATE OF n SKIP LOCKED
), r AS (
    UPDATE resource r
    SET lost_at = CASE WHEN r.lease IS NULL THEN r.lost_at
        ELSE r.leased_until - make_interval(secs => %(seconds)s::float8 * 2 / 3) END,
        lease = %(lease)s, leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
    FROM want w
    WHERE r.id = ANY (ARRAY[w.resource_id]) AND (r.lease IS NULL OR r.leased_until < clock_timestamp())
    RETURNING w.id AS node_id
), free AS (
    SELECT node_id FROM r
    UNION ALL SELECT w.id FROM want w  -- no resource to claim, or an older visit deleted it
    WHERE w.resource_id IS NULL
        OR NOT EXISTS (SELECT 1 FROM resource x WHERE x.id = ANY (ARRAY[w.resource_id]))
)
UPDATE graph_node n
SET state = 'checking', lease = %(lease)s,
    leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
FROM free WHERE n.id = ANY (ARRAY[free.node_id])
RETURNING n.id
