UPDATE graph_node n SET state = 'dropped', enqueued_at = NULL
FROM unnest(%(ids)s) AS x(id), stack s
WHERE x.id > 0 AND n.id = ANY (ARRAY[x.id]) AND n.state IN ('queued', '') AND s.id = ANY (ARRAY[n.stack_id])
    AND (s.traversal <> n.traversal OR s.halted_traversal = n.traversal AND NOT EXISTS (
        SELECT 1 FROM resource r WHERE r.id = ANY (ARRAY[n.resource_id]) AND r.op IS NOT NULL))
