"""Rights that users gave us at Keystone: noted before they are asked for, forgotten when they are gone.

A stack holds one, and its children with it. A stack that is deleted lets go of it in the statement that says
so (`traversals.COMPLETE`); who removes it then claims it by moving `due_at` on.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.errors import Unavailable
from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

NOTE: Final = """
INSERT INTO credential (stack_uuid, stack_id, project_id, user_id, sealed, due_at)
VALUES (%(stack_uuid)s, %(stack_id)s, %(project_id)s, %(user_id)s, %(sealed)s,
    now() + make_interval(secs => %(seconds)s::float8))
RETURNING id
"""
MADE: Final = "UPDATE credential SET sealed = %(sealed)s WHERE id = %(id)s AND state = 'making'"
HELD: Final = (
    "SELECT id, user_id, project_id, sealed FROM credential WHERE stack_id = %(stack_id)s AND state = 'held'"
)
LET_GO: Final = """
UPDATE credential SET state = 'going', due_at = now() WHERE stack_id = %s AND state = 'held' AND id <> %s
"""
TAKE: Final = """
UPDATE credential SET state = 'held', stack_id = %s, due_at = NULL WHERE id = %s AND state = 'making'
"""
ABANDON: Final = "UPDATE credential SET state = 'going', due_at = now() WHERE id = %s AND state = 'making'"

# One at a time, by one process. Not while a thing of the stack's is still to be removed with it.
CLAIM: Final = """
UPDATE credential c
SET state = 'going', tries = c.tries + 1, due_at = now() + make_interval(secs => %(seconds)s::float8)
FROM (
    SELECT d.id FROM credential d
    WHERE d.due_at <= now() AND NOT EXISTS (
        SELECT 1 FROM stray y JOIN stack k ON k.id = y.stack_id
        WHERE k.root_id = d.stack_id AND y.handled_at IS NULL)
    ORDER BY d.due_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS next
WHERE c.id = next.id
RETURNING c.id, c.sealed, c.tries
"""
FORGET: Final = "DELETE FROM credential WHERE id = %s AND state = 'going'"
PUT_OFF: Final = """
UPDATE credential SET due_at = now() + make_interval(secs => %s::float8), last_error = %s
WHERE id = %s AND state = 'going'
"""


@dataclass(frozen=True, slots=True)
class Held:
    """What a stack holds: whose right it is, where, and what it is, encrypted."""

    id: int
    user_id: str
    project_id: str
    sealed: bytes


@dataclass(frozen=True, slots=True)
class Going:
    """What is to be removed, for the `tries`th time."""

    id: int
    sealed: bytes
    tries: int


def note(
    db: Db,
    root: uuid.UUID,
    stack_id: int | None,
    project_id: str,
    user_id: str,
    sealed: bytes,
    seconds: float,
) -> int:
    """Note that a right is about to be asked for; return its id. In so many `seconds` it is removed again,
    unless a stack holds it by then.
    """
    values = {
        "stack_uuid": root,
        "stack_id": stack_id,
        "project_id": project_id,
        "user_id": user_id,
        "sealed": sealed,
        "seconds": seconds,
    }
    row = db.execute(NOTE, values).fetchone()
    assert row is not None
    return int(row[0])


def made(db: Db, id_: int, sealed: bytes) -> None:
    """Note what was made."""
    db.execute(MADE, {"id": id_, "sealed": sealed})


def take(db: Db, id_: int, stack_id: int) -> None:
    """Let a stack hold a right, in place of what it held; run in the transaction that writes the stack.

    Raises:
        Unavailable: it took so long that the right is being removed again.
    """
    db.execute(LET_GO, (stack_id, id_))
    if db.execute(TAKE, (stack_id, id_)).rowcount == 0:
        raise Unavailable("The request took too long. Please try again.")


def abandon(db: Db, id_: int) -> None:
    """Have a right removed that no stack holds."""
    db.execute(ABANDON, (id_,))


def held(db: Db, root_id: int) -> Held | None:
    """Return what a root stack holds."""
    rows: Any = fetch_prepared(db, HELD, {"stack_id": root_id})
    return Held(rows[0][0], rows[0][1], rows[0][2], bytes(rows[0][3])) if rows else None


def claim(db: Db, seconds: float) -> Going | None:
    """Take one that is to be removed now; for so many `seconds` it is nobody else's."""
    row = db.execute(CLAIM, {"seconds": seconds}).fetchone()
    return None if row is None else Going(row[0], bytes(row[1]), row[2])


def delete_row(db: Db, id_: int) -> None:
    """Forget one that is gone."""
    db.execute(FORGET, (id_,))


def postpone(db: Db, id_: int, seconds: float, error: str) -> None:
    """Have one removed later, that could not be removed now."""
    db.execute(PUT_OFF, (seconds, error, id_))
