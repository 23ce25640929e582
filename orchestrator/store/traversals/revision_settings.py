"""The settings of a stack that an update accepts: a part of its revision, which return with it.

A revision without settings leaves the stack's: an older version has accepted it, or the parent of a
child.
"""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

Db = Connection[TupleRow]

NAMES: Final = ("disable_rollback", "keep_going", "resume", "tags", "timeout_mins")

APPLY: Final = f"""
UPDATE stack SET ({", ".join(NAMES)}) = (
    SELECT {", ".join(NAMES)} FROM jsonb_to_record(v.settings) AS x(disable_rollback boolean,
        keep_going boolean, resume boolean, tags text[], timeout_mins integer))
FROM revision v
WHERE v.id = %(revision_id)s AND v.settings IS NOT NULL AND stack.id = v.stack_id
"""
KEEP_ROLLBACK: Final = """
UPDATE revision v SET settings = v.settings || jsonb_build_object('disable_rollback', s.disable_rollback)
FROM stack s WHERE v.id = %(revision_id)s AND s.id = v.stack_id
"""


def apply(db: Db, revision_id: int) -> None:
    """Give the stack the settings of its revision."""
    db.execute(APPLY, {"revision_id": revision_id})


def apply_restored(db: Db, revision_id: int) -> None:
    """Give the stack the settings of the new revision of a restore, except for `disable_rollback`: a restore
    that fails is rolled back if the stack has rollback enabled now.
    """
    db.execute(KEEP_ROLLBACK, {"revision_id": revision_id})
    apply(db, revision_id)
