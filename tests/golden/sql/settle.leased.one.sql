WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(name)s::text AS name, %(type)s::text AS type, %(action)s::text AS action, %(status)s::text AS status, %(reason)s::text AS reason, %(started)s::boolean AS started, %(changed)s::boolean AS changed, %(physical_id)s::text AS physical_id, %(reference_id)s::text AS reference_id, %(properties)s::json AS properties, %(attributes)s::json AS attributes, %(metadata)s::json AS metadata, %(data)s::json AS data, %(sealed)s::text AS sealed, %(shown)s::json AS shown, %(definition_id)s::bigint AS definition_id, %(digest)s::text AS digest, %(requires)s::bigint[] AS requires, %(input_digests)s::text[] AS input_digests, %(value_digest)s::text AS value_digest, %(observed)s::text AS observed, %(traversal)s::bigint AS traversal, %(runs_as)s::text AS runs_as, %(automatic)s::boolean AS automatic
)
, r AS (
    UPDATE resource r
    SET action = i.action, status = i.status, status_reason = i.reason, physical_id = i.physical_id,
        reference_id = i.reference_id, properties = i.properties, attributes = i.attributes,
        metadata = i.metadata, data = i.data,
        sealed = convert_to(i.sealed, 'UTF8'), definition_id = i.definition_id,
        built_digest = decode(i.digest, 'hex'), type = i.type, runs_as = i.runs_as,
        requires = i.requires, input_digests = i.input_digests, value_digest = i.value_digest,
        attempt = greatest(r.attempt, 1),
        updated_at = CASE WHEN i.action = 'CREATE' THEN r.updated_at ELSE now() END,
        observed = i.observed, observed_at = now(), observed_reason = NULL, repair = NULL,
        unreachable_since = NULL, unreachable_reason = NULL,
        op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
, done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL,
        leased_until = NULL, last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
    RETURNING n.id, n.needed_by, i.changed
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
, decrement AS (
    SELECT d.id, 1 AS k, done.changed, d.nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) WITH ORDINALITY AS d(id, nth)
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
