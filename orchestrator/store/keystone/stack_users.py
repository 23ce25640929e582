"""What stacks have at Keystone: noted before it is asked for, forgotten when it is gone.

A user is its resource's and a project its root stack's: when that is gone, it is removed, and the project
after its last user. What was asked for is left alone until the answer cannot come any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

Db = Connection[TupleRow]

# The password stays what it was first: whoever dies between asking and being answered is followed by another.
NOTE: Final = """
INSERT INTO stack_user AS u (root_id, resource_id, name, sealed, due_at)
VALUES (%(root_id)s, %(resource_id)s, %(name)s, %(sealed)s,
    now() + make_interval(secs => %(seconds)s::float8))
ON CONFLICT (name) DO UPDATE
SET due_at = CASE WHEN u.state = 'making' THEN excluded.due_at ELSE u.due_at END
WHERE u.state <> 'going'
RETURNING u.id, u.keystone_id, u.sealed
"""
HELD: Final = """
SELECT u.keystone_id, u.name, u.sealed, p.keystone_id
FROM stack_user u JOIN stack_user p ON p.root_id = u.root_id AND p.resource_id IS NULL AND p.state = 'held'
WHERE u.resource_id = %s AND u.state = 'held'
"""
ROOT: Final = "SELECT uuid::text, project_id FROM stack WHERE id = %s"
MADE: Final = """
UPDATE stack_user SET keystone_id = %s, state = 'held', due_at = NULL WHERE id = %s AND state <> 'going'
"""
OF_STACK: Final = (
    "UPDATE stack SET user_project_id = %s WHERE id = %s AND user_project_id IS DISTINCT FROM %s"
)

# It goes when its resource does, which is soon; while an answer may still come it has a time already.
RELEASE: Final = "UPDATE stack_user SET due_at = now() WHERE resource_id = %s AND state = 'held'"
ABANDONED: Final = """
UPDATE stack_user u SET due_at = now()
WHERE u.due_at IS NULL AND CASE WHEN u.resource_id IS NULL
    THEN NOT EXISTS (SELECT 1 FROM stack s WHERE s.id = u.root_id AND s.deleted_at IS NULL)
    ELSE NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = u.resource_id) END
"""

# One at a time, by one process.
CLAIM: Final = """
UPDATE stack_user u
SET state = 'going', tries = u.tries + 1, due_at = now() + make_interval(secs => %(seconds)s::float8)
FROM (
    SELECT g.id FROM stack_user g
    WHERE g.due_at <= now() AND CASE WHEN g.resource_id IS NULL
        THEN NOT EXISTS (SELECT 1 FROM stack s WHERE s.id = g.root_id AND s.deleted_at IS NULL)
            AND NOT EXISTS (
                SELECT 1 FROM stack_user o WHERE o.root_id = g.root_id AND o.resource_id IS NOT NULL)
        ELSE NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = g.resource_id) END
    ORDER BY g.due_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS next
WHERE u.id = next.id
RETURNING u.id, u.resource_id IS NULL, u.keystone_id, u.name, u.tries
"""
FORGET: Final = """
WITH gone AS (DELETE FROM stack_user WHERE id = %s AND state = 'going' RETURNING root_id, resource_id)
UPDATE stack_user p SET due_at = now() FROM gone
WHERE gone.resource_id IS NOT NULL AND p.root_id = gone.root_id AND p.resource_id IS NULL AND p.state = 'held'
    AND NOT EXISTS (SELECT 1 FROM stack s WHERE s.id = p.root_id AND s.deleted_at IS NULL)
"""
PUT_OFF: Final = """
UPDATE stack_user SET due_at = now() + make_interval(secs => %s::float8), last_error = %s
WHERE id = %s AND state = 'going'
"""


@dataclass(frozen=True, slots=True)
class Noted:
    """What is to be there: its id at Keystone once that is known, and the password it got, encrypted."""

    id: int
    keystone_id: str | None
    sealed: bytes


@dataclass(frozen=True, slots=True)
class Held:
    """A user who is there: id and name at Keystone, the password, encrypted, and the project there."""

    keystone_id: str
    name: str
    sealed: bytes
    project_id: str


@dataclass(frozen=True, slots=True)
class Going:
    """What is to be removed, for the `tries`th time."""

    id: int
    is_project: bool
    keystone_id: str | None
    name: str
    tries: int


def held(db: Db, resource_id: int) -> Held | None:
    """Return the user of a resource, None when none is there for all that is known."""
    row = db.execute(HELD, (resource_id,)).fetchone()
    return None if row is None else Held(row[0], row[1], bytes(row[2]), row[3])


def note(
    db: Db, root_id: int, resource_id: int | None, name: str, sealed: bytes, seconds: float
) -> Noted | None:
    """Note that a user, or without a resource a project, is about to be asked for; None when it is going.

    For so many `seconds` nobody removes it, whatever becomes of its resource.
    """
    values = {
        "root_id": root_id,
        "resource_id": resource_id,
        "name": name,
        "sealed": sealed,
        "seconds": seconds,
    }
    row = db.execute(NOTE, values).fetchone()
    return None if row is None else Noted(row[0], row[1], bytes(row[2]))


def root_of(db: Db, root_id: int) -> tuple[str, str]:
    """Return a root stack's uuid and project."""
    row = db.execute(ROOT, (root_id,)).fetchone()
    assert row is not None
    return row[0], row[1]


def made(db: Db, id_: int, keystone_id: str) -> bool:
    """Note what was made; False when it is being removed meanwhile."""
    return db.execute(MADE, (keystone_id, id_)).rowcount == 1


def in_project(db: Db, stack_id: int, keystone_id: str) -> None:
    """Let a stack's users be in a project."""
    db.execute(OF_STACK, (keystone_id, stack_id, keystone_id))


def release(db: Db, resource_id: int) -> None:
    """Have a user removed as soon as its resource is gone."""
    db.execute(RELEASE, (resource_id,))


def abandoned(db: Db) -> None:
    """Have removed what is there and nobody's."""
    db.execute(ABANDONED)


def claim(db: Db, seconds: float) -> Going | None:
    """Take one that is to be removed now; for so many `seconds` it is nobody else's."""
    row = db.execute(CLAIM, {"seconds": seconds}).fetchone()
    return None if row is None else Going(*row)


def delete_row(db: Db, id_: int) -> None:
    """Forget one that is gone."""
    db.execute(FORGET, (id_,))


def postpone(db: Db, id_: int, seconds: float, error: str) -> None:
    """Have one removed later, that could not be removed now."""
    db.execute(PUT_OFF, (seconds, error, id_))
