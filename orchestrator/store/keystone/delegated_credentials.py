"""Delegated credentials of root stacks; their children use them too (operations/adr/0026).

The content of a revision runs with the credential of its author, `revision.credential_id`. The traversal to a
revision gives it to the stack, `stack.credential_id`, and the visit that starts the update of a child gives
it to the child. The completion of the root gives it to children that the update has not changed. An operation
that a caller has requested may have its own credential: a DELETE or CHECK
(`stack.operation_credential_id`, which the next traversal clears), or an observation pass. Credentials that
none of them refers to are released by the search of the reaper. The statement that completes the delete of a
stack releases all of them (`traversals/completion.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.errors import Unavailable
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.keystone.removal_queue import Db, RemovalQueue

LATE_SECONDS: Final = 86_400.0  # longest time for late objects, in which a deleted stack has its credential

INSERT: Final = """
INSERT INTO credential (stack_uuid, stack_id, project_id, user_id, roles, sealed, due_at)
VALUES (%(stack_uuid)s, %(stack_id)s, %(project_id)s, %(user_id)s, %(roles)s, %(sealed)s,
    now() + make_interval(secs => %(seconds)s::float8))
RETURNING id
"""
STORE_CREATED: Final = "UPDATE credential SET sealed = %(sealed)s WHERE id = %(id)s AND state = 'making'"
_COLUMNS: Final = "c.id, c.user_id, c.project_id, c.roles, c.sealed"


# The desired revision of the root is of an older version: the tree runs with the credential of the root.
_OF_OLD_VERSION: Final = "w.author IS NULL AND w.credential_id IS NULL"
FIND_IN_FORCE: Final = f"""
SELECT {_COLUMNS}
FROM stack s JOIN stack t ON t.id = ANY (ARRAY[s.root_id])
LEFT JOIN revision w ON w.id = ANY (ARRAY[t.revision_id])
JOIN credential c ON c.stack_id = ANY (ARRAY[t.id]) AND c.state = 'held'
WHERE s.id = %(stack_id)s::bigint AND ({_OF_OLD_VERSION} OR c.id = CASE s.action
    WHEN 'DELETE' THEN coalesce(s.operation_credential_id, s.credential_id) ELSE s.credential_id END)
ORDER BY c.id DESC LIMIT 1
"""
FIND_BY_ID: Final = f"""
SELECT {_COLUMNS}
FROM stack t LEFT JOIN revision w ON w.id = ANY (ARRAY[t.revision_id])
JOIN credential c ON c.stack_id = ANY (ARRAY[t.id])
WHERE t.id = %(root_id)s::bigint
    AND CASE WHEN {_OF_OLD_VERSION} THEN c.state = 'held' ELSE c.id = %(id)s::bigint END
ORDER BY c.id DESC LIMIT 1
"""
FIND_OF_USER: Final = f"""
SELECT {_COLUMNS} FROM credential c
WHERE c.stack_id = %(stack_id)s AND c.state = 'held' AND c.user_id = %(user_id)s
    AND c.project_id = %(project_id)s
ORDER BY c.id DESC
"""
HOLDS_ANY: Final = "SELECT 1 FROM credential WHERE stack_id = %(stack_id)s AND state = 'held' LIMIT 1"
# Of a deleted stack: its credential stays until late objects of it were searched (REMOVALS). A partial index
# has the few rows with a due time.
FIND_GOING: Final = """
SELECT c.id, c.user_id, c.project_id, c.roles, c.sealed
FROM credential c JOIN stack s ON s.id = c.stack_id
WHERE c.stack_id = %(stack_id)s AND c.state = 'going' AND c.due_at IS NOT NULL AND s.deleted_at IS NOT NULL
ORDER BY c.id DESC
"""
# Content of an older version keeps the credential that the stack had until then: in all stacks of the tree,
# and in the revisions to which it may return.
KEEP_PRESENT: Final = f"""
WITH t AS (
    SELECT t.id, t.revision_id, t.good_revision_id, c.id AS credential_id
    FROM stack t JOIN revision w ON w.id = t.revision_id
    JOIN credential c ON c.stack_id = t.id AND c.state = 'held'
    WHERE t.id = %(stack_id)s AND {_OF_OLD_VERSION}
), s AS (
    UPDATE stack s SET credential_id = t.credential_id FROM t WHERE s.root_id = t.id AND s.deleted_at IS NULL
)
UPDATE revision w SET credential_id = t.credential_id
FROM t WHERE w.id IN (t.revision_id, t.good_revision_id) AND {_OF_OLD_VERSION}
"""
HOLD: Final = """
UPDATE credential SET state = 'held', stack_id = %(stack_id)s, due_at = NULL
WHERE id = %(id)s AND (state = 'making' OR state = 'held' AND stack_id = %(stack_id)s)
"""
# While the stack is in progress, operations of former content may use its credential.
_UNUSED: Final = """EXISTS (SELECT 1 FROM stack s WHERE s.id = c.stack_id AND s.status <> 'IN_PROGRESS')
    AND NOT EXISTS (
        SELECT 1 FROM stack s JOIN revision v ON v.id IN (s.revision_id, s.good_revision_id)
        WHERE s.id = c.stack_id AND (v.credential_id = c.id OR v.author IS NULL AND v.credential_id IS NULL))
    AND NOT EXISTS (SELECT 1 FROM stack s WHERE s.root_id = c.stack_id AND s.deleted_at IS NULL
        AND c.id IN (s.credential_id, s.operation_credential_id))
    AND NOT EXISTS (SELECT 1 FROM observation_pass p WHERE p.credential_id = c.id)"""
RELEASE_UNUSED: Final = f"""
UPDATE credential c SET state = 'going', due_at = now()
WHERE c.stack_id = %(stack_id)s AND c.state = 'held' AND {_UNUSED}
"""
# The stacks are few: a stack without an update by another user holds a single credential.
FIND_UNUSED: Final = f"""
SELECT DISTINCT c.stack_id FROM (
    SELECT stack_id FROM credential WHERE state = 'held' GROUP BY stack_id HAVING count(*) > 1) AS x
JOIN credential c ON c.stack_id = x.stack_id AND c.state = 'held'
WHERE {_UNUSED}
LIMIT 1000
"""
LOCK_STACK: Final = "SELECT 1 FROM stack WHERE id = %(stack_id)s FOR UPDATE SKIP LOCKED"
# The observation met a refusal of the former credential.
CLEAR_REFUSAL: Final = "DELETE FROM observation_fault WHERE root_id = %(stack_id)s"
IS_REFUSED: Final = "SELECT 1 FROM observation_fault WHERE root_id = %(stack_id)s"
DISCARD: Final = (
    "UPDATE credential SET state = 'going', due_at = now() WHERE id = %(id)s AND state = 'making'"
)

REMOVALS: Final = RemovalQueue(
    "credential",
    # Late objects are searched, and orphans deleted, with the credential first: for a day at most.
    f"""NOT EXISTS (
        SELECT 1 FROM orphan y JOIN stack k ON k.id = y.stack_id
        WHERE k.root_id = d.stack_id AND y.handled_at IS NULL
            AND y.created_at > now() - interval '{LATE_SECONDS} seconds')""",
    "o.sealed",
    bytes,
)


@dataclass(frozen=True, slots=True)
class HeldCredential:
    """A stack's credential: its user, project and roles, and the encrypted delegation."""

    id: int
    user_id: str
    project_id: str
    roles: frozenset[str] | None  # names; None: unknown, of an older version
    sealed: bytes


def insert(
    db: Db,
    root: uuid.UUID,
    stack_id: int | None,
    project_id: str,
    user_id: str,
    roles: Collection[str],
    sealed: bytes,
    seconds: float,
) -> int:
    """Record a credential before Keystone is asked to create it; return its id.

    It is removed after `seconds` unless a stack holds it by then.
    """
    values = {
        "stack_uuid": root,
        "stack_id": stack_id,
        "project_id": project_id,
        "user_id": user_id,
        "roles": sorted(roles),
        "sealed": sealed,
        "seconds": seconds,
    }
    row = db.execute(INSERT, values).fetchone()
    assert row is not None
    return int(row[0])


def store_created(db: Db, id_: int, sealed: bytes) -> None:
    """Store the delegation that Keystone returned."""
    db.execute(STORE_CREATED, {"id": id_, "sealed": sealed})


def hold(db: Db, id_: int, stack_id: int) -> None:
    """Give a locked stack a credential, or keep one that it holds; run in the transaction that writes the
    stack.

    Raises:
        Unavailable: the request took so long that the credential is being removed again.
    """
    values = {"stack_id": stack_id, "id": id_}
    db.execute(KEEP_PRESENT, values)
    if db.execute(HOLD, values).rowcount == 0:
        raise Unavailable("The request took too long. Please try again.")
    db.execute(CLEAR_REFUSAL, values)


def release_unused(db: Db, stack_id: int) -> None:
    """Have the credentials of a stack removed that it does not need any more; the stack is locked."""
    db.execute(RELEASE_UNUSED, {"stack_id": stack_id})


def release_all_unused(db: Db) -> None:
    """Have the credentials of all stacks removed that these do not need any more."""
    for (stack_id,) in db.execute(FIND_UNUSED).fetchall():
        with db.transaction():
            if db.execute(LOCK_STACK, {"stack_id": stack_id}).fetchone() is not None:
                release_unused(db, stack_id)


def discard(db: Db, id_: int) -> None:
    """Have a credential removed that no stack holds."""
    db.execute(DISCARD, {"id": id_})


def is_refused(db: Db, root_id: int) -> bool:
    """Return whether the last use of the credential by the observation was refused."""
    return db.execute(IS_REFUSED, {"stack_id": root_id}).fetchone() is not None


def in_force(db: Db, stack_id: int) -> HeldCredential | None:
    """Return the credential that a stack runs with: for its content, or its DELETE."""
    return _first(fetch_prepared(db, FIND_IN_FORCE, {"stack_id": str(stack_id)}))


def of_visit(db: Db, root_id: int, id_: int | None) -> HeldCredential | None:
    """Return the credential of a visit in a tree of stacks, even if it is being removed."""
    values = {"root_id": str(root_id), "id": None if id_ is None else str(id_)}
    return _first(fetch_prepared(db, FIND_BY_ID, values))


def of_user(db: Db, root_id: int, user_id: str, project_id: str) -> list[HeldCredential]:
    """Return the credentials that a user has delegated to a root stack in a project, the newest first."""
    values = {"stack_id": root_id, "user_id": user_id, "project_id": project_id}
    return [_held(row) for row in db.execute(FIND_OF_USER, values).fetchall()]


def holds_any(db: Db, root_id: int) -> bool:
    """Return whether a root stack holds a credential."""
    return db.execute(HOLDS_ANY, {"stack_id": root_id}).fetchone() is not None


def going(db: Db, root_id: int) -> list[HeldCredential]:
    """Return the credentials of a deleted root stack that are not removed yet, the newest first."""
    return [_held(row) for row in db.execute(FIND_GOING, {"stack_id": root_id}).fetchall()]


def _first(rows: Any) -> HeldCredential | None:
    return _held(rows[0]) if rows else None


def _held(row: Any) -> HeldCredential:
    id_, user_id, project_id, roles, sealed = row
    return HeldCredential(
        id_, user_id, project_id, None if roles is None else frozenset(roles), bytes(sealed)
    )
