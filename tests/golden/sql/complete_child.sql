WITH k AS MATERIALIZED (
    SELECT s.id, s.traversal FROM graph_node g JOIN stack s ON s.id = ANY (ARRAY[g.stack_id])
    WHERE g.id = %(node_id)s::bigint AND g.kind = 'finish' AND s.owner_id IS NOT NULL
        AND s.traversal = g.traversal AND s.halted_traversal IS DISTINCT FROM s.traversal
        AND s.status IN ('IN_PROGRESS', '') AND s.action NOT IN ('CHECK', 'SNAPSHOT')
        AND s.queued_action IS NULL
        AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.stack_id = s.id AND r.deposed)
        AND (s.action <> 'DELETE' OR NOT EXISTS (SELECT 1 FROM snapshot x WHERE x.stack_id = s.id))
    FOR UPDATE OF s
), n AS (
    UPDATE graph_node g SET state = 'ready', observed_ready = true, observed_ready_at = now()
    FROM k WHERE g.id = %(node_id)s::bigint AND g.stack_id = k.id AND g.traversal = k.traversal
        AND g.state IN ('queued', '') AND g.blocked_by = 0
    RETURNING g.stack_id
), s AS (
    UPDATE stack
    SET status = 'COMPLETE', status_reason = 'Stack ' || action || ' completed successfully',
        good_revision_id = CASE WHEN action IN ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE')
            THEN revision_id ELSE good_revision_id END,
        deleted_at = CASE WHEN action = 'DELETE' THEN now() END
    FROM n WHERE stack.id = ANY (ARRAY[n.stack_id])
    RETURNING stack.id, stack.uuid, stack.name, stack.action, stack.status, stack.status_reason,
        stack.traversal, stack.revision_id, stack.root_id, stack.owner_id, stack.parent_resource_id,
        stack.automatic
), r AS (
    UPDATE revision SET outcome = 'complete', ended_at = now() FROM s
    WHERE revision.id = s.revision_id AND revision.traversal = s.traversal AND revision.outcome IS NULL
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
SELECT 'ended', s.id, s.traversal, s.action, s.uuid::text FROM s
UNION ALL SELECT 'send', id, traversal, queue, label FROM woken
