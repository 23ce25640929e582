"""Reads for the first picture of a large field: the states of its rows, without names and requirements.

A read costs as much as the rows of the tree, but a small part of a complete read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.pictures.field import FIRST_STATE, STATE, TreeStack, decoded
from orchestrator.store.stacks.stacks import StackRow

Db = Connection[TupleRow]

IS_LARGE: Final = """
SELECT count(*) > %(limit)s FROM (
    SELECT 1 FROM stack s JOIN resource r ON r.stack_id = s.id
    WHERE s.root_id = %(root_id)s AND s.depth >= %(depth)s AND s.deleted_at IS NULL
    LIMIT %(limit)s + 1) AS x
"""
# A plan writes dependents before their requirements, so the youngest rows have the lowest levels. A deposed
# row is left out, because nearly all of them have a replacement.
STATES: Final = f"""
SELECT string_agg(x.letter, '') FROM (
    SELECT chr({FIRST_STATE} + {STATE}) AS letter FROM resource r
    WHERE r.stack_id = ANY(%(stacks)s) AND NOT r.leftover ORDER BY r.id DESC) AS x
"""
GROUPS: Final = f"""
SELECT r.stack_id, r.type, {STATE}, count(*) FROM resource r
WHERE r.stack_id = ANY(%(stacks)s) AND NOT r.leftover GROUP BY 1, 2, 3
"""


def is_large(db: Db, stack: StackRow, limit: int) -> bool:
    """Whether the tree of a stack has more than `limit` resources; costs as much as `limit` rows of an index.
    A nested stack may count the resources of its siblings.
    """
    values = {"root_id": stack.root_id, "depth": stack.depth, "limit": limit}
    row = db.execute(IS_LARGE, values).fetchone()
    return row is not None and bool(row[0])


def states(db: Db, stacks: Sequence[TreeStack]) -> bytearray:
    """Return the state of each resource, those planned last first."""
    row = db.execute(STATES, {"stacks": [item.id for item in stacks]}, binary=True).fetchone()
    return decoded(row[0] if row is not None and row[0] is not None else "")


def groups(db: Db, stacks: Sequence[TreeStack]) -> list[tuple[int, str, int, int]]:
    """Return the number of resources by stack, type and state."""
    rows = db.execute(GROUPS, {"stacks": [item.id for item in stacks]}).fetchall()
    return [(row[0], row[1], row[2], row[3]) for row in rows]
