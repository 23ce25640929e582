WITH i AS NOT MATERIALIZED (
    SELECT %(node_id)s::bigint AS node_id, %(resource_id)s::bigint AS resource_id, %(stack_id)s::bigint AS stack_id, %(name)s::text AS name, %(type)s::text AS type, %(action)s::text AS action, %(status)s::text AS status, %(reason)s::text AS reason, %(started)s::boolean AS started, %(physical_id)s::text AS physical_id, %(properties)s::json AS properties, %(attributes)s::json AS attributes, %(metadata)s::json AS metadata, %(data)s::json AS data, %(sealed)s::text AS sealed, %(shown)s::json AS shown, %(definition_id)s::bigint AS definition_id, %(requires)s::bigint[] AS requires, %(input_digests)s::text[] AS input_digests, %(op)s::text AS op, %(attempt)s::integer AS attempt, %(wait_seconds)s::float8 AS wait_seconds, %(retried)s::boolean AS retried, %(unreachable)s::boolean AS unreachable, %(refusal)s::text AS refusal, %(outage)s::boolean AS outage, %(absent)s::boolean AS absent, %(aborted)s::boolean AS aborted, %(traversal)s::bigint AS traversal, %(lost_seconds)s::float8 AS lost_seconds, %(requested)s::boolean AS requested, %(automatic)s::boolean AS automatic
)
, r AS (
    UPDATE resource r
    SET op_started_at = CASE WHEN i.op IS NULL THEN NULL
            WHEN r.op = i.op THEN r.op_started_at ELSE now() END,
        reachable_since = CASE WHEN i.refusal IS NOT NULL
            THEN clock_timestamp() + make_interval(secs => i.wait_seconds) ELSE r.reachable_since END,
        op = i.op, attempt = i.attempt, action = i.action, status = coalesce(i.status, 'IN_PROGRESS'),
        status_reason = i.reason,
        physical_id = i.physical_id, properties = i.properties, data = i.data, metadata = i.metadata,
        sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
        input_digests = i.input_digests,
        lost_at = coalesce(clock_timestamp() - make_interval(secs => i.lost_seconds), CASE WHEN i.physical_id IS NULL THEN r.lost_at END),
        step = CASE WHEN r.op = i.op THEN r.step END,
        requested_at = CASE WHEN i.requested THEN clock_timestamp() WHEN r.op = i.op THEN r.requested_at END,
        
        unreachable_since = CASE WHEN i.unreachable THEN coalesce(r.unreachable_since, now()) END,
        unreachable_reason = CASE WHEN i.unreachable THEN i.reason END,
        lease = NULL, leased_until = NULL,
        attributes = CASE WHEN i.sealed IS NOT NULL THEN NULL WHEN r.sealed IS NULL THEN r.attributes
            ELSE i.attributes END
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s
        AND (i.traversal IS NULL
            OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))
    RETURNING r.id
)
, done AS (
    UPDATE graph_node n
    SET state = 'waiting', lease = NULL, leased_until = NULL, enqueued_at = NULL, re_enqueues = 0,
        lost_leases = 0, waiting_since = CASE WHEN n.unreachable_tries > 0 AND NOT i.outage THEN now()
            ELSE coalesce(n.waiting_since, now()) END,
        last_error = CASE WHEN i.retried OR i.refusal IS NOT NULL THEN i.reason
            WHEN n.unreachable_tries = 0 AND n.refusal IS NULL THEN n.last_error END,
        retry_count = n.retry_count + i.retried::int,
        unreachable_tries = CASE WHEN i.outage THEN least(n.unreachable_tries + 1, 1000) ELSE 0 END,
        refusal = i.refusal,
        refused_since = CASE WHEN i.outage THEN
                CASE WHEN n.unreachable_tries + 1 < 3 THEN n.refused_since END
            WHEN i.refusal IS NULL THEN n.refused_since
            ELSE jsonb_build_object(i.refusal, extract(epoch FROM now())) || coalesce(n.refused_since, '{}')
            END,
        absent = i.absent AND i.refusal IS NULL,
        due_at = CASE WHEN i.wait_seconds IS NULL THEN 'infinity'
            ELSE clock_timestamp() + make_interval(secs => i.wait_seconds) END
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND n.state IN ('checking', '') AND n.lease = %(lease)s
), recorded AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND pg_column_size(coalesce(i.properties, i.shown)) <= 65536 THEN coalesce(i.properties, i.shown) END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (i.status, i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE i.aborted END
), woken AS (
UPDATE graph_node n SET state = 'queued', due_at = NULL, enqueued_at = now(), re_enqueues = 0
FROM i CROSS JOIN LATERAL (
    SELECT m.id FROM graph_node m
    WHERE m.stack_id = i.stack_id AND m.resource_id = i.resource_id AND m.id <> i.node_id
        AND m.state IN ('checking', 'waiting') AND m.due_at IS NOT NULL OFFSET 0) AS blocked_node
WHERE n.id = ANY (ARRAY[blocked_node.id]) AND n.due_at IS NOT NULL
RETURNING n.id, n.traversal, n.queue, n.label
), p AS MATERIALIZED (
    SELECT stack.* FROM r CROSS JOIN i JOIN stack ON stack.id = ANY (ARRAY[i.stack_id])
), new_ids AS MATERIALIZED (
    SELECT nextval('stack_id_seq') AS id,
        nextval('revision_id_seq') AS revision_id,
        nextval('graph_node_id_seq') AS finish_id,
        nextval('graph_node_id_seq') AS plan_id
    FROM r
), s AS (
    INSERT INTO stack (id, root_id, owner_id, parent_resource_id, parent_resource, depth, uuid, project_id,
        name, action, status, status_reason, traversal, revision_id, disable_rollback, keep_going,
        timeout_mins, username, credentials, credential_id, user_project_id, converge, request_id)
    SELECT new_ids.id, p.root_id, p.id, i.resource_id, i.name, p.depth + 1, i.physical_id::uuid,
        p.project_id, %(child_name)s, %(child_action)s, 'IN_PROGRESS',
        'Stack ' || %(child_action)s || ' started', 1, new_ids.revision_id, true, p.keep_going,
        coalesce(%(timeout_mins)s::int, p.timeout_mins), p.username, p.credentials,
        %(credential_id)s::bigint, p.user_project_id, p.converge, p.request_id
    FROM i CROSS JOIN new_ids CROSS JOIN p
    RETURNING *
), first_event AS (
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason, automatic)
SELECT s.id, s.name, 'OS::Heat::Stack', s.uuid::text, s.action, s.status, s.status_reason, s.automatic FROM s
 RETURNING id
), v AS (
    INSERT INTO revision (id, stack_id, number, action, template_hash, environment, files, parameters, sealed,
        outline, resource_count, created_by, traversal, first_event, adopted, denied_types, stored_bytes,
        author, credential_id)
    SELECT new_ids.revision_id, new_ids.id, 1, %(child_action)s, %(template_hash)s::bytea,
        %(environment)s::json, %(files)s::jsonb, %(parameters)s::json, %(child_sealed)s::bytea,
        %(outline)s::json, %(resource_count)s::int, p.username, 1,
        first_event.id, %(child_adopted)s::bytea, %(denied_types)s::text[],
        octet_length(%(environment)s::json::text) + octet_length(%(files)s::jsonb::text)
        + octet_length(%(parameters)s::json::text) + octet_length(%(outline)s::json::text)
        + coalesce(octet_length(%(child_sealed)s::bytea), 0), w.author, %(credential_id)s::bigint
    FROM new_ids CROSS JOIN p CROSS JOIN first_event
    LEFT JOIN revision w ON w.id = ANY (ARRAY[p.revision_id])
), counted AS (
    INSERT INTO project_content (project_id, hash, size)
    SELECT p.project_id, %(template_hash)s::bytea, %(template_bytes)s::bigint FROM new_ids CROSS JOIN p
    ON CONFLICT DO NOTHING
), nodes AS (
    INSERT INTO graph_node (id, stack_id, root_id, traversal, kind, queue, label, needed_by, blocked_by,
        state, enqueued_at)
    SELECT new_ids.finish_id, new_ids.id, p.root_id, 1, 'finish', 'bulk', 'finish', '{}'::bigint[], 1,
        'blocked', NULL::timestamptz
    FROM new_ids CROSS JOIN p
    UNION ALL
    SELECT new_ids.plan_id, new_ids.id, p.root_id, 1, 'plan', 'bulk', 'plan', ARRAY[new_ids.finish_id], 0,
        'queued', now()
    FROM new_ids CROSS JOIN p
)

SELECT 'held', r.id, NULL, NULL, NULL FROM r
UNION ALL SELECT 'send', id, traversal, queue, label FROM woken
UNION ALL SELECT 'send', plan_id, 1, 'bulk', 'plan' FROM new_ids
