"""The plan of a small stack's first traversal or delete: a statement reads its inputs, another writes it.

A tree of a thousand nested stacks needs it a thousand times. The plan is written completely or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import ControlVisit, StackView
from orchestrator.engine.plan_changes import Row
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.visit_sql import NODE_COLUMNS, QUEUED, STACK_COLUMNS
from orchestrator.store.planning.bulk_writer import DefinitionRow, NodeRow
from orchestrator.store.traversals.child_reads import InheritedInputs

Db = Connection[TupleRow]

PREALLOCATED_IDS: Final = 12  # resources whose ids are fetched before their number is known

FINISH_ID = """(SELECT f.id FROM graph_node f
        WHERE f.stack_id = s.id AND f.traversal = s.traversal AND f.kind = 'finish')"""
HAS_NODES = """EXISTS (SELECT 1 FROM graph_node f WHERE f.stack_id = s.id AND f.traversal = s.traversal
        AND f.kind IN ('update', 'cleanup', 'join'))"""
CREATE_INPUTS = f"""encode(v.template_hash, 'hex'), v.environment, v.files, v.parameters, v.sealed,
s.depth, v.denied_types,
    {FINISH_ID},
    (SELECT length(c.body) FROM content c WHERE c.hash = v.template_hash),
    {HAS_NODES},
    ARRAY(SELECT ARRAY[
            nextval('resource_definition_id_seq'),
            nextval('resource_id_seq'),
            nextval('graph_node_id_seq')]
        FROM generate_series(1, %(ahead)s::integer))
"""
READ_FOR_CREATE = f"""
SELECT {CREATE_INPUTS}FROM stack s JOIN revision v ON v.id = s.revision_id
WHERE s.id = %(stack_id)s::bigint AND s.traversal = %(traversal)s::bigint
    AND s.revision_id = %(revision_id)s::bigint
"""

# The same by the queued plan node of a nested stack's first traversal, with its visit; no row for any other
# node.
READ_PLAN_NODE = f"""
SELECT {NODE_COLUMNS},
    {STACK_COLUMNS},
    {CREATE_INPUTS}FROM graph_node n
JOIN stack s ON s.id = ANY (ARRAY[n.stack_id]) JOIN revision v ON v.id = ANY (ARRAY[s.revision_id])
WHERE n.id = %(node_id)s::bigint AND n.kind = 'plan' AND {QUEUED} AND n.lost_leases = 0
    AND n.traversal + 0 = 1 AND s.traversal = n.traversal AND s.halted_traversal IS NULL
    AND s.action = 'CREATE' AND s.owner_id IS NOT NULL
"""
READ_FOR_DELETE = f"""
SELECT v.environment, v.files, s.depth, v.sealed, v.denied_types,
    {FINISH_ID},
    {HAS_NODES},
    (SELECT json_agg(json_build_array(r.id, r.name, coalesce(r.runs_as, r.type), r.action, r.status, r.op,
            r.attempt, NULL, r.requires, r.input_digests, r.value_digest, r.deposed) ORDER BY r.id)
        FROM (SELECT * FROM resource WHERE stack_id = s.id LIMIT %(limit)s::integer) AS r),
    ARRAY(SELECT nextval('graph_node_id_seq')
        FROM generate_series(1, %(ahead)s::integer))
FROM stack s JOIN revision v ON v.id = ANY (ARRAY[s.revision_id])
WHERE s.id = %(stack_id)s::bigint AND s.traversal = %(traversal)s::bigint
    AND s.revision_id = %(revision_id)s::bigint
"""

# Parts of the two statements that write a plan. The stack's row is locked for share, so that no newer
# traversal starts before the nodes of this traversal exist.
LOCK_PLAN_NODE = """ours AS MATERIALIZED (
    SELECT n.id, s.id AS stack_id, s.root_id, s.traversal
    FROM graph_node n JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE n.id = %(plan_id)s::bigint AND CASE WHEN %(lease)s::bigint IS NULL THEN n.state = 'queued'
            ELSE n.state = 'checking' AND n.lease = %(lease)s::bigint END
        AND s.traversal = n.traversal AND s.halted_traversal IS DISTINCT FROM s.traversal
    FOR UPDATE OF n FOR SHARE OF s
)"""
PLANNED_ROWS = """x AS MATERIALIZED (
    SELECT x.* FROM ours CROSS JOIN json_to_recordset(%(rows)s::json) AS x(
        node_id bigint, kind text, resource_id bigint, definition_id bigint, queue text, name text,
        needed_by bigint[], early_needed_by bigint[], blocked_by integer, nth integer, """
INSERT_NODES = """nodes AS (
    INSERT INTO graph_node (id, stack_id, root_id, traversal, kind, resource_id, definition_id, queue, label,
        needed_by, early_needed_by, blocked_by, dirty, state, enqueued_at)
    SELECT x.node_id, ours.stack_id, ours.root_id, ours.traversal, x.kind, x.resource_id, x.definition_id,
        x.queue, x.name, x.needed_by, x.early_needed_by, x.blocked_by, true,
        CASE WHEN x.blocked_by > 0 THEN 'blocked' ELSE 'queued' END,
        CASE WHEN x.blocked_by = 0 AND x.nth <= %(max_enqueued)s::integer THEN now() END
    FROM x CROSS JOIN ours
    RETURNING id, traversal, queue, label, state, enqueued_at
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
RESULT = """
SELECT CASE WHEN enqueued_at IS NULL THEN 'queued' ELSE 'send' END, id, traversal, queue, label
FROM nodes WHERE state = 'queued'
UNION ALL SELECT 'held', id, NULL, NULL, NULL FROM ours
"""
WRITE_CREATE = f"""
WITH {LOCK_PLAN_NODE}, {PLANNED_ROWS}
        type text, runs_as text, digest text, body json, requires text[], dep_attrs jsonb)
), d AS (
    INSERT INTO resource_definition (id, stack_id, name, digest, body, requires, dep_attrs, valid_from)
    SELECT x.definition_id, ours.stack_id, x.name, decode(x.digest, 'hex'), x.body, x.requires, x.dep_attrs, 1
    FROM x CROSS JOIN ours
), r AS (
    INSERT INTO resource (id, uuid, stack_id, name, type, runs_as)
    SELECT x.resource_id, gen_random_uuid(), ours.stack_id, x.name, x.type, x.runs_as FROM x CROSS JOIN ours
), {INSERT_NODES}, {SETTLE_PLAN_NODE}{RESULT}"""

# The nodes of earlier traversals are deleted in the same statement.
WRITE_DELETE = f"""
WITH {LOCK_PLAN_NODE}, {PLANNED_ROWS}deposed boolean)
), r AS (
    UPDATE resource r SET deposed = true, replaced_by = NULL
    FROM x WHERE x.deposed AND r.id = ANY (ARRAY[x.resource_id])
), {INSERT_NODES}, {SETTLE_PLAN_NODE}, old AS (
    DELETE FROM graph_node n WHERE n.id = ANY (ARRAY(
        SELECT o.id FROM ours JOIN graph_node o ON o.stack_id = ours.stack_id
        WHERE o.traversal < ours.traversal AND o.state <> 'checking'
        FOR UPDATE OF o SKIP LOCKED))  -- a late visit may be releasing them
){RESULT}"""
NEW_IDS: Final = """
SELECT nextval('resource_definition_id_seq'),
    nextval('resource_id_seq'),
    nextval('graph_node_id_seq')
FROM generate_series(1, %(count)s::integer)
"""


class CreateInputs(NamedTuple):
    """The inputs of a first plan."""

    template_hash: str
    environment: JsonMapping
    files: Mapping[str, str]
    parameters: JsonObject
    sealed: bytes | None
    depth: int
    denied_types: Sequence[str] | None
    finish_id: int
    length: int  # of the template, in bytes
    is_begun: bool  # the traversal has nodes of a plan in slices
    ids: Sequence[Sequence[int]]  # (definition, resource, node), PREALLOCATED_IDS of each

    @property
    def inherited(self) -> InheritedInputs:
        """The part that children inherit."""
        return InheritedInputs(self.environment, self.files, self.depth, self.sealed, self.denied_types)


class DeleteInputs(NamedTuple):
    """The inputs of a delete's plan."""

    inherited: InheritedInputs
    finish_id: int
    is_begun: bool  # the traversal has nodes of a plan in slices
    rows: Sequence[Row]  # oldest first
    ids: Sequence[int]  # of PREALLOCATED_IDS nodes


class PlannedRow(NamedTuple):
    """A node of a small plan, with its resource."""

    node: NodeRow
    definition: DefinitionRow | None = None  # of a new resource
    types: tuple[str, str | None] | None = None  # of a new resource: as written, as run if different
    deposed: bool = False  # mark the existing resource deposed


def read_plan_node(db: Db, node_id: int) -> tuple[ControlVisit, CreateInputs] | None:
    """Return the visit to the queued plan node of a nested stack's first traversal, and the plan's inputs;
    None for any other node.
    """
    for row in fetch_prepared(db, READ_PLAN_NODE, {"node_id": str(node_id), "ahead": str(PREALLOCATED_IDS)}):
        visit = ControlVisit(*row[:7], StackView(*row[7:21]))  # type: ignore[call-arg]  # a row of Any
        return visit, CreateInputs(*row[21:])
    return None


def read_for_create(db: Db, stack_id: int, traversal: int, revision_id: int) -> CreateInputs | None:
    """Return the inputs of a first plan; None when the traversal is over."""
    values = {
        "stack_id": str(stack_id),
        "traversal": str(traversal),
        "revision_id": str(revision_id),
        "ahead": str(PREALLOCATED_IDS),
    }
    for row in fetch_prepared(db, READ_FOR_CREATE, values):
        return CreateInputs(*row)
    return None


def read_for_delete(
    db: Db, stack_id: int, traversal: int, revision_id: int, limit: int
) -> DeleteInputs | None:
    """Return the inputs of a delete's plan with at most `limit` rows; None when the traversal is over."""
    values = {
        "stack_id": str(stack_id),
        "traversal": str(traversal),
        "revision_id": str(revision_id),
        "limit": str(limit),
        "ahead": str(PREALLOCATED_IDS),
    }
    for *inputs, finish_id, is_begun, definitions, ids in fetch_prepared(db, READ_FOR_DELETE, values):
        rows = [Row(*row) for row in definitions or ()]
        return DeleteInputs(InheritedInputs(*inputs), finish_id, is_begun, rows, ids)
    return None


def new_ids(db: Db, count: int) -> list[tuple[Any, ...]]:
    """Return `count` ids each of a definition, a resource and a node."""
    return fetch_prepared(db, NEW_IDS, {"count": str(count)})


def write(
    db: Db,
    statement: str,
    plan: tuple[int, int | None],
    finish_id: int,
    feeders: int,
    rows: Sequence[PlannedRow],
    max_enqueued: int,
) -> list[tuple[Any, ...]]:
    """Write a whole plan with WRITE_CREATE or WRITE_DELETE, and settle its node.

    `plan` is the plan node and its lease, None for an unclaimed node. At most `max_enqueued` ready nodes are
    marked as enqueued. Return the rows that `repository.settled` reads; no row when another planner has the
    node or the traversal is over.
    """
    values = {
        "plan_id": str(plan[0]),
        "lease": None if plan[1] is None else str(plan[1]),
        "finish_id": str(finish_id),
        "feeders": str(feeders),
        "rows": orjson.dumps(_records(rows)).decode(),
        "max_enqueued": str(max_enqueued),
    }
    return repository.retried(db, statement, values)


def _records(rows: Sequence[PlannedRow]) -> list[JsonObject]:
    records, ready = [], 0
    for node, definition, types, deposed in rows:
        ready += not node.blocked_by
        record = {
            "node_id": node.id,
            "kind": node.kind,
            "resource_id": node.resource_id,
            "definition_id": node.definition_id,
            "queue": node.queue,
            "name": node.label,
            "needed_by": list(node.needed_by),
            "early_needed_by": node.early_needed_by,
            "blocked_by": node.blocked_by,
            "nth": ready,
            "deposed": deposed,
        }
        if definition is not None and types is not None:
            record |= {
                "type": types[0],
                "runs_as": types[1],
                "digest": definition.digest.hex(),
                "body": definition.body,
                "requires": list(definition.requires),
                "dep_attrs": definition.dep_attrs,
            }
        records.append(record)
    return records
