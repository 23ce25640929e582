SELECT 
n.id, n.kind, n.traversal, n.queue, n.label, n.retry_count, n.lost_leases,
    s.id, s.uuid::text, s.name, s.project_id, s.root_id, s.traversal, s.halted_traversal,
    s.action, s.status, s.revision_id, (s.timeout_mins * 60)::float8, s.converge, s.retain, s.request_id,
    r.id, r.uuid::text, r.name, r.type, r.action, r.status, r.physical_id, r.reference_id, r.properties,
        r.attributes,
    r.data, convert_from(r.sealed, 'UTF8'), r.attempt, r.op,
    extract(epoch FROM clock_timestamp() - r.op_started_at)::float8,
    extract(epoch FROM r.lost_at - clock_timestamp())::float8,
    r.requires, r.definition_id, r.metadata, r.runs_as, r.value_digest,
        r.input_digests, r.deposed, r.suspended,
    d.id, d.body, encode(d.digest, 'hex'), d.requires, d.dep_attrs,
    inputs.handed_on, nullif(n.hooks, '{}'), n.unreachable_tries,
    extract(epoch FROM clock_timestamp() - n.waiting_since)::float8, r.marked_unhealthy, r.repair,
    extract(epoch FROM clock_timestamp() - greatest(r.op_started_at, r.reachable_since))::float8,
    r.step, extract(epoch FROM clock_timestamp() - r.requested_at)::float8,
    n.early_needed_by && n.needed_by, NOT n.early_needed_by <@ n.needed_by, s.automatic,
    r.released, n.absent,
    n.refused_since || jsonb_build_object('now', extract(epoch FROM clock_timestamp())), n.refusal,
    CASE WHEN s.action IN ('DELETE', 'CHECK') AND n.kind IN ('update', 'cleanup')
        THEN coalesce(s.operation_credential_id, s.credential_id) ELSE s.credential_id END
, others.hold
FROM graph_node n

JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
LEFT JOIN resource r ON r.id = ANY (ARRAY[n.resource_id])
LEFT JOIN resource_definition d ON d.id = ANY (ARRAY[coalesce(n.definition_id, r.definition_id)])
CROSS JOIN LATERAL (
    SELECT json_agg(json_build_array(
        q.id, q.name, q.physical_id, q.reference_id, q.action, q.status,
        CASE
            WHEN d.dep_attrs -> q.name ? '*' THEN q.attributes
            WHEN d.dep_attrs ? q.name THEN (
                SELECT json_object_agg(a.name, q.attributes -> a.name)
                FROM jsonb_array_elements_text(d.dep_attrs -> q.name) AS a(name)
                WHERE q.attributes -> a.name IS NOT NULL)
        END,
        convert_from(q.sealed, 'UTF8'), q.value_digest)) AS handed_on
    FROM resource q
    WHERE q.stack_id = CASE WHEN n.kind = 'update' THEN n.stack_id END AND q.name = ANY(d.requires) AND NOT q.deposed
) AS inputs
CROSS JOIN LATERAL (
    SELECT bool_or(o.deposed AND o.attempt > 0 AND o.released IS NOT TRUE) AS hold FROM resource o
    WHERE o.stack_id = n.stack_id AND o.name = r.name AND o.id <> r.id
) AS others
WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
ORDER BY n.id
