"""The resources that a repair visits, found by the database: the repair of an object in a stack of a million
resources reads its rows once in the database, and plans this object and everything downstream of it.

A repair returns to the revision that the stack has reached, so that the definitions in force are the desired
ones. UNSETTLED is a second copy of the rule in `engine/plan_changes.py`; it may find a few resources more,
which the plan then leaves out. A test compares the two (docs/internals/protocol.md rule 7).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.plan_changes import Row
from orchestrator.store.planning.bulk_writer import ROWS
from orchestrator.store.planning.group_diff import SCAN_SETTINGS
from orchestrator.store.tables.base import IS_CHANGED_INPUT, IS_SUSPECT

Db = Connection[TupleRow]

IS_REPAIR: Final = """
SELECT EXISTS (
    SELECT 1 FROM stack s WHERE s.id = %(stack_id)s AND s.traversal = %(traversal)s AND s.action = 'UPDATE'
        AND NOT s.converge AND s.revision_id = s.good_revision_id
        AND NOT EXISTS (SELECT 1 FROM revision v WHERE v.stack_id = s.id AND v.adopted IS NOT NULL))
"""
UNSETTLED: Final = f"""
WITH RECURSIVE d AS MATERIALIZED (
    SELECT name, digest, requires FROM resource_definition WHERE stack_id = %(stack_id)s AND valid_to IS NULL
), r AS MATERIALIZED (
    SELECT id, name, built_digest, requires, input_digests, value_digest, deposed,
        status <> 'COMPLETE' OR op IS NOT NULL OR action IN ('INIT', 'DELETE') OR suspended OR deposed
            OR {IS_SUSPECT} OR released IS NOT NULL
            OR coalesce(runs_as, type) = ANY(%(types)s::text[]) AS unsettled
    FROM resource WHERE stack_id = %(stack_id)s
), dirty AS (
    SELECT coalesce(d.name, r.name) AS name FROM d FULL JOIN r ON r.name = d.name
    WHERE d.name IS NULL OR r.name IS NULL OR r.unsettled OR r.built_digest IS DISTINCT FROM d.digest
        OR cardinality(r.requires) <> cardinality(d.requires)
    UNION
    SELECT r.name FROM r CROSS JOIN LATERAL unnest(r.requires, r.input_digests) AS x(id, digest)
    LEFT JOIN r q ON q.id = x.id
    WHERE {IS_CHANGED_INPUT}
    UNION
    SELECT unnest(%(names)s::text[])
), edge AS MATERIALIZED (
    SELECT d.name, x.required FROM d CROSS JOIN LATERAL unnest(d.requires) AS x(required)
), reached AS (
    SELECT name FROM dirty UNION SELECT e.name FROM reached JOIN edge e ON e.required = reached.name
)
SELECT name FROM reached LIMIT %(limit)s
"""
DESIRED: Final = """
SELECT name, id, digest, valid_from, body ->> 'type', body ->> 'runs_as', requires FROM resource_definition
WHERE stack_id = %(stack_id)s AND valid_to IS NULL AND name = ANY(%(names)s) ORDER BY id
"""
ROWS_NAMED: Final = f"{ROWS.strip()} AND name = ANY(%(names)s)"
ROWS_OF_IDS: Final = f"{ROWS.strip()} AND id = ANY(%(ids)s)"


class StoredDefinition(NamedTuple):
    """A definition in force, without its body."""

    id: int
    digest: bytes
    valid_from: int
    type: str  # as written
    runs_as: str | None  # the type that runs it; None: the same
    requires: frozenset[str]


def is_repair(db: Db, stack_id: int, traversal: int) -> bool:
    """Whether a traversal updates a stack to the revision that it has reached, and nothing else."""
    row = db.execute(IS_REPAIR, {"stack_id": stack_id, "traversal": traversal}).fetchone()
    return row is not None and bool(row[0])


def unsettled(db: Db, stack_id: int, names: Collection[str], types: Collection[str], limit: int) -> list[str]:
    """Return the names of at most `limit` resources: those to visit, and everything downstream of them.

    `names` and `types` have resources and types that are visited even if they are unchanged.
    """
    values = {"stack_id": stack_id, "names": list(names), "types": list(types), "limit": limit}
    with db.transaction():
        for setting in SCAN_SETTINGS:
            db.execute(f"SET LOCAL {setting} = on")
        db.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        return [row[0] for row in db.execute(UNSETTLED, values).fetchall()]


def definitions(db: Db, stack_id: int, names: Collection[str]) -> dict[str, StoredDefinition]:
    """Return the definitions in force of these resources by name, in the order in which they were written."""
    found = db.execute(DESIRED, {"stack_id": stack_id, "names": list(names)}).fetchall()
    return {
        name: StoredDefinition(id_, digest, since, type_, runs_as, frozenset(requires))
        for name, id_, digest, since, type_, runs_as, requires in found
    }


def rows(db: Db, stack_id: int, names: Collection[str]) -> list[Row]:
    """Return the rows of these resources, oldest first."""
    return _rows(db.execute(ROWS_NAMED, {"stack_id": stack_id, "names": list(names)}).fetchall())


def rows_of(db: Db, stack_id: int, ids: Collection[int]) -> list[Row]:
    """Return the rows with these ids, oldest first."""
    return _rows(db.execute(ROWS_OF_IDS, {"stack_id": stack_id, "ids": list(ids)}).fetchall())


def _rows(found: Iterable[TupleRow]) -> list[Row]:
    made = [Row(*row) for row in found]
    return sorted(made, key=lambda row: row.id)
