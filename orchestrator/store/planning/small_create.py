"""The first plan of a small stack, in one statement: what a thousand nested stacks ask for a thousand times.

Nothing is there yet to compare with, and nothing to be taken up again: the plan is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import StackView, Visit
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.nodes.visit_sql import NODE_COLUMNS, QUEUED, STACK_COLUMNS
from orchestrator.store.planning.bulk_writer import DefinitionRow, NodeRow

Db = Connection[TupleRow]

PLAN_INPUT_COLUMNS = """encode(v.template_hash, 'hex'), v.environment, v.files, v.parameters, v.sealed,
s.depth,
    (SELECT f.id FROM graph_node f
        WHERE f.stack_id = s.id AND f.traversal = s.traversal AND f.kind = 'finish'),
    (SELECT length(c.body) FROM content c WHERE c.hash = v.template_hash),
    EXISTS (SELECT 1 FROM graph_node f WHERE f.stack_id = s.id AND f.traversal = s.traversal
        AND f.kind IN ('update', 'cleanup', 'join')),
    ARRAY(SELECT ARRAY[
            nextval('resource_definition_id_seq'),
            nextval('resource_id_seq'),
            nextval('graph_node_id_seq')]
        FROM generate_series(1, %(ahead)s::integer))
"""
READ = f"""
SELECT {PLAN_INPUT_COLUMNS}FROM stack s JOIN revision v ON v.id = s.revision_id
WHERE s.id = %(stack_id)s::bigint AND s.traversal = %(traversal)s::bigint
    AND s.revision_id = %(revision_id)s::bigint
"""

# The same by the plan node, where nobody claims that: what the visit is, and what it will need. Of any other
# node, nothing.
GLANCE = f"""
SELECT {NODE_COLUMNS},
    {STACK_COLUMNS},
    {PLAN_INPUT_COLUMNS}FROM graph_node n
JOIN stack s ON s.id = ANY (ARRAY[n.stack_id]) JOIN revision v ON v.id = ANY (ARRAY[s.revision_id])
WHERE n.id = %(node_id)s::bigint AND n.kind = 'plan' AND {QUEUED} AND n.lost_leases = 0
    AND n.traversal + 0 = 1 AND s.traversal = n.traversal AND s.halted_traversal IS NULL
    AND s.action = 'CREATE' AND s.owner_id IS NOT NULL
"""

# The stack is taken for share, so that no newer traversal begins before this one's nodes are there.
LOCK_PLAN_NODE = """ours AS MATERIALIZED (
    SELECT n.id, s.id AS stack_id, s.root_id, s.traversal
    FROM graph_node n JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE n.id = %(plan_id)s::bigint AND CASE WHEN %(lease)s::bigint IS NULL THEN n.state = 'queued'
            ELSE n.state = 'checking' AND n.lease = %(lease)s::bigint END
        AND s.traversal = n.traversal AND s.halted_traversal IS DISTINCT FROM s.traversal
    FOR UPDATE OF n FOR SHARE OF s
)"""
SETTLE_PLAN_NODE = """finish AS (
    UPDATE graph_node n SET blocked_by = %(feeders)s::integer
    FROM ours WHERE n.id = %(finish_id)s::bigint AND n.state = 'blocked'
), plan AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL,
        last_error = NULL
    FROM ours WHERE n.id = ANY (ARRAY[ours.id])
)"""
SETTLED = """
SELECT CASE WHEN rung_at IS NULL THEN 'queued' ELSE 'ring' END, id, traversal, queue, label
FROM nodes WHERE state = 'queued'
UNION ALL SELECT 'held', id, NULL, NULL, NULL FROM ours
"""
WRITE = f"""
WITH {LOCK_PLAN_NODE}, x AS MATERIALIZED (
    SELECT x.* FROM ours CROSS JOIN json_to_recordset(%(rows)s::json) AS x(definition_id bigint,
        resource_id bigint, node_id bigint, name text, type text, runs_as text, digest text, body json,
        requires text[], dep_attrs jsonb, queue text, needed_by bigint[], blocked_by integer, nth integer)
), d AS (
    INSERT INTO resource_definition (id, stack_id, name, digest, body, requires, dep_attrs, valid_from)
    SELECT x.definition_id, ours.stack_id, x.name, decode(x.digest, 'hex'), x.body, x.requires, x.dep_attrs, 1
    FROM x CROSS JOIN ours
), r AS (
    INSERT INTO resource (id, uuid, stack_id, name, type, runs_as)
    SELECT x.resource_id, gen_random_uuid(), ours.stack_id, x.name, x.type, x.runs_as FROM x CROSS JOIN ours
), nodes AS (
    INSERT INTO graph_node (id, stack_id, root_id, traversal, kind, resource_id, definition_id, queue, label,
        needed_by, blocked_by, dirty, state, rung_at)
    SELECT x.node_id, ours.stack_id, ours.root_id, ours.traversal, 'update', x.resource_id, x.definition_id,
        x.queue, x.name, x.needed_by, x.blocked_by, true,
        CASE WHEN x.blocked_by > 0 THEN 'blocked' ELSE 'queued' END,
        CASE WHEN x.blocked_by = 0 AND x.nth <= %(ring)s::integer THEN now() END
    FROM x CROSS JOIN ours
    RETURNING id, traversal, queue, label, state, rung_at
), {SETTLE_PLAN_NODE}{SETTLED}"""
IDS: Final = """
SELECT nextval('resource_definition_id_seq'),
    nextval('resource_id_seq'),
    nextval('graph_node_id_seq')
FROM generate_series(1, %(count)s::integer)
"""


PREALLOCATED_IDS: Final = 12  # resources whose ids are taken before it is known how many there are


class PlanInputs(NamedTuple):
    """What a first plan is made from."""

    template_hash: str
    environment: Mapping[str, Any]
    files: Mapping[str, str]
    parameters: dict[str, Any]
    sealed: bytes | None
    depth: int
    finish_id: int
    length: int  # of the template, in bytes
    is_begun: bool
    ids: Sequence[Sequence[int]]  # of AHEAD definitions, resources and nodes


def read_plan_node(db: Db, node_id: int) -> tuple[Visit, PlanInputs] | None:
    """Return the visit to a queued plan node, and what the plan is made from, if that is a child's first."""
    for row in fetch_prepared(db, GLANCE, {"node_id": str(node_id), "ahead": str(PREALLOCATED_IDS)}):
        return Visit(*row[:7], StackView(*row[7:21]), None, None, ()), PlanInputs(*row[21:])  # type: ignore[call-arg]  # a row of Any
    return None


def new_ids(db: Db, count: int) -> list[tuple[Any, ...]]:
    """Return `count` ids of a definition, a resource and a node."""
    return fetch_prepared(db, IDS, {"count": str(count)})


def read(db: Db, stack_id: int, traversal: int, revision_id: int) -> PlanInputs | None:
    """Return what a plan is made from; None when the traversal is over."""
    values = {
        "stack_id": str(stack_id),
        "traversal": str(traversal),
        "revision_id": str(revision_id),
        "ahead": str(PREALLOCATED_IDS),
    }
    for row in fetch_prepared(db, READ, values):
        return PlanInputs(*row)
    return None


def write(
    db: Db,
    plan: tuple[int, int | None],
    finish_id: int,
    feeders: int,
    rows: Sequence[tuple[NodeRow, DefinitionRow, tuple[str, str | None]]],
    ring: int,
) -> list[tuple[Any, ...]]:
    """Write a whole plan and settle its node: (node, lease), the lease None where it was not claimed.

    Each row is a node, its definition, and the resource's type as written and as it runs. Ring `ring` of them
    at most. Nothing is returned when the node is no longer ours, or the traversal is over.
    """
    made, nth = [], 0
    for node, definition, (written, runs_as) in rows:
        nth += not node.blocked_by
        made.append(
            {
                "definition_id": definition.id,
                "resource_id": node.resource_id,
                "node_id": node.id,
                "name": definition.name,
                "type": written,
                "runs_as": runs_as,
                "digest": definition.digest.hex(),
                "body": definition.body,
                "requires": list(definition.requires),
                "dep_attrs": definition.dep_attrs,
                "queue": node.queue,
                "needed_by": list(node.needed_by),
                "blocked_by": node.blocked_by,
                "nth": nth,
            }
        )
    return fetch_prepared(db, WRITE, plan_values(plan, finish_id, feeders, made, ring))


def plan_values(
    plan: tuple[int, int | None],
    finish_id: int,
    feeders: int,
    rows: Sequence[Mapping[str, Any]],
    ring: int,
) -> dict[str, str | None]:
    """Return the values of a statement that writes a whole plan."""
    return {
        "plan_id": str(plan[0]),
        "lease": None if plan[1] is None else str(plan[1]),
        "finish_id": str(finish_id),
        "feeders": str(feeders),
        "rows": orjson.dumps(rows).decode(),
        "ring": str(ring),
    }
