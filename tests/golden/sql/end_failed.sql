WITH failures AS (
    SELECT id, reason FROM failure WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s
), causes AS (
    SELECT (SELECT string_agg(CASE WHEN length(reason) > %(longest)s
                THEN left(reason, %(longest)s) || '…' ELSE reason END, '; ' ORDER BY id)
            FROM (SELECT id, reason FROM failures ORDER BY id LIMIT %(most)s) AS first)
        || CASE WHEN count(*) > %(most)s THEN '; and ' || count(*) - %(most)s || ' more' ELSE '' END AS text
    FROM failures
), s AS (
    UPDATE stack
    SET status = 'FAILED',
        status_reason = coalesce(%(reason)s, 'Resource ' || action || ' failed: ' || causes.text,
            'Stack ' || action || ' cancelled')
    FROM causes
    WHERE id = %(stack_id)s AND traversal = %(traversal)s AND halted_traversal = %(traversal)s
        AND status = 'IN_PROGRESS'
        AND (%(at_once)s OR NOT EXISTS (  -- no resource is claimed, and no operation is open
            SELECT 1 FROM graph_node n
            WHERE n.stack_id = %(stack_id)s AND n.traversal = %(traversal)s
                AND n.kind IN ('update', 'cleanup')
                AND n.state IN ('checking', 'waiting') AND n.lease IS NOT NULL
            UNION ALL SELECT 1 FROM resource r WHERE r.stack_id = %(stack_id)s AND r.op IS NOT NULL))
    RETURNING stack.*
), f AS (
    UPDATE graph_node n
    SET state = 'failed', blocked_by = 0, due_at = NULL, enqueued_at = NULL, lease = NULL,
        leased_until = NULL, last_error = s.status_reason
    FROM s WHERE n.stack_id = s.id AND n.traversal = s.traversal AND n.kind = 'finish'
        AND n.state NOT IN ('ready', 'failed', 'dropped')
), r AS (
    UPDATE revision SET outcome = %(outcome)s, ended_at = now() FROM s
    WHERE revision.id = s.revision_id AND revision.traversal = s.traversal AND revision.outcome IS NULL
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
SELECT action, disable_rollback, delete_on_failure, good_revision_id, (
    SELECT json_agg(json_build_array(w.id, w.traversal, w.queue, w.label, x.uuid))
    FROM woken w JOIN stack x ON x.id = w.root_id),
    queued_action IS NOT NULL FROM s
