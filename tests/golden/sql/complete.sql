WITH k AS MATERIALIZED (
    SELECT s.id FROM stack s WHERE s.id = (SELECT g.stack_id FROM graph_node g WHERE g.id = %(node_id)s)
    FOR UPDATE
), n AS (
    UPDATE graph_node g
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL
    FROM k WHERE g.id = %(node_id)s AND g.stack_id = k.id AND g.state IN ('checking', '')
        AND g.lease = %(lease)s AND g.blocked_by = 0
    RETURNING g.stack_id, g.traversal
), s AS (
    UPDATE stack
    SET status = 'COMPLETE', status_reason = 'Stack ' || action || ' completed successfully' || CASE
            WHEN action = 'CHECK' AND EXISTS (
                SELECT 1 FROM resource r WHERE r.stack_id = stack.id AND r.action = 'CHECK'
                    AND r.status_reason LIKE 'CHECK not supported for %%')
            THEN '. ''CHECK'' not fully supported (see resources)' ELSE '' END,
        good_revision_id = CASE WHEN action IN ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE')
            THEN revision_id
            ELSE good_revision_id END,
        deleted_at = CASE WHEN action = 'DELETE' THEN now() END
    FROM n WHERE stack.id = ANY (ARRAY[n.stack_id]) AND stack.traversal = n.traversal
        AND stack.halted_traversal IS DISTINCT FROM n.traversal AND stack.status IN ('IN_PROGRESS', '')
    RETURNING stack.*
), r AS (
    UPDATE revision SET outcome = 'complete', ended_at = now() FROM s
    WHERE revision.id = s.revision_id AND revision.traversal = s.traversal AND revision.outcome IS NULL
), released AS (
    UPDATE credential c SET state = 'going', due_at = now() FROM s
    WHERE s.deleted_at IS NOT NULL AND c.stack_id = s.id AND c.state IN ('held', '')
), handed_on AS (
    UPDATE stack c SET credential_id = s.credential_id FROM s
    WHERE s.owner_id IS NULL AND s.good_revision_id = s.revision_id AND c.root_id = ANY (ARRAY[s.id])
        AND c.id <> s.id AND c.credential_id IS DISTINCT FROM s.credential_id
        AND EXISTS (SELECT 1 FROM credential x WHERE x.stack_id = ANY (ARRAY[s.id]) AND x.state IN ('held', ''))
), snapshot_ended AS (
    UPDATE snapshot x SET status = s.status, status_reason = s.status_reason
    FROM s WHERE s.action = 'SNAPSHOT' AND x.stack_id = s.id AND x.traversal = s.traversal
        AND x.action = 'CREATE' AND x.status = 'IN_PROGRESS'
), recorded AS (
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason, automatic)
SELECT s.id, s.name, 'OS::Heat::Stack', s.uuid::text, s.action, s.status, s.status_reason, s.automatic FROM s
), woken AS (
    UPDATE graph_node n SET state = 'queued', due_at = NULL, enqueued_at = now(), re_enqueues = 0
    FROM s CROSS JOIN LATERAL (
        SELECT m.id FROM graph_node m
        WHERE m.stack_id = s.owner_id AND m.resource_id = s.parent_resource_id
            AND m.state IN ('checking', 'waiting') AND m.due_at IS NOT NULL OFFSET 0) AS blocked_node
    WHERE n.id = ANY (ARRAY[blocked_node.id]) AND n.due_at IS NOT NULL
    RETURNING n.id, n.traversal, n.queue, n.label, s.root_id
), resumed AS (
    UPDATE signal g SET due_at = now() FROM s
    WHERE g.resource_id = s.parent_resource_id AND g.due_at = 'infinity'
)
SELECT action, (
    SELECT json_agg(json_build_array(w.id, w.traversal, w.queue, w.label, x.uuid))
    FROM woken w JOIN stack x ON x.id = w.root_id), queued_action IS NOT NULL FROM s
