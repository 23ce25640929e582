"""Rows of a field: the stacks of a tree, a byte per resource, and the edges that give its order.

A read costs as much as the rows of the tree. All of its statements see the same snapshot.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress, islice
from operator import eq
from typing import Final, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.observation.drift import DRIFTED as DRIFTED_STATES
from orchestrator.engine.pictures.field import STATES
from orchestrator.engine.pictures.levels import SEPARATOR
from orchestrator.store.connections.database import Database
from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

FIRST_STATE: Final = ord("A")  # letters for the states, because a text is cheaper than an array of bytes
DEPOSED: Final = 32  # added to the letter of a deposed row
_CODE: Final = {name: code for code, name in enumerate(STATES)}
_STATES: Final = bytes(max(0, byte - FIRST_STATE) % DEPOSED for byte in range(256))

# The state of a resource as its byte in a field.
STATE: Final = f"""CASE
    WHEN r.action = 'DELETE' AND r.status = 'COMPLETE' THEN {_CODE["deleted"]}
    WHEN r.status = 'FAILED' THEN {_CODE["failed"]}
    WHEN r.deposed OR r.action = 'DELETE' THEN {_CODE["deleting"]}
    WHEN r.action = 'INIT' AND r.op IS NULL THEN {_CODE["planned"]}
    WHEN r.action = 'INIT' OR r.status = 'IN_PROGRESS' THEN {_CODE["in_progress"]}
    WHEN r.suspended THEN {_CODE["suspended"]}
    ELSE {_CODE["complete"]} END"""

TREE: Final = """
SELECT id, owner_id, parent_resource_id, name, uuid::text FROM stack
WHERE root_id = %(root_id)s AND depth > %(depth)s AND deleted_at IS NULL ORDER BY depth, id
"""

# The arrays of a stack in a row: a row per resource would cost more than all of the rest. Types are 64-bit
# hashes. The order follows the index; replaced incarnations are left out afterwards.
ROWS: Final = f"""
SELECT x.stack_id, string_agg(int8send(x.id), ''), string_agg(x.letter, ''), json_agg(x.name)::text,
    string_agg(int8send(hashtextextended(x.type, 0)), '')
FROM (
    SELECT r.stack_id, r.id, r.name, r.type,
        chr({FIRST_STATE} + {STATE} + CASE WHEN r.deposed THEN {DEPOSED} ELSE 0 END) AS letter
    FROM resource r WHERE r.stack_id = ANY(%(stacks)s) ORDER BY r.stack_id, r.name) AS x
GROUP BY x.stack_id ORDER BY x.stack_id
"""
TYPES: Final = """
SELECT DISTINCT hashtextextended(type, 0), type FROM resource WHERE stack_id = ANY(%(stacks)s)
"""
DRIFTED: Final = f"""
SELECT r.id FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
WHERE v.root_id = %(root_id)s AND v.confirmed AND {check_in("v.verdict", DRIFTED_STATES)} AND {CURRENT}
"""

# Of the latest definition of each name: the desired revision's, or the last of a resource that the
# revision removes.
REQUIREMENTS: Final = f"""
SELECT d.stack_id, json_agg(d.name)::text, json_agg(array_to_string(d.requires, '{SEPARATOR}'))::text
FROM resource_definition d
WHERE d.stack_id = ANY(%(stacks)s) AND (d.valid_to IS NULL OR NOT EXISTS (
    SELECT 1 FROM resource_definition n
    WHERE n.stack_id = d.stack_id AND n.name = d.name AND n.valid_from > d.valid_from))
GROUP BY d.stack_id
"""
CHANGED: Final = f"""
SELECT DISTINCT ON (r.stack_id, r.name) r.stack_id, r.name, r.id, {STATE}
FROM unnest(%(stacks)s::bigint[], %(names)s::text[]) AS x(stack_id, name)
JOIN resource r ON r.stack_id = x.stack_id AND r.name = x.name
ORDER BY r.stack_id, r.name, r.deposed, r.id DESC
"""
NAMES: Final = """
SELECT r.id, r.name, r.type, r.action, r.status, s.name, s.uuid
FROM resource r JOIN stack s ON s.id = r.stack_id WHERE r.id = ANY(%(ids)s)
"""
# Scans begin at the start of a table, because the rows of a plan are read fastest in their order. Groups by
# name have a row per resource, and should not be written to disk. Compiling a statement takes longer than a
# first picture.
SNAPSHOT: Final = """
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL synchronize_seqscans = off;
SET LOCAL work_mem = '64MB';
SET LOCAL jit = off
"""


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
    names: tuple[str, ...]  # of each stack with resources: a list in JSON, because that needs least memory
    types: array[int]  # hashes
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
    ids, states, types = array("q"), bytearray(), array("q")
    sizes, names = [], []
    values = {"stacks": [item.id for item in stacks]}
    for stack_id, *columns in db.execute(ROWS, values, binary=True):
        its_ids, letters, its_types = numbers(columns[0]), columns[1].encode(), numbers(columns[3])
        its_names = orjson.loads(columns[2])
        if any(map(eq, its_names, islice(its_names, 1, None))):
            kept = current(its_names, its_ids, letters)
            its_ids, its_types = (array("q", compress(each, kept)) for each in (its_ids, its_types))
            letters = bytes(compress(letters, kept))
            columns[2] = orjson.dumps(list(compress(its_names, kept))).decode()
        ids += its_ids
        states += letters.translate(_STATES)
        types += its_types
        names.append(columns[2])
        sizes.append((stack_id, len(its_ids)))
    return FieldRows(stacks, tuple(sizes), ids, states, tuple(names), types, drifted(db, stack))


def current(names: Sequence[str], ids: Sequence[int], letters: Sequence[int]) -> list[bool]:
    """Return which rows are the current incarnations: the youngest of each name that is not deposed, or the
    youngest of all.
    """
    ranks = [(letter - FIRST_STATE < DEPOSED, id_) for letter, id_ in zip(letters, ids, strict=True)]
    best: dict[str, tuple[bool, int]] = {}
    for name, rank in zip(names, ranks, strict=True):
        best[name] = max(best.get(name, rank), rank)
    return [best[name] == rank for name, rank in zip(names, ranks, strict=True)]


def type_names(db: Db, stacks: Sequence[TreeStack]) -> dict[int, str]:
    """Return the types of the resources of stacks by their hashes."""
    values = {"stacks": [item.id for item in stacks]}
    return {row[0]: row[1] for row in db.execute(TYPES, values).fetchall()}


def drifted(db: Db, stack: StackRow) -> frozenset[int]:
    """Return the ids of all resources in the tree of a stack that are not in sync with their objects."""
    return frozenset(row[0] for row in db.execute(DRIFTED, {"root_id": stack.root_id}).fetchall())


def requirements(db: Db, stacks: Sequence[TreeStack]) -> dict[int, tuple[str, str]]:
    """Return the requirements of the resources of each stack: names, and the requirements of each
    (engine/pictures/levels.py), as lists in JSON.
    """
    values = {"stacks": [item.id for item in stacks]}
    return {row[0]: (row[1], row[2]) for row in db.execute(REQUIREMENTS, values, binary=True)}


def numbers(data: bytes) -> array[int]:
    """Return numbers of 64 bits that PostgreSQL has sent, the most significant byte first."""
    result = array("q", data)
    if sys.byteorder == "little":
        result.byteswap()
    return result


def changed(db: Db, resources: Iterable[tuple[int, str]]) -> list[tuple[int, str, int, int]]:
    """Return resources, each named by its stack and its name, with their id and state."""
    pairs = list(resources)
    values = {"stacks": [stack_id for stack_id, _ in pairs], "names": [name for _, name in pairs]}
    return [(row[0], row[1], row[2], row[3]) for row in db.execute(CHANGED, values).fetchall()]


def names(database: Database, ids: Sequence[int]) -> dict[int, NamedResource]:
    """Return the names of resources by id."""
    with database.borrow(hot=False) as db:
        rows = db.execute(NAMES, {"ids": list(ids)}).fetchall()
    return {row[0]: NamedResource._make((*row[:6], str(row[6]))) for row in rows}
