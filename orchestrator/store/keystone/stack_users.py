"""Stack users: a user for each signalled resource, and a project for each tree of stacks.

A user belongs to its resource, the project to the root stack. An object is removed once its owner is deleted,
the project after its last user. An object is not removed before its creation has timed out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.keystone.removal_queue import Db, RemovalQueue

# The first password stays: a process that dies before the response is followed by another process, which
# needs it.
INSERT: Final = """
INSERT INTO stack_user AS u (root_id, resource_id, name, sealed, due_at)
VALUES (%(root_id)s, %(resource_id)s, %(name)s, %(sealed)s,
    now() + make_interval(secs => %(seconds)s::float8))
ON CONFLICT (name) DO UPDATE
SET due_at = CASE WHEN u.state = 'making' THEN excluded.due_at ELSE u.due_at END
WHERE u.state <> 'going'
RETURNING u.id, u.keystone_id, u.sealed
"""
FIND_HELD: Final = """
SELECT u.keystone_id, u.name, u.sealed, p.keystone_id
FROM stack_user u JOIN stack_user p ON p.root_id = u.root_id AND p.resource_id IS NULL AND p.state = 'held'
WHERE u.resource_id = %(resource_id)s AND u.state = 'held'
"""
ROOT: Final = "SELECT uuid::text, project_id FROM stack WHERE id = %(root_id)s"
STORE_CREATED: Final = """
UPDATE stack_user SET keystone_id = %(keystone_id)s, state = 'held', due_at = NULL
WHERE id = %(id)s AND state <> 'going'
"""
SET_PROJECT: Final = (
    "UPDATE stack SET user_project_id = %(project_id)s"
    " WHERE id = %(stack_id)s AND user_project_id IS DISTINCT FROM %(project_id)s"
)

# Due at once; REMOVALS waits for the resource's row to be deleted. A row in `making` has a due time already.
RELEASE: Final = """
UPDATE stack_user SET due_at = now() WHERE resource_id = %(resource_id)s AND state = 'held' RETURNING id
"""

UNOWNED: Final = """CASE WHEN d.resource_id IS NULL
    THEN NOT EXISTS (SELECT 1 FROM stack s WHERE s.id = d.root_id AND s.deleted_at IS NULL)
    ELSE NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = d.resource_id) END"""
RELEASE_UNOWNED: Final = f"UPDATE stack_user d SET due_at = now() WHERE d.due_at IS NULL AND {UNOWNED}"


@dataclass(frozen=True, slots=True)
class RemovableUser:
    """A user or project to remove; its id is None if the response that created it was lost."""

    is_project: bool
    keystone_id: str | None
    name: str


REMOVALS: Final = RemovalQueue(
    "stack_user",
    f"""{UNOWNED} AND (d.resource_id IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM stack_user o WHERE o.root_id = d.root_id AND o.resource_id IS NOT NULL))""",
    "o.resource_id IS NULL, o.keystone_id, o.name",
    RemovableUser,
    # the project is due after its last user
    """
WITH gone AS (DELETE FROM {table} WHERE id = %(id)s AND state = 'going' RETURNING root_id, resource_id)
UPDATE {table} p SET due_at = now() FROM gone
WHERE gone.resource_id IS NOT NULL AND p.root_id = gone.root_id AND p.resource_id IS NULL AND p.state = 'held'
    AND NOT EXISTS (SELECT 1 FROM stack s WHERE s.id = p.root_id AND s.deleted_at IS NULL)
""",
)


@dataclass(frozen=True, slots=True)
class RecordedUser:
    """A recorded user or project: its id at Keystone once known, and the user's encrypted password."""

    id: int
    keystone_id: str | None
    sealed: bytes


@dataclass(frozen=True, slots=True)
class HeldUser:
    """An existing user: id and name at Keystone, the encrypted password, and the project's id at Keystone."""

    keystone_id: str
    name: str
    sealed: bytes
    project_id: str


def held(db: Db, resource_id: int) -> HeldUser | None:
    """Return the user of a resource, None if it does not exist yet."""
    row = db.execute(FIND_HELD, {"resource_id": resource_id}).fetchone()
    return None if row is None else HeldUser(row[0], row[1], bytes(row[2]), row[3])


def insert(
    db: Db, root_id: int, resource_id: int | None, name: str, sealed: bytes, seconds: float
) -> RecordedUser | None:
    """Record a user (a project if `resource_id` is None) before Keystone is asked to create it.

    It is not removed within `seconds`, even if its owner is deleted. Returns None if it is being removed.
    """
    values = {
        "root_id": root_id,
        "resource_id": resource_id,
        "name": name,
        "sealed": sealed,
        "seconds": seconds,
    }
    row = db.execute(INSERT, values).fetchone()
    return None if row is None else RecordedUser(row[0], row[1], bytes(row[2]))


def root_of(db: Db, root_id: int) -> tuple[str, str]:
    """Return a root stack's uuid and project."""
    row = db.execute(ROOT, {"root_id": root_id}).fetchone()
    assert row is not None
    return row[0], row[1]


def store_created(db: Db, id_: int, keystone_id: str) -> bool:
    """Store the id that Keystone returned; return False if the object is being removed."""
    return db.execute(STORE_CREATED, {"keystone_id": keystone_id, "id": id_}).rowcount == 1


def set_project(db: Db, stack_id: int, keystone_id: str) -> None:
    """Store the project of a stack's users."""
    db.execute(SET_PROJECT, {"project_id": keystone_id, "stack_id": stack_id})


def release(db: Db, resource_id: int) -> None:
    """Have a user removed as soon as its resource is deleted."""
    fetch_prepared(db, RELEASE, {"resource_id": str(resource_id)})


def release_unowned(db: Db) -> None:
    """Have users and projects removed whose owner was deleted without a release."""
    db.execute(RELEASE_UNOWNED)
