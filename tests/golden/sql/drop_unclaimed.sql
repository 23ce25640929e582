UPDATE graph_node n SET state = 'dropped', rung_at = NULL
FROM unnest(%(ids)s) AS x(id), stack s
WHERE x.id > 0 AND n.id = ANY (ARRAY[x.id]) AND n.state IN ('queued', '') AND s.id = ANY (ARRAY[n.stack_id])
    AND (s.traversal <> n.traversal OR s.halted_traversal = n.traversal)
