"""Starts of repairs in SQL.

A start locks the root stack, then the resources in the order of their ids. It marks the resources, so that
the traversal visits them and observes them again before it acts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.observation.repairs import Action, Mark
from orchestrator.store.observation import marks
from orchestrator.store.observation.marks import MarkRow
from orchestrator.store.observation.repairs import COLUMNS, EVENT, FAULT, IS_FAULT
from orchestrator.store.observation.watched import VERSION
from orchestrator.store.traversals import children, traversals
from orchestrator.store.traversals.traversals import StartedTraversal

Db = Connection[TupleRow]

MAX_NAMES: Final = 5  # in the reason of a stack


class Repair(NamedTuple):
    """How a fault is repaired."""

    action: Action
    properties: frozenset[str]  # to be corrected


# The values of a difference in a text; an absent value is null.
FOUND, EXPECTED = (f"coalesce(left(d ->> '{side}', 100), 'null')" for side in ("found", "expected"))

FAULTS: Final = f"""
SELECT v.id, v.resource_id, {VERSION}, v.verdict
FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
WHERE v.id = ANY(%(faults)s) AND v.root_id = %(root_id)s AND {IS_FAULT}
"""
START: Final = f"""
WITH i AS MATERIALIZED (
    SELECT * FROM unnest(%(faults)s::bigint[], %(actions)s::text[]) AS x(fault_id, action)
), w AS (
    INSERT INTO repair AS p ({COLUMNS}, action, status, traversal, started_at)
    SELECT {FAULT}, i.action, 'started', %(traversal)s, now()
    FROM i JOIN resource_verdict v ON v.id = i.fault_id ORDER BY v.id
    ON CONFLICT (fault_id) DO UPDATE SET action = excluded.action, status = 'started', reason = '',
        due_at = NULL, traversal = excluded.traversal, started_at = excluded.started_at
    RETURNING p.stack_id, p.name, p.type, p.physical_id, p.action, p.verdict, p.fault_reason, p.differences
)
{EVENT}
SELECT w.stack_id, w.name, w.type, w.physical_id, 'UPDATE', 'IN_PROGRESS',
    'Automatic repair (' || w.action || '), observed ' || w.verdict || ': ' || CASE
        WHEN w.verdict = 'MODIFIED' THEN (
            SELECT string_agg(concat(d ->> 'property', ' is ', {FOUND}, ' instead of ',
                {EXPECTED}), ', ') FROM jsonb_array_elements(w.differences) AS d)
        ELSE w.fault_reason END, true
FROM w
"""
# A record for each repair, with its effect as the target.
AUDIT: Final = """
INSERT INTO audit_record (action, project_id, user_name, origin, target, result)
SELECT 'stacks:repair', p.project_id, 'automatic', 'observation',
    s.name || '/' || s.uuid || ' ' || p.name || ': ' || p.action || ', observed ' || p.verdict, 'started'
FROM repair p JOIN stack s ON s.id = p.stack_id
WHERE p.root_id = %(root_id)s AND p.traversal = %(traversal)s ORDER BY p.id
"""
REASON: Final = """
UPDATE stack SET status_reason = %(reason)s
WHERE id = %(root_id)s AND traversal = %(traversal)s AND status = 'IN_PROGRESS'
"""


def mark(db: Db, root_id: int, repairs: Mapping[int, Repair]) -> dict[int, int]:
    """Mark the resources of faults for the next traversal; return the stacks by fault. A resource with an
    operation is left out.
    """
    found = db.execute(FAULTS, {"root_id": root_id, "faults": list(repairs)}).fetchall()
    marked = marks.mark(db, [MarkRow(row[1], row[2], Mark(row[3], *repairs[row[0]])) for row in found])
    return {row[0]: marked[row[1]] for row in found if row[1] in marked}


def begin(
    db: Db, root_id: int, stack_ids: Collection[int], purpose: str, names: Sequence[str], *, automatic: bool
) -> StartedTraversal:
    """Start an update of a locked stack to its present revision, which visits the marked resources of the
    stacks `stack_ids` in its tree. `names`: of the resources.
    """
    children.mark_stale(db, root_id, *stack_ids)
    started = traversals.start_traversal(db, root_id, "UPDATE", automatic=automatic)
    assert started is not None  # it exists: it is locked
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    reason = f"Stack UPDATE started: {purpose} of {', '.join(names[:MAX_NAMES])}{more}"
    db.execute(REASON, {"root_id": root_id, "traversal": started.traversal, "reason": reason})
    return started


def record(db: Db, root_id: int, traversal: int, actions: Mapping[int, Action]) -> None:
    """Record the start of repairs, given by fault, with an event and an audit record for each."""
    values = {"faults": list(actions), "actions": list(actions.values()), "traversal": traversal}
    db.execute(START, values)
    db.execute(AUDIT, {"root_id": root_id, "traversal": traversal})
