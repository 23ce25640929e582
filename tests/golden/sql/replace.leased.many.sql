WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x(node_id bigint, resource_id bigint, stack_id bigint, name text, type text, started boolean, physical_id text, definition_id bigint, traversal bigint, automatic boolean)
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)
, new_ids AS MATERIALIZED (
    SELECT i.resource_id, nextval('resource_id_seq') AS id FROM i
)
, locked AS MATERIALIZED (
    SELECT n.id FROM i JOIN graph_node n ON n.id = ANY (ARRAY[i.node_id])
    WHERE n.state IN ('checking', '') AND n.lease = %(lease)s
    ORDER BY i.node_id FOR UPDATE OF n
)
, r AS (
    UPDATE resource r
    SET deposed = true, lease = NULL, leased_until = NULL,
        replaced_by = (SELECT new_ids.id FROM new_ids WHERE new_ids.resource_id = r.id)
    FROM i, locked WHERE locked.id = i.node_id AND r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id, r.replaced_by
), replacement AS (
    INSERT INTO resource (id, uuid, stack_id, name, type, runs_as, replaces)
    OVERRIDING SYSTEM VALUE
    SELECT r.replaced_by, gen_random_uuid(), i.stack_id, i.name, d.body ->> 'type', d.body ->> 'runs_as', r.id
    FROM i JOIN r ON r.id = i.resource_id JOIN resource_definition d ON d.id = ANY (ARRAY[i.definition_id])
    RETURNING id, replaces
)
, done AS (
    UPDATE graph_node n
    SET state = 'queued', resource_id = m.id, lease = NULL, leased_until = NULL, enqueued_at = now(),
        re_enqueues = 0, retry_count = 0, last_error = NULL, absent = false, refusal = NULL,
        refused_since = NULL
    FROM i JOIN replacement m ON m.replaces = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
    RETURNING n.id, n.traversal, n.queue, n.label
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, 'UPDATE', x.status, x.reason,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN (VALUES (1, 'IN_PROGRESS', 'state changed'), (2, 'COMPLETE', 'replaced by a new resource'))
        AS x(nth, status, reason)
    WHERE i.started
    ORDER BY i.node_id, x.nth
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
UNION ALL SELECT 'send', id, traversal, queue, label FROM done
