WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x(node_id bigint, resource_id bigint, stack_id bigint, name text, type text, action text, status text, reason text, started boolean, changed boolean, physical_id text, reference_id text, properties json, attributes json, metadata json, data json, sealed text, shown json, definition_id bigint, digest text, requires bigint[], input_digests text[], value_digest text, observed text, attempt integer, traversal bigint, replacement_uuid uuid, runs_as text, was_healthy boolean, automatic boolean)
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
    RETURNING r.id, r.replaced_by, r.type, r.physical_id
), replacement AS (
    INSERT INTO resource (id, uuid, stack_id, name, type, runs_as, replaces, action, status, status_reason,
        physical_id, reference_id, properties, attributes, metadata, data, sealed, definition_id,
        built_digest, requires, input_digests, value_digest, attempt, updated_at, observed, observed_at)
    OVERRIDING SYSTEM VALUE
    SELECT r.replaced_by, i.replacement_uuid, i.stack_id, i.name, i.type, i.runs_as, r.id,
        i.action, i.status, i.reason,
        i.physical_id, i.reference_id, i.properties, i.attributes, i.metadata, i.data,
        convert_to(i.sealed, 'UTF8'), i.definition_id,
        decode(i.digest, 'hex'), i.requires, i.input_digests, i.value_digest, greatest(i.attempt, 1),
        CASE WHEN i.action = 'CREATE' THEN NULL ELSE now() END, i.observed, now()
    FROM i JOIN r ON r.id = i.resource_id
    RETURNING id, replaces
)
, done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), resource_id = m.id,
        lease = NULL, leased_until = NULL, retry_count = 0, last_error = NULL
    FROM i JOIN replacement m ON m.replaces = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
    RETURNING n.id, n.needed_by, i.changed
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, x.type, x.physical_id, x.action, x.status, x.reason,
        CASE WHEN x.nth = 4 THEN coalesce(i.properties, i.shown) END, coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES
        (1, i.was_healthy, r.type, r.physical_id, 'UPDATE', 'IN_PROGRESS', 'state changed'),
        (2, i.was_healthy, r.type, r.physical_id, 'UPDATE', 'COMPLETE', 'replaced by a new resource'),
        (3, i.started, i.type, i.physical_id, i.action, 'IN_PROGRESS', 'state changed'),
        (4, true, i.type, i.physical_id, i.action, i.status, i.reason)
    ) AS x(nth, applies, type, physical_id, action, status, reason)
    WHERE x.applies
    ORDER BY i.node_id, x.nth
)
, decrement AS (
    SELECT d.id, count(*) AS k, bool_or(done.changed) AS changed, row_number() OVER () AS nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) AS d(id) GROUP BY d.id
), released AS (
    UPDATE graph_node n
    SET blocked_by = n.blocked_by - l.k, dirty = n.dirty OR l.changed,
        state = CASE WHEN n.blocked_by = l.k THEN 'queued' ELSE 'blocked' END,
        enqueued_at = CASE WHEN n.blocked_by = l.k AND (n.dirty OR l.changed) AND l.nth <= %(max_messages)s
            THEN now() END
    FROM (SELECT * FROM decrement ORDER BY id) l  -- every statement locks in this order: no deadlocks
    WHERE n.id = ANY (ARRAY[l.id]) AND n.state = 'blocked'
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.enqueued_at, n.dirty
)
SELECT CASE WHEN NOT dirty THEN 'clean' WHEN enqueued_at IS NULL THEN 'queued' ELSE 'send' END, id, traversal,
    queue, label
FROM released WHERE state = 'queued'
UNION ALL SELECT 'held', r.id, NULL, NULL, NULL FROM r
