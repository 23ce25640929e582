"""Rows of a field: the stacks of a tree, a byte per resource, and the edges that give its order.

A read costs as much as the rows of the tree. All of its statements see the same snapshot.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.observation.verdicts import DRIFT as DRIFT_VERDICTS
from orchestrator.engine.pictures.field import STATES
from orchestrator.store.connections.database import Database
from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

FETCH_SIZE: Final = 20_000
_CODE: Final = {name: code for code, name in enumerate(STATES)}

# The state of a resource as its byte in a field.
STATE: Final = f"""CASE
    WHEN r.action = 'DELETE' AND r.status = 'COMPLETE' THEN {_CODE["deleted"]}
    WHEN r.status = 'FAILED' THEN {_CODE["failed"]}
    WHEN r.leftover OR r.action = 'DELETE' THEN {_CODE["deleting"]}
    WHEN r.action = 'INIT' AND r.op IS NULL THEN {_CODE["planned"]}
    WHEN r.action = 'INIT' OR r.status = 'IN_PROGRESS' THEN {_CODE["in_progress"]}
    WHEN r.suspended THEN {_CODE["suspended"]}
    ELSE {_CODE["complete"]} END"""

TREE: Final = """
SELECT id, owner_id, parent_resource_id FROM stack
WHERE root_id = %(root_id)s AND depth > %(depth)s AND deleted_at IS NULL ORDER BY depth, id
"""
ROWS: Final = f"""
SELECT DISTINCT ON (r.stack_id, r.name) r.stack_id, r.id * 256 + {STATE}
FROM resource r WHERE r.stack_id = ANY(%(stacks)s)
ORDER BY r.stack_id, r.name, r.leftover, r.id DESC
"""
DRIFTED: Final = f"""
SELECT r.id FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
WHERE v.root_id = %(root_id)s AND v.confirmed AND {check_in("v.verdict", DRIFT_VERDICTS)} AND {CURRENT}
"""

# The latest definition of each name, which is that of the desired revision, or the last one of a resource
# that the revision removes.
EDGES: Final = """
WITH node AS MATERIALIZED (
    SELECT stack_id, name, row_number() OVER (ORDER BY stack_id, name) - 1 AS place
    FROM (SELECT DISTINCT stack_id, name FROM resource WHERE stack_id = ANY(%(stacks)s)) AS x
), definition AS (
    SELECT DISTINCT ON (d.stack_id, d.name) d.stack_id, d.name, d.requires
    FROM resource_definition d WHERE d.stack_id = ANY(%(stacks)s)
    ORDER BY d.stack_id, d.name, d.valid_from DESC
)
SELECT dependent.place << 32 | required.place
FROM definition d CROSS JOIN LATERAL unnest(d.requires) AS x(name)
JOIN node dependent ON dependent.stack_id = d.stack_id AND dependent.name = d.name
JOIN node required ON required.stack_id = d.stack_id AND required.name = x.name
"""
CHANGED: Final = f"""
SELECT DISTINCT ON (r.stack_id, r.name) r.stack_id, r.name, r.id, {STATE}, EXISTS (
    SELECT 1 FROM resource_verdict v WHERE v.resource_id = r.id AND v.confirmed
        AND {check_in("v.verdict", DRIFT_VERDICTS)} AND {CURRENT})
FROM unnest(%(stacks)s::bigint[], %(names)s::text[]) AS x(stack_id, name)
JOIN resource r ON r.stack_id = x.stack_id AND r.name = x.name
ORDER BY r.stack_id, r.name, r.leftover, r.id DESC
"""
NAMES: Final = """
SELECT r.id, r.name, r.type, r.action, r.status, s.name, s.uuid
FROM resource r JOIN stack s ON s.id = r.stack_id WHERE r.id = ANY(%(ids)s)
"""
SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"


class TreeStack(NamedTuple):
    """A stack of a tree, with the resource that owns it."""

    id: int
    parent_resource_id: int | None


class NamedResource(NamedTuple):
    """The name of a resource in a field."""

    id: int
    name: str
    type: str
    action: str
    status: str
    stack_name: str
    stack_uuid: str


@dataclass(frozen=True, slots=True)
class FieldRows:
    """The rows of a field in the order of stack and name."""

    stacks: tuple[TreeStack, ...]  # parents first
    sizes: tuple[tuple[int, int], ...]  # stacks by id, with their number of resources
    ids: array[int]
    states: bytearray
    drifted: frozenset[int]


@contextmanager
def snapshot(database: Database) -> Iterator[Db]:
    """Lend a connection whose statements see the same snapshot."""
    with database.borrow(hot=False) as db, db.transaction():
        db.execute(SNAPSHOT)
        yield db


def tree(db: Db, stack: StackRow) -> tuple[TreeStack, ...]:
    """Return a stack and the stacks below it, parents first."""
    rows = db.execute(TREE, {"root_id": stack.root_id, "depth": stack.depth}).fetchall()
    result, known = [TreeStack(stack.id, None)], {stack.id}
    for id_, owner_id, parent_resource_id in rows:
        if owner_id in known:
            known.add(id_)
            result.append(TreeStack(id_, parent_resource_id))
    return tuple(result)


def read(db: Db, stack: StackRow) -> FieldRows:
    """Return the rows of the field of a stack."""
    stacks = tree(db, stack)
    ids, states, sizes = array("q"), bytearray(), dict[int, int]()
    with db.cursor(name="field") as cursor:
        cursor.itersize = FETCH_SIZE
        cursor.execute(ROWS, {"stacks": [item.id for item in stacks]}, binary=True)
        while rows := cursor.fetchmany(FETCH_SIZE):
            ids.extend([packed >> 8 for _, packed in rows])
            states.extend([packed & 255 for _, packed in rows])
            for stack_id, _ in rows:
                sizes[stack_id] = sizes.get(stack_id, 0) + 1
    return FieldRows(stacks, tuple(sizes.items()), ids, states, drifted(db, stack))


def drifted(db: Db, stack: StackRow) -> frozenset[int]:
    """Return the ids of all resources in the tree of a stack that are not in step with their objects."""
    return frozenset(row[0] for row in db.execute(DRIFTED, {"root_id": stack.root_id}).fetchall())


def edges(db: Db, stacks: Sequence[TreeStack]) -> array[int]:
    """Return the edges between the rows of a field, as engine/pictures/levels.py takes them."""
    result = array("q")
    with db.cursor(name="edges") as cursor:
        cursor.itersize = FETCH_SIZE
        cursor.execute(EDGES, {"stacks": [item.id for item in stacks]}, binary=True)
        while rows := cursor.fetchmany(FETCH_SIZE):
            result.extend([row[0] for row in rows])
    return result


def changed(db: Db, resources: Iterable[tuple[int, str]]) -> list[tuple[int, str, int, int, bool]]:
    """Return resources, each named by its stack and its name, with their id, state and drift."""
    pairs = list(resources)
    values = {"stacks": [stack_id for stack_id, _ in pairs], "names": [name for _, name in pairs]}
    return [(row[0], row[1], row[2], row[3], row[4]) for row in db.execute(CHANGED, values).fetchall()]


def names(database: Database, ids: Sequence[int]) -> dict[int, NamedResource]:
    """Return the names of resources by id."""
    with database.borrow(hot=False) as db:
        rows = db.execute(NAMES, {"ids": list(ids)}).fetchall()
    return {row[0]: NamedResource._make((*row[:6], str(row[6]))) for row in rows}
