"""The queued action of a stack: stored in the stack's row until the stack comes to rest.

Every function runs in a transaction. An event of a queued action has no physical id: it is not an event of
the stack's state, which clients use to detect the start and the end of an action.
"""

from __future__ import annotations

import uuid as uuid_
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

Db = Connection[TupleRow]

QUEUED_EVENT = """
INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason)
SELECT s.id, s.name, 'OS::Heat::Stack', %(queued)s, %(status)s, %(reason)s FROM s
"""

QUEUE = f"""
WITH s AS (
    UPDATE stack SET queued_action = %(queued)s, queued_at = now() WHERE id = %(stack_id)s RETURNING id, name
)
{QUEUED_EVENT}
"""

CLEAR = """
UPDATE stack SET queued_action = NULL, queued_at = NULL
WHERE id = %(stack_id)s AND queued_action = %(queued)s
"""

DROP = f"""
WITH s AS (
    UPDATE stack SET queued_action = NULL, queued_at = NULL
    WHERE id = %(stack_id)s AND queued_action = %(queued)s RETURNING id, name
), failed AS (
    UPDATE snapshot x SET status = 'FAILED', status_reason = %(reason)s
    FROM s WHERE x.stack_id = s.id AND x.traversal = 0 AND x.action = 'CREATE' AND x.status = 'IN_PROGRESS'
)
{QUEUED_EVENT}
"""

# A child waits for its parent, too: the parent's operation would request its own transition of the child
# again (docs/internals/protocol.md rule 12).
_IS_AT_REST = """s.queued_action IS NOT NULL AND s.status <> 'IN_PROGRESS' AND s.deleted_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM stack p WHERE p.id = s.owner_id AND p.status = 'IN_PROGRESS')"""
HAS_QUEUED: Final = "EXISTS (SELECT 1 FROM stack WHERE queued_action IS NOT NULL)"
LOCK_AT_REST = f"""
SELECT s.queued_action, s.action, s.status FROM stack s WHERE s.id = %(stack_id)s AND {_IS_AT_REST} FOR UPDATE
"""

# By the index ix_stack_queued_action.
AT_REST = f"SELECT s.id FROM stack s WHERE {_IS_AT_REST} ORDER BY s.queued_at LIMIT %(limit)s"

# The snapshot of a queued SNAPSHOT belongs to no traversal yet: its traversal is 0.
INSERT_SNAPSHOT = """
INSERT INTO snapshot (uuid, stack_id, name, status, status_reason, traversal, revision_id)
VALUES (%(uuid)s, %(stack_id)s, %(name)s, 'IN_PROGRESS', %(reason)s, 0, %(revision_id)s)
"""
QUEUED_SNAPSHOT = """
SELECT uuid, name FROM snapshot
WHERE stack_id = %(stack_id)s AND traversal = 0 AND action = 'CREATE' AND status = 'IN_PROGRESS'
ORDER BY id LIMIT 1
"""


class QueuedAtRest(NamedTuple):
    """The queued action of a locked stack at rest, with the action and status before it."""

    queued_action: str
    action: str
    status: str


class QueuedSnapshot(NamedTuple):
    """A snapshot that is not started yet."""

    uuid: uuid_.UUID
    name: str | None


def queue(db: Db, stack_id: int, queued_action: str, reason: str) -> None:
    """Store the queued action of a locked live stack, with an event."""
    values = {"stack_id": stack_id, "queued": queued_action, "status": "IN_PROGRESS", "reason": reason}
    db.execute(QUEUE, values)


def queue_snapshot(db: Db, stack_id: int, revision_id: int, name: str | None, reason: str) -> uuid_.UUID:
    """Queue a SNAPSHOT of a locked live stack; return the id of the snapshot."""
    queue(db, stack_id, "SNAPSHOT", reason)
    uuid = uuid_.uuid4()
    values = {"uuid": uuid, "stack_id": stack_id, "name": name, "reason": reason, "revision_id": revision_id}
    db.execute(INSERT_SNAPSHOT, values)
    return uuid


def queued_snapshot(db: Db, stack_id: int) -> QueuedSnapshot | None:
    """Return the snapshot of the queued SNAPSHOT."""
    row = db.execute(QUEUED_SNAPSHOT, {"stack_id": stack_id}).fetchone()
    return None if row is None else QueuedSnapshot(*row)


def clear(db: Db, stack_id: int, queued_action: str) -> None:
    """Remove a queued action that has started."""
    db.execute(CLEAR, {"stack_id": stack_id, "queued": queued_action})


def drop(db: Db, stack_id: int, queued_action: str, reason: str) -> None:
    """Remove a queued action that will not start, with an event that states the reason."""
    values = {"stack_id": stack_id, "queued": queued_action, "status": "FAILED", "reason": reason}
    db.execute(DROP, values)


def lock_at_rest(db: Db, stack_id: int) -> QueuedAtRest | None:
    """Lock a stack at rest that has a queued action; return None if the stack is not in that state."""
    row = db.execute(LOCK_AT_REST, {"stack_id": stack_id}).fetchone()
    return None if row is None else QueuedAtRest(*row)


def stacks_at_rest(db: Db, limit: int = 100) -> list[int]:
    """Return the stacks at rest that have a queued action, the longest queued first."""
    return [row[0] for row in db.execute(AT_REST, {"limit": limit}).fetchall()]
