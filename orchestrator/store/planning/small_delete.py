"""The plan of a small stack's removal: read in one statement and written in another.

It is there whole or not at all. What another plan has begun, and what nobody ever began to make, is left to
the plan in slices (`bulk_writer.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.plan_changes import Row
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.nodes import repository
from orchestrator.store.planning.bulk_writer import NodeRow
from orchestrator.store.planning.small_create import (
    LOCK_PLAN_NODE,
    PREALLOCATED_IDS,
    SETTLE_PLAN_NODE,
    SETTLED,
    plan_values,
)

Db = Connection[TupleRow]

READ = """
SELECT v.environment, v.files, s.depth,
    (SELECT f.id FROM graph_node f
        WHERE f.stack_id = s.id AND f.traversal = s.traversal AND f.kind = 'finish'),
    EXISTS (SELECT 1 FROM graph_node f WHERE f.stack_id = s.id AND f.traversal = s.traversal
        AND f.kind IN ('update', 'cleanup', 'join')),
    (SELECT json_agg(json_build_array(r.id, r.name, coalesce(r.runs_as, r.type), r.action, r.status, r.op,
            r.attempt, NULL, r.requires, r.input_digests, r.value_digest, r.leftover) ORDER BY r.id)
        FROM (SELECT * FROM resource WHERE stack_id = s.id LIMIT %(most)s::integer) AS r),
    ARRAY(SELECT nextval('graph_node_id_seq')
        FROM generate_series(1, %(ahead)s::integer))
FROM stack s JOIN revision v ON v.id = ANY (ARRAY[s.revision_id])
WHERE s.id = %(stack_id)s::bigint AND s.traversal = %(traversal)s::bigint
    AND s.revision_id = %(revision_id)s::bigint
"""

# What earlier traversals left goes with it, but what somebody is at.
WRITE = f"""
WITH {LOCK_PLAN_NODE}, x AS MATERIALIZED (
    SELECT x.* FROM ours CROSS JOIN json_to_recordset(%(rows)s::json) AS x(node_id bigint, resource_id bigint,
        name text, queue text, needed_by bigint[], blocked_by integer, nth integer, leaving boolean)
), r AS (
    UPDATE resource r SET leftover = true, replaced_by = NULL
    FROM x WHERE x.leaving AND r.id = ANY (ARRAY[x.resource_id])
), nodes AS (
    INSERT INTO graph_node (id, stack_id, root_id, traversal, kind, resource_id, queue, label, needed_by,
        blocked_by, dirty, state, rung_at)
    SELECT x.node_id, ours.stack_id, ours.root_id, ours.traversal, 'cleanup', x.resource_id, x.queue, x.name,
        x.needed_by, x.blocked_by, true, CASE WHEN x.blocked_by > 0 THEN 'blocked' ELSE 'queued' END,
        CASE WHEN x.blocked_by = 0 AND x.nth <= %(ring)s::integer THEN now() END
    FROM x CROSS JOIN ours
    RETURNING id, traversal, queue, label, state, rung_at
), {SETTLE_PLAN_NODE}, old AS (
    DELETE FROM graph_node n WHERE n.id = ANY (ARRAY(
        SELECT o.id FROM ours JOIN graph_node o ON o.stack_id = ours.stack_id
        WHERE o.traversal < ours.traversal AND o.state <> 'checking'
        FOR UPDATE OF o SKIP LOCKED))  -- a late visit may be releasing them
){SETTLED}"""


class PlanInputs(NamedTuple):
    """What a removal is planned from."""

    environment: Mapping[str, Any]
    files: Mapping[str, str]
    depth: int
    finish_id: int
    is_begun: bool
    rows: Sequence[Row]  # `most` of them at most, the oldest first
    ids: Sequence[int]  # of AHEAD nodes


def read(db: Db, stack_id: int, traversal: int, revision_id: int, most: int) -> PlanInputs | None:
    """Return what a removal is planned from; None when the traversal is over."""
    values = {
        "stack_id": str(stack_id),
        "traversal": str(traversal),
        "revision_id": str(revision_id),
        "most": str(most),
        "ahead": str(PREALLOCATED_IDS),
    }
    for environment, files, depth, finish_id, is_begun, found, ids in fetch_prepared(db, READ, values):
        rows = [Row(*row) for row in found or ()]
        return PlanInputs(environment, files, depth, finish_id, is_begun, rows, ids)
    return None


def write(
    db: Db,
    plan: tuple[int, int | None],
    finish_id: int,
    feeders: int,
    rows: Sequence[tuple[NodeRow, bool]],
    ring: int,
) -> list[tuple[Any, ...]]:
    """Write a whole plan and settle its node: (node, lease), the lease None where it was not claimed.

    Each row is a node, and whether its resource is a leftover from now on. Ring `ring` of them at most.
    Nothing is returned when the node is no longer ours, or the traversal is over.
    """
    made, nth = [], 0
    for node, leaving in rows:
        nth += not node.blocked_by
        made.append(
            {
                "node_id": node.id,
                "resource_id": node.resource_id,
                "name": node.label,
                "queue": node.queue,
                "needed_by": list(node.needed_by),
                "blocked_by": node.blocked_by,
                "nth": nth,
                "leaving": leaving,
            }
        )
    return repository.retried(db, WRITE, plan_values(plan, finish_id, feeders, made, ring))
