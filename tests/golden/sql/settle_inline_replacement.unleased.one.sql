WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(name)s::text AS name, %(type)s::text AS type, %(action)s::text AS action, %(status)s::text AS status, %(reason)s::text AS reason, %(started)s::boolean AS started, %(changed)s::boolean AS changed, %(physical_id)s::text AS physical_id, %(reference_id)s::text AS reference_id, %(properties)s::json AS properties, %(attributes)s::json AS attributes, %(metadata)s::json AS metadata, %(data)s::json AS data, %(sealed)s::text AS sealed, %(shown)s::json AS shown, %(definition_id)s::bigint AS definition_id, %(digest)s::text AS digest, %(requires)s::bigint[] AS requires, %(input_digests)s::text[] AS input_digests, %(value_digest)s::text AS value_digest, %(observed)s::text AS observed, %(attempt)s::integer AS attempt, %(continued)s::boolean AS continued, %(replacement_uuid)s::uuid AS replacement_uuid, %(runs_as)s::text AS runs_as, %(was_healthy)s::boolean AS was_healthy, %(status_read)s::text AS status_read, %(automatic)s::boolean AS automatic
)
, new_ids AS MATERIALIZED (
    SELECT i.resource_id, nextval('resource_id_seq') AS id FROM i
)
, locked AS MATERIALIZED (
    SELECT n.id, n.id || n.needed_by AS node_ids FROM i JOIN graph_node n ON n.id = ANY (ARRAY[i.node_id])
    JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE n.state IN ('queued', '') AND n.resource_id = i.resource_id AND n.traversal = s.traversal
        AND (s.halted_traversal IS DISTINCT FROM s.traversal OR i.continued)
    ORDER BY i.node_id FOR UPDATE OF n
)
, r AS (
    UPDATE resource r
    SET deposed = true, lease = NULL, leased_until = NULL,
        replaced_by = (SELECT new_ids.id FROM new_ids WHERE new_ids.resource_id = r.id)
    FROM i, locked WHERE locked.id = i.node_id AND r.id = ANY (ARRAY[i.resource_id])
        AND (r.lease IS NULL OR r.leased_until < clock_timestamp()) AND r.status = i.status_read
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
)
, released AS (
    UPDATE graph_node n
    SET state = CASE WHEN l.nth = 0 THEN 'ready' WHEN n.blocked_by = 1 THEN 'queued' ELSE 'blocked' END,
        observed_ready = l.nth = 0, observed_ready_at = CASE WHEN l.nth = 0 THEN now() END, last_error = NULL,
        lease = NULL, leased_until = NULL,
        resource_id = CASE WHEN l.nth = 0 THEN l.written_id ELSE n.resource_id END, retry_count = 0,
        blocked_by = CASE WHEN l.nth = 0 THEN 0 ELSE n.blocked_by - 1 END, dirty = n.dirty OR l.changed,
        enqueued_at = CASE WHEN l.nth = 0 THEN n.enqueued_at
            WHEN n.blocked_by = 1 AND (n.dirty OR l.changed) AND l.nth <= %(max_messages)s THEN now() END
    FROM (
        SELECT d.id, d.nth - 1 AS nth, i.changed, replacement.id AS written_id
        FROM i CROSS JOIN replacement CROSS JOIN locked
        CROSS JOIN LATERAL unnest(locked.node_ids) WITH ORDINALITY AS d(id, nth)
        ORDER BY d.id  -- every statement locks in this order: no deadlocks
    ) l
    WHERE n.id = ANY (ARRAY[l.id]) AND n.state = CASE WHEN l.nth = 0 THEN 'queued' ELSE 'blocked' END
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.enqueued_at, n.dirty
)
SELECT CASE WHEN NOT dirty THEN 'clean' WHEN enqueued_at IS NULL THEN 'queued' ELSE 'send' END, id, traversal,
    queue, label
FROM released WHERE state = 'queued'
UNION ALL SELECT 'held', r.id, NULL, NULL, NULL FROM r
