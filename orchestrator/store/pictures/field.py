"""Rows of a field: the stacks of a tree, a byte per resource, and the edges that give its order.

A read costs as much as the rows of the tree. All of its statements see the same snapshot.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
SELECT id, owner_id, parent_resource_id, name, uuid::text FROM stack
WHERE root_id = %(root_id)s AND depth > %(depth)s AND deleted_at IS NULL ORDER BY depth, id
"""
ROWS: Final = f"""
SELECT DISTINCT ON (r.stack_id, r.name) r.stack_id, r.id * 256 + {STATE}, r.type
FROM resource r WHERE r.stack_id = ANY(%(stacks)s)
ORDER BY r.stack_id, r.name, r.leftover, r.id DESC
"""
DRIFTED: Final = f"""
SELECT r.id FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
WHERE v.root_id = %(root_id)s AND v.confirmed AND {check_in("v.verdict", DRIFT_VERDICTS)} AND {CURRENT}
"""

# Names are compared by 64-bit hashes: a join of a million names would take longer than all other reads. In
# the unlikely case of equal hashes, a resource is drawn at another level.
KEYS: Final = """
SELECT hashtextextended(x.name, x.stack_id) FROM (
    SELECT DISTINCT stack_id, name FROM resource WHERE stack_id = ANY(%(stacks)s)
    ORDER BY stack_id, name) AS x
"""
# Of the latest definition of each name: that of the desired revision, or the last one of a resource that the
# revision removes.
EDGES: Final = """
SELECT hashtextextended(d.name, d.stack_id), hashtextextended(x.name, d.stack_id)
FROM resource_definition d CROSS JOIN LATERAL unnest(d.requires) AS x(name)
WHERE d.stack_id = ANY(%(stacks)s) AND (d.valid_to IS NULL OR NOT EXISTS (
    SELECT 1 FROM resource_definition n
    WHERE n.stack_id = d.stack_id AND n.name = d.name AND n.valid_from > d.valid_from))
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
    owner_id: int | None
    parent_resource_id: int | None
    name: str
    uuid: str


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
    types: array[int]  # positions in `type_names`
    type_names: tuple[str, ...]
    drifted: frozenset[int]


@contextmanager
def snapshot(database: Database) -> Iterator[Db]:
    """Open a connection whose statements see the same snapshot."""
    with database.connect(replan=True) as db, db.transaction():
        db.execute(SNAPSHOT)
        yield db


def tree(db: Db, stack: StackRow) -> tuple[TreeStack, ...]:
    """Return a stack and the stacks below it, parents first."""
    rows = db.execute(TREE, {"root_id": stack.root_id, "depth": stack.depth}).fetchall()
    result, known = [TreeStack(stack.id, None, None, stack.name, str(stack.uuid))], {stack.id}
    for row in map(TreeStack._make, rows):
        if row.owner_id in known:
            known.add(row.id)
            result.append(row)
    return tuple(result)


def read(db: Db, stack: StackRow) -> FieldRows:
    """Return the rows of the field of a stack."""
    stacks = tree(db, stack)
    ids, states, types, sizes = array("q"), bytearray(), array("I"), dict[int, int]()
    numbers: dict[str, int] = {}
    for rows in slices(db, ROWS, {"stacks": [item.id for item in stacks]}):
        ids.extend([packed >> 8 for _, packed, _ in rows])
        states.extend([packed & 255 for _, packed, _ in rows])
        types.extend([numbers.setdefault(type_, len(numbers)) for _, _, type_ in rows])
        for stack_id, number in Counter(stack_id for stack_id, _, _ in rows).items():
            sizes[stack_id] = sizes.get(stack_id, 0) + number
    return FieldRows(stacks, tuple(sizes.items()), ids, states, types, tuple(numbers), drifted(db, stack))


def drifted(db: Db, stack: StackRow) -> frozenset[int]:
    """Return the ids of all resources in the tree of a stack that are not in step with their objects."""
    return frozenset(row[0] for row in db.execute(DRIFTED, {"root_id": stack.root_id}).fetchall())


def edges(db: Db, stacks: Sequence[TreeStack]) -> array[int]:
    """Return the edges between the rows of a field, as engine/pictures/levels.py takes them."""
    values = {"stacks": [item.id for item in stacks]}
    places: dict[int, int] = {}
    for rows in slices(db, KEYS, values):
        first = len(places)
        places.update((row[0], first + nth) for nth, row in enumerate(rows))
    result = array("q")
    for rows in slices(db, EDGES, values):
        found = ((places.get(dependent), places.get(required)) for dependent, required in rows)
        result.extend([a << 32 | b for a, b in found if a is not None and b is not None])
    return result


def slices(db: Db, query: str, values: Mapping[str, object]) -> Iterator[list[TupleRow]]:
    """Yield the rows of a query in slices."""
    with db.cursor(name="slices") as cursor:
        cursor.itersize = FETCH_SIZE
        cursor.execute(query, values, binary=True)
        while rows := cursor.fetchmany(FETCH_SIZE):
            yield rows


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
