"""The root stacks of a project: their names and their number."""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

COUNT_STACKS: Final = """
SELECT count(*) FROM stack WHERE project_id = %(project_id)s AND deleted_at IS NULL AND owner_id IS NULL
"""
IS_NAME_TAKEN: Final = """
SELECT EXISTS (
    SELECT 1 FROM stack
    WHERE project_id = %(project_id)s AND name = %(name)s AND deleted_at IS NULL AND owner_id IS NULL)
"""


def count_stacks(db: Connection[TupleRow], project_id: str) -> int:
    """Return the number of root stacks of a project."""
    row = db.execute(COUNT_STACKS, {"project_id": project_id}).fetchone()
    assert row is not None
    number: int = row[0]
    return number


def is_taken(db: Connection[TupleRow], project_id: str, name: str) -> bool:
    """Whether a live root stack of the project has this name."""
    row = db.execute(IS_NAME_TAKEN, {"project_id": project_id, "name": name}).fetchone()
    return row is not None and bool(row[0])
