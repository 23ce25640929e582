"""Groups and stacks whose resources are repaired together, in SQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

# The resources that hold stacks, the innermost first. `below` is the resource of the held stack on the way to
# the fault; null: the damaged resource itself.
HOLDERS: Final = """
WITH RECURSIVE a AS (
    SELECT s.id AS stack_id, s.id, s.owner_id, s.parent_resource_id, 0 AS level, NULL::text AS below
    FROM stack s WHERE s.id = ANY(%(stacks)s)
    UNION ALL
    SELECT a.stack_id, o.id, o.owner_id, o.parent_resource_id, a.level + 1, r.name
    FROM a JOIN resource r ON r.id = a.parent_resource_id JOIN stack o ON o.id = a.owner_id
)
SELECT a.stack_id, a.id, a.below, h.id, coalesce(h.runs_as, h.type),
    h.properties -> 'rolling_updates' -> 'min_in_service', d.body -> 'update_policy'
FROM a JOIN resource h ON h.id = a.parent_resource_id
LEFT JOIN resource_definition d ON d.stack_id = h.stack_id AND d.id = h.definition_id
ORDER BY a.stack_id, a.level
"""
# Members, and those that are in service: neither they nor the stacks that they hold have a fault.
SIZES: Final = f"""
WITH v AS MATERIALIZED (
    SELECT v.resource_id, s.parent_resource_id
    FROM stack c JOIN resource_verdict v ON v.root_id = c.root_id
    JOIN resource r ON r.id = v.resource_id JOIN stack s ON s.id = v.stack_id
    WHERE c.id = ANY(%(stacks)s) AND v.confirmed AND {check_in("v.verdict", ("MISSING", "FAILED"))}
        AND {CURRENT}
)
SELECT m.stack_id, count(*), count(*) FILTER (WHERE m.status = 'COMPLETE'
    AND m.id NOT IN (SELECT resource_id FROM v)
    AND m.id NOT IN (SELECT parent_resource_id FROM v WHERE parent_resource_id IS NOT NULL))
FROM resource m WHERE m.stack_id = ANY(%(stacks)s) AND NOT m.deposed AND m.action <> 'DELETE'
GROUP BY m.stack_id
"""


class Holder(NamedTuple):
    """A resource that holds a stack around a fault."""

    stack_id: int  # of the fault
    child_id: int  # the stack that it holds
    below: str | None
    resource_id: int
    type: str
    min_in_service: Any  # of a property
    update_policy: Any  # of its definition


class Size(NamedTuple):
    """The resources of a stack."""

    stack_id: int
    size: int
    in_service: int


def holders(db: Db, stacks: Collection[int]) -> list[Holder]:
    """Return the resources that hold these stacks and the stacks around them, the innermost first."""
    return [Holder(*row) for row in db.execute(HOLDERS, {"stacks": sorted(stacks)}).fetchall()]


def sizes(db: Db, stacks: Collection[int]) -> dict[int, Size]:
    """Return the sizes of the stacks of groups."""
    if not stacks:
        return {}
    rows = db.execute(SIZES, {"stacks": sorted(stacks)}).fetchall()
    return {row[0]: Size(*row) for row in rows}
