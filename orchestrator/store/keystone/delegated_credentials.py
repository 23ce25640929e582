"""Delegated credentials: each root stack has at most one; its children use it too.

The statement that completes the delete of a stack also starts the removal of its credential
(`traversals/completion.py`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.errors import Unavailable
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.keystone.removal_queue import Db, RemovalQueue

LATE_SECONDS: Final = 86_400.0  # longest time for late objects, in which a deleted stack has its credential

INSERT: Final = """
INSERT INTO credential (stack_uuid, stack_id, project_id, user_id, sealed, due_at)
VALUES (%(stack_uuid)s, %(stack_id)s, %(project_id)s, %(user_id)s, %(sealed)s,
    now() + make_interval(secs => %(seconds)s::float8))
RETURNING id
"""
STORE_CREATED: Final = "UPDATE credential SET sealed = %(sealed)s WHERE id = %(id)s AND state = 'making'"
FIND_HELD: Final = (
    "SELECT id, user_id, project_id, sealed FROM credential WHERE stack_id = %(stack_id)s AND state = 'held'"
)
# Of a deleted stack: its credential stays until late objects of it were searched (REMOVALS). A partial index
# has the few rows with a due time.
FIND_GOING: Final = """
SELECT c.id, c.user_id, c.project_id, c.sealed
FROM credential c JOIN stack s ON s.id = c.stack_id
WHERE c.stack_id = %(stack_id)s AND c.state = 'going' AND c.due_at IS NOT NULL AND s.deleted_at IS NOT NULL
ORDER BY c.id DESC
"""
RELEASE_OTHERS: Final = """
UPDATE credential SET state = 'going', due_at = now()
WHERE stack_id = %(stack_id)s AND state = 'held' AND id <> %(id)s
"""
HOLD: Final = """
UPDATE credential SET state = 'held', stack_id = %(stack_id)s, due_at = NULL
WHERE id = %(id)s AND state = 'making'
"""
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
        SELECT 1 FROM stray y JOIN stack k ON k.id = y.stack_id
        WHERE k.root_id = d.stack_id AND y.handled_at IS NULL
            AND y.created_at > now() - interval '{LATE_SECONDS} seconds')""",
    "o.sealed",
    bytes,
)


@dataclass(frozen=True, slots=True)
class HeldCredential:
    """A stack's credential: its user and project, and the encrypted delegation."""

    id: int
    user_id: str
    project_id: str
    sealed: bytes


def insert(
    db: Db,
    root: uuid.UUID,
    stack_id: int | None,
    project_id: str,
    user_id: str,
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
    """Give a stack its credential, in place of the previous credential; run in the transaction that writes
    it.

    Raises:
        Unavailable: the request took so long that the credential is being removed again.
    """
    values = {"stack_id": stack_id, "id": id_}
    db.execute(RELEASE_OTHERS, values)
    if db.execute(HOLD, values).rowcount == 0:
        raise Unavailable("The request took too long. Please try again.")
    db.execute(CLEAR_REFUSAL, values)


def discard(db: Db, id_: int) -> None:
    """Have a credential removed that no stack holds."""
    db.execute(DISCARD, {"id": id_})


def is_refused(db: Db, root_id: int) -> bool:
    """Return whether the last use of the credential by the observation was refused."""
    return db.execute(IS_REFUSED, {"stack_id": root_id}).fetchone() is not None


def held(db: Db, root_id: int) -> HeldCredential | None:
    """Return the credential of a root stack."""
    rows: Any = fetch_prepared(db, FIND_HELD, {"stack_id": root_id})
    return HeldCredential(rows[0][0], rows[0][1], rows[0][2], bytes(rows[0][3])) if rows else None


def going(db: Db, root_id: int) -> list[HeldCredential]:
    """Return the credentials of a deleted root stack that are not removed yet, the newest first."""
    rows = db.execute(FIND_GOING, {"stack_id": root_id}).fetchall()
    return [HeldCredential(row[0], row[1], row[2], bytes(row[3])) for row in rows]
