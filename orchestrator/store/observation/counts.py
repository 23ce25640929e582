"""Numbers of resources by verdict, of stacks with the stacks below them.

A verdict counts for its stack and for each owner of that stack: the cost depends on the number of deviations
in the trees, not on the number of stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.observation.drift import DRIFT_STATES, DRIFTED, OF_PROJECT
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

IS_SHOWN: Final = f"(v.unknown_since IS NOT NULL OR v.confirmed) AND {CURRENT}"

BY_STACK: Final = f"""
WITH RECURSIVE deviating AS MATERIALIZED (
    SELECT v.stack_id, CASE WHEN v.unknown_since IS NULL THEN v.verdict ELSE 'UNKNOWN' END AS verdict,
        count(*) AS number
    FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
    WHERE v.root_id = ANY(%(roots)s) AND {IS_SHOWN}
    GROUP BY 1, 2
), counted AS (
    SELECT s.id, s.owner_id, d.verdict, d.number
    FROM deviating d JOIN stack s ON s.id = d.stack_id WHERE s.deleted_at IS NULL
    UNION ALL
    SELECT s.id, s.owner_id, c.verdict, c.number FROM counted c JOIN stack s ON s.id = c.owner_id
)
SELECT c.id, c.verdict, sum(c.number)::bigint FROM counted c
WHERE c.id = ANY(%(stacks)s) GROUP BY c.id, c.verdict
"""
# All stacks of a tree have its root; a branch is read level by level.
_TREE: Final = """
WITH below AS (
    SELECT s.id, s.revision_id FROM stack s WHERE s.root_id = %(stack_id)s AND s.deleted_at IS NULL
)"""
_BRANCH: Final = """
WITH RECURSIVE below AS (
    SELECT s.id, s.revision_id FROM stack s WHERE s.id = %(stack_id)s
    UNION ALL
    SELECT s.id, s.revision_id FROM below b JOIN stack s ON s.owner_id = b.id WHERE s.deleted_at IS NULL
)"""
_SIZE: Final = """
SELECT coalesce(sum(v.resource_count), 0)::bigint FROM below b JOIN revision v ON v.id = b.revision_id
"""
SIZE_OF_TREE: Final = f"{_TREE}{_SIZE}"
SIZE_OF_BRANCH: Final = f"{_BRANCH}{_SIZE}"
# The types of the services that give no answer; all, if the credential of the tree is refused.
FAILING_TYPES: Final = f"""
SELECT DISTINCT unnest(g.types) FROM observation_group g
WHERE g.project_id = %(project_id)s AND NOT {check_in("g.kind", OF_PROJECT)}
    AND (g.failing_since IS NOT NULL
        OR EXISTS (SELECT 1 FROM observation_fault f WHERE f.root_id = %(root_id)s))
"""
_UNOBSERVED: Final = f"""
SELECT count(*) FROM below b JOIN resource r ON r.stack_id = b.id
WHERE NOT r.deposed AND r.physical_id IS NOT NULL AND coalesce(r.runs_as, r.type) = ANY(%(types)s)
    AND NOT EXISTS (SELECT 1 FROM resource_verdict v WHERE v.resource_id = r.id AND {IS_SHOWN})
"""
UNOBSERVED_IN_TREE: Final = f"{_TREE}{_UNOBSERVED}"
UNOBSERVED_IN_BRANCH: Final = f"{_BRANCH}{_UNOBSERVED}"


def drifted(database: Database, stacks: Sequence[StackRow]) -> dict[int, dict[str, int]]:
    """Return the number of resources of stacks that differ from their desired state, by stack and verdict."""
    none = dict.fromkeys((verdict for verdict in DRIFT_STATES if verdict in DRIFTED), 0)
    found = {stack.id: dict(none) for stack in stacks}
    with database.borrow() as db:
        for stack_id, verdict, number in _by_stack(db, stacks) if stacks else ():
            if verdict in DRIFTED:
                found[stack_id][verdict] = number
    return found


def deviating(database: Database, stack: StackRow) -> dict[str, int]:
    """Return the number of resources that are not in sync, by verdict.

    Resources are only counted if a service or the credential of the stack gives no answer.
    """
    found = dict.fromkeys((verdict for verdict in DRIFT_STATES if verdict != "IN_SYNC"), 0)
    with database.borrow() as db:
        found.update((verdict, number) for _, verdict, number in _by_stack(db, [stack]))
    found["UNKNOWN"] += _unobserved(database, stack)
    return found


def all_verdicts(database: Database, stack: StackRow, deviating: dict[str, int]) -> dict[str, int]:
    """Return the number of resources by verdict; a resource is in sync unless it deviates."""
    with database.borrow() as db:
        statement = SIZE_OF_TREE if stack.root_id == stack.id else SIZE_OF_BRANCH
        [(total,)] = fetch_prepared(db, statement, {"stack_id": stack.id})
    return {"IN_SYNC": max(0, total - sum(deviating.values())), **deviating}


def _by_stack(db: Db, stacks: Sequence[StackRow]) -> Sequence[TupleRow]:
    roots = sorted({stack.root_id for stack in stacks})
    return fetch_prepared(db, BY_STACK, {"roots": roots, "stacks": [stack.id for stack in stacks]})


def _unobserved(database: Database, stack: StackRow) -> int:
    """Return the number of resources whose service or credential gives no answer, without those that have a
    verdict of their own.
    """
    values = {"project_id": stack.project_id, "root_id": stack.root_id}
    with database.borrow() as db:
        types = [row[0] for row in fetch_prepared(db, FAILING_TYPES, values)]
    if not types:
        return 0
    with database.borrow(hot=False) as db:  # it may read all resources of the tree
        statement = UNOBSERVED_IN_TREE if stack.root_id == stack.id else UNOBSERVED_IN_BRANCH
        [(number,)] = db.execute(statement, {"stack_id": stack.id, "types": types}).fetchall()
    return int(number)
