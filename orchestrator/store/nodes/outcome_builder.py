"""Outcome statements: values made of named parts, and the function that renders them as SQL.

A single statement records the outcome of a visit: it writes the resource, changes the node, records events,
and releases or wakes other nodes. Each `OutcomeStatement` is rendered in up to four forms: for a node
that was claimed (`leased`) or not (operations/adr/0001), and for a single row or many. The rendered texts are
in tests/golden/sql.

Every statement returns rows of (effect, id, traversal, queue, label). The effects are `send` (send a
message), `queued` (released, no message yet), `clean` (released, needs no visit) and `held` (a resource that
was written).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Final, Literal

from orchestrator.engine.states import STATES_VISITED
from orchestrator.store.nodes.large_values import LARGE_BYTES
from orchestrator.store.nodes.outcome_fences import (
    FREE_RESOURCE,
    LEASED_NODE,
    LEASED_OR_EXPIRED_NODE,
    LEASED_RESOURCE,
    LOCK_CLAIMED_NODE,
    REPLACED_RESOURCE,
    lock_queued_node,
)
from orchestrator.store.nodes.visit_sql import QUEUED
from orchestrator.store.tables.base import check_in

# The columns of an outcome row, and their types. Many rows are a JSON array. A single row is a list of
# typed parameters: `i` then dissolves into the plan, which is half as large. Only columns in use are listed.
COLUMNS: Final = {
    "node_id": "bigint",
    "resource_id": "bigint",
    "stack_id": "bigint",
    "name": "text",
    "type": "text",
    "action": "text",
    "status": "text",
    "reason": "text",
    "started": "boolean",
    "changed": "boolean",
    "physical_id": "text",
    "reference_id": "text",
    "properties": "json",
    "attributes": "json",
    "metadata": "json",
    "data": "json",
    "sealed": "text",
    "shown": "json",
    "definition_id": "bigint",
    "digest": "text",
    "requires": "bigint[]",
    "input_digests": "text[]",
    "value_digest": "text",
    "observed": "text",
    "op": "text",
    "attempt": "integer",
    "wait_seconds": "float8",
    "retried": "boolean",
    "unreachable": "boolean",
    "refusal": "text",
    "outage": "boolean",
    "absent": "boolean",
    "aborted": "boolean",
    "traversal": "bigint",
    "lost_seconds": "float8",
    "continued": "boolean",
    "replacement_uuid": "uuid",
    "runs_as": "text",
    "was_healthy": "boolean",
    "status_read": "text",
    "step": "text",
    "requested": "boolean",
    "has_early_attributes": "boolean",
    "automatic": "boolean",
}

SHOWN: Final = "coalesce(i.properties, i.shown)"  # of a secret resource masked, or null
IS_SMALL: Final = f"pg_column_size({SHOWN}) <= {LARGE_BYTES}"  # larger properties are not copied to events

KEYS: Final = frozenset({"node_id", "resource_id", "stack_id"})

_COLUMN_IN_USE: Final = re.compile(r"\bi\.(\w+)")


@dataclass(frozen=True, slots=True)
class EventRule:
    """The INSERT of an outcome's events."""

    insert: str  # an INSERT ... SELECT without ORDER BY
    order: str  # of the events of one row


def state_events(
    status: str = "(i.status, i.reason)", when: str = "true", unless_silent: str = ""
) -> EventRule:
    """Return the rule for IN_PROGRESS, unless recorded before, then the final status and its reason."""
    return EventRule(
        f"""
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN x.status <> 'IN_PROGRESS' AND {IS_SMALL} THEN {SHOWN} END,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), {status}) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE {when} END{unless_silent}""",
        "x.status <> 'IN_PROGRESS'",
    )


BOTH_EVENTS: Final = state_events()
STARTED_EVENT: Final = state_events(status="(NULL, NULL)", when="false")


@dataclass(frozen=True, slots=True)
class NodeEffect:
    """The change of the visited node."""

    set: str
    returning: str = ""
    source: str = "JOIN r ON r.id = i.resource_id"
    expired_lease_too: bool = False  # also after the lease of the node, not of its resource, has expired
    before: str = ""  # CTEs that `set` reads
    # The additional SET of the merged form, None where the node and its dependents are updated separately.
    merged_set: str | None = None
    merged_source: str = "r"  # the CTE whose row permits the change


READY: Final = NodeEffect(
    set="""state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL,
        leased_until = NULL, last_error = NULL""",
    returning="n.id, n.needed_by, i.changed",
    merged_set="",
)


class Next(Enum):
    """The last part of a statement: which nodes are enqueued."""

    DEPENDENTS = "release the dependents"
    NODE = "enqueue the node once more"
    EARLY = "release the dependents that need the object to exist, and wake as BLOCKED"
    BLOCKED = "wake the node of a newer traversal that waited for the resource"
    NOTHING = "none"


@dataclass(frozen=True, slots=True, eq=False)  # a constant: hashed by identity in each check
class OutcomeStatement:
    """A statement that records the outcome of a visit."""

    name: str
    resource: str | None  # the SET list; None: the row is deleted
    node: NodeEffect | None = READY
    events: EventRule | None = BOTH_EVENTS
    next: Next = Next.DEPENDENTS
    replacement: str = ""  # its INSERT; the id is r.replaced_by
    returning: str = "r.id"  # of the resource
    failure: str = ""  # the INSERT of the failure
    halts: bool = False  # the first failure stops the traversal
    child: str = ""  # the CTEs that insert a child stack
    child_rows: str = ""  # the rows that these add to the result


def render(statement: OutcomeStatement, *, leased: bool, rows: Literal["one", "many"]) -> str:
    """Return a statement as SQL.

    `leased`: the node and its resource were claimed with %(lease)s. Otherwise the statement locks both and
    matches nothing unless they are free.
    """
    return _render(statement, leased, rows == "many")


@cache
def _render(statement: OutcomeStatement, leased: bool, many: bool) -> str:
    node = statement.node
    merged = (
        not leased
        and not many
        and statement.next is Next.DEPENDENTS
        and node is not None
        and node.merged_set is not None
    )
    parts = [NEW_IDS] if statement.replacement else []
    if not leased:
        parts.append(lock_queued_node(with_dependents=merged))
    elif statement.replacement:
        parts.append(LOCK_CLAIMED_NODE)
    parts.append(_resource(statement, leased))
    if statement.replacement:
        parts.append(f", replacement AS ({statement.replacement})")
    if node is not None:
        parts.append(node.before)
        if not merged:
            parts.append(_node(node, leased))
    if statement.failure:
        parts.append(f", recorded_failure AS ({statement.failure})")
    if statement.halts:
        parts.append(HALT)
    if statement.events is not None:
        order = f"\n    ORDER BY i.node_id, {statement.events.order}" if many else ""
        parts.append(f", recorded AS ({statement.events.insert}{order}\n)")
    parts.append(_next(statement, merged=merged, many=many))
    body = "".join(parts)
    return (_many_rows(body) if many else _one_row(body)) + body


def _many_rows(body: str) -> str:
    """Return the CTE of a JSON array of rows with the columns that `body` reads. PostgreSQL converts each
    listed column of each row.
    """
    columns = ", ".join(f"{name} {COLUMNS[name]}" for name in _columns_in_use(body, KEYS))
    return f"""
WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x({columns})
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)"""


def _one_row(body: str) -> str:
    """Return the CTE of a single row with the columns that `body` reads."""
    columns = ", ".join(f"%({name})s::{COLUMNS[name]} AS {name}" for name in _columns_in_use(body))
    return f"\nWITH i AS NOT MATERIALIZED (\n    SELECT {columns}\n)"


def _columns_in_use(body: str, always: frozenset[str] = frozenset()) -> list[str]:
    """Return the columns that `body` reads, and those `always` listed, in the order of COLUMNS.

    Raises:
        KeyError: `body` reads a column that no row has.
    """
    used = set(_COLUMN_IN_USE.findall(body)) | always
    if unknown := used - COLUMNS.keys():
        raise KeyError(f"no such column of an outcome: {sorted(unknown)}")
    return [name for name in COLUMNS if name in used]


NEW_IDS: Final = """
, new_ids AS MATERIALIZED (
    SELECT i.resource_id, nextval('resource_id_seq') AS id FROM i
)"""


def _resource(statement: OutcomeStatement, leased: bool) -> str:
    claimed = REPLACED_RESOURCE if statement.replacement else LEASED_RESOURCE
    guard = claimed if leased else FREE_RESOURCE
    change = (
        f"DELETE FROM resource r USING {guard}"
        if statement.resource is None
        else f"UPDATE resource r\n    SET {statement.resource}\n    FROM {guard}"
    )
    return f"""
, r AS (
    {change}
    RETURNING {statement.returning}
)"""


def _node(node: NodeEffect, leased: bool) -> str:
    guard = LEASED_OR_EXPIRED_NODE if node.expired_lease_too else LEASED_NODE
    returning = f"\n    RETURNING {node.returning}" if node.returning else ""
    return f"""
, done AS (
    UPDATE graph_node n
    SET {node.set}
    FROM i {node.source}
    WHERE n.id = ANY (ARRAY[i.node_id]) AND {guard if leased else QUEUED}{returning}
)"""


# The first failure stops the traversal, once. Operations that are still running are waited for, and the
# reason says so.
HALT: Final = """
, halted AS (
    UPDATE stack s
    SET halted_traversal = s.traversal,
        status_reason = 'Stack ' || s.action || ' is winding down: ' || f.reason
    FROM (SELECT stack_id, traversal, (array_agg(reason ORDER BY id))[1] AS reason FROM done
        GROUP BY stack_id, traversal) f
    WHERE s.id = ANY (ARRAY[f.stack_id]) AND s.traversal = f.traversal AND NOT s.keep_going
        AND s.halted_traversal IS DISTINCT FROM s.traversal
)"""


def _next(statement: OutcomeStatement, *, merged: bool, many: bool) -> str:
    match statement.next:
        case Next.DEPENDENTS:
            assert statement.node is not None
            return (settle_and_release(statement.node) if merged else release(many=many)) + RELEASED_ROWS
        case Next.EARLY:
            rows = "UNION ALL SELECT 'send', id, traversal, queue, label FROM woken\n"
            return release(many=many) + WAKE_BLOCKED + RELEASED_ROWS + rows
        case Next.NODE:
            return HELD_ROWS + "UNION ALL SELECT 'send', id, traversal, queue, label FROM done\n"
        case Next.BLOCKED:
            return WAKE_BLOCKED + statement.child + WOKEN_ROWS + statement.child_rows
        case Next.NOTHING:
            return HELD_ROWS


# Several rows may release the same dependent.
_DECREMENTS_OF_MANY: Final = """
    SELECT d.id, count(*) AS k, bool_or(done.changed) AS changed, row_number() OVER () AS nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) AS d(id) GROUP BY d.id"""
_DECREMENTS_OF_ONE: Final = """
    SELECT d.id, 1 AS k, done.changed, d.nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) WITH ORDINALITY AS d(id, nth)"""


def release(*, many: bool) -> str:
    """Return the CTEs that release the dependents of the nodes in `done`."""
    return f"""
, decrement AS ({_DECREMENTS_OF_MANY if many else _DECREMENTS_OF_ONE}
), released AS (
    UPDATE graph_node n
    SET blocked_by = n.blocked_by - l.k, dirty = n.dirty OR l.changed,
        state = CASE WHEN n.blocked_by = l.k THEN 'queued' ELSE 'blocked' END,
        enqueued_at = CASE WHEN n.blocked_by = l.k AND (n.dirty OR l.changed) AND l.nth <= %(max_messages)s
            THEN now() END
    FROM (SELECT * FROM decrement ORDER BY id) l  -- every statement locks in this order: no deadlocks
    WHERE n.id = ANY (ARRAY[l.id]) AND n.state = 'blocked'
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.enqueued_at, n.dirty
)"""


def settle_and_release(node: NodeEffect) -> str:
    """Return the merged form of READY and `release`: a single UPDATE of an unclaimed node (number 0) and of
    its dependents.

    PostgreSQL opens the indexes of a table and reads its CHECK constraints once per UPDATE.
    """
    return f"""
, released AS (
    UPDATE graph_node n
    SET state = CASE WHEN l.nth = 0 THEN 'ready' WHEN n.blocked_by = 1 THEN 'queued' ELSE 'blocked' END,
        observed_ready = l.nth = 0, observed_ready_at = CASE WHEN l.nth = 0 THEN now() END, last_error = NULL,
        lease = NULL, leased_until = NULL,{node.merged_set}
        blocked_by = CASE WHEN l.nth = 0 THEN 0 ELSE n.blocked_by - 1 END, dirty = n.dirty OR l.changed,
        enqueued_at = CASE WHEN l.nth = 0 THEN n.enqueued_at
            WHEN n.blocked_by = 1 AND (n.dirty OR l.changed) AND l.nth <= %(max_messages)s THEN now() END
    FROM (
        SELECT d.id, d.nth - 1 AS nth, i.changed, {node.merged_source}.id AS written_id
        FROM i CROSS JOIN {node.merged_source} CROSS JOIN locked
        CROSS JOIN LATERAL unnest(locked.node_ids) WITH ORDINALITY AS d(id, nth)
        ORDER BY d.id  -- every statement locks in this order: no deadlocks
    ) l
    WHERE n.id = ANY (ARRAY[l.id]) AND n.state = CASE WHEN l.nth = 0 THEN 'queued' ELSE 'blocked' END
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.enqueued_at, n.dirty
)"""


RELEASED_ROWS: Final = """
SELECT CASE WHEN NOT dirty THEN 'clean' WHEN enqueued_at IS NULL THEN 'queued' ELSE 'send' END, id, traversal,
    queue, label
FROM released WHERE state = 'queued'
UNION ALL SELECT 'held', r.id, NULL, NULL, NULL FROM r
"""
HELD_ROWS: Final = """
SELECT 'held', r.id, NULL, NULL, NULL FROM r
"""

# The node of a newer traversal that waits for a resource which this statement releases. The conditions are
# those of ix_graph_node_at_work and of no other index: the number of waiting nodes must not matter.
WAKE_WAITING_NODE: Final = f"""
UPDATE graph_node n SET state = 'queued', due_at = NULL, enqueued_at = now(), re_enqueues = 0
FROM i CROSS JOIN LATERAL (
    SELECT m.id FROM graph_node m
    WHERE m.stack_id = i.stack_id AND m.resource_id = i.resource_id AND m.id <> i.node_id
        AND {check_in("m.state", STATES_VISITED)} AND m.due_at IS NOT NULL OFFSET 0) AS blocked_node
WHERE n.id = ANY (ARRAY[blocked_node.id]) AND n.due_at IS NOT NULL
RETURNING n.id, n.traversal, n.queue, n.label
"""
WAKE_BLOCKED: Final = f", woken AS ({WAKE_WAITING_NODE})"
WOKEN_ROWS: Final = HELD_ROWS + "UNION ALL SELECT 'send', id, traversal, queue, label FROM woken\n"
