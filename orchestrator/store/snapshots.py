"""Snapshots of a stack: start, read, and delete in steps.

A snapshot ends with its traversal (`traversals/completion.py`). A snapshot to be deleted is marked in its
row, and its row is deleted after the last resource snapshot: no crash leaves an unknown object at a provider.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import TupleRow
from sqlalchemy import Row, Select, select, tuple_

from orchestrator.json_types import JsonMapping
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.streaming import streamed
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.stacks.stored_bytes import of_resources
from orchestrator.store.tables.snapshots import ResourceSnapshot, Snapshot
from orchestrator.store.traversals.traversals import StartedTraversal, start_traversal

Db = Connection[TupleRow]

# The stack's row is the lock: two concurrent requests cannot both take the last free place.
STACK = """
SELECT s.action, s.status, s.revision_id,
    (SELECT count(*) FROM snapshot x WHERE x.stack_id = s.id AND x.action = 'CREATE'), s.queued_action
FROM stack s WHERE s.id = %(stack_id)s AND s.deleted_at IS NULL FOR UPDATE OF s
"""
INSERT = """
INSERT INTO snapshot (uuid, stack_id, name, status, status_reason, traversal, revision_id, stored_bytes)
VALUES (%(uuid)s, %(stack_id)s, %(name)s, 'IN_PROGRESS', 'Stack SNAPSHOT started', %(traversal)s,
    %(revision_id)s, %(bytes)s)
ON CONFLICT (uuid) DO UPDATE SET status = excluded.status, status_reason = excluded.status_reason,
    traversal = excluded.traversal, revision_id = excluded.revision_id, stored_bytes = excluded.stored_bytes
"""
# The stored data of a resource, from the snapshot that a revision restores.
RESTORED = """
SELECT c.kept FROM revision v JOIN resource_snapshot c ON c.snapshot_id = v.restores AND c.name = %(name)s
WHERE v.id = %(revision_id)s
"""
FIND_COMPLETE = """
SELECT id FROM snapshot
WHERE uuid = %(uuid)s AND stack_id = %(stack_id)s AND action = 'CREATE' AND status = 'COMPLETE'
"""
BY_UUID = "SELECT id FROM snapshot WHERE uuid = %(uuid)s"
MARK_FOR_DELETION = """
UPDATE snapshot SET action = 'DELETE', status = 'IN_PROGRESS', status_reason = 'state changed',
    due_at = now(), tries = 0
WHERE id = %(id)s AND action = 'CREATE' AND status <> 'IN_PROGRESS'
"""
MARK_ALL_FOR_DELETION = """
UPDATE snapshot SET action = 'DELETE', status = 'IN_PROGRESS', status_reason = 'state changed',
    due_at = now(), tries = 0
WHERE stack_id = %(stack_id)s AND action = 'CREATE' AND NOT (SELECT retain FROM stack s WHERE s.id = stack_id)
"""
FIND_UNDELETED = """
SELECT x.uuid::text, x.status_reason FROM snapshot x JOIN stack s ON s.id = x.stack_id
WHERE x.stack_id = %(stack_id)s AND x.action = 'DELETE' AND NOT s.retain ORDER BY x.id LIMIT 1
"""

# A claim for deletion lasts a minute, for a handful of provider calls; after a crash another worker
# continues. While an operation of the stack may still be creating a resource snapshot, the rows may be
# incomplete.
HAS_DUE: Final = "EXISTS (SELECT 1 FROM snapshot WHERE due_at <= now())"
CLAIM = """
WITH due AS MATERIALIZED (
    SELECT id FROM snapshot WHERE due_at <= now() ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE snapshot x SET due_at = now() + interval '1 minute'
FROM due WHERE x.id = due.id
RETURNING x.id, x.uuid::text, EXISTS (
    SELECT 1 FROM resource r WHERE r.stack_id = x.stack_id AND r.op = 'SNAPSHOT')
"""
NEXT_COPIES = """
SELECT id, name, coalesce(runs_as, type), token, physical_id, data, sealed, kept
FROM resource_snapshot WHERE snapshot_id = %(snapshot_id)s ORDER BY id LIMIT %(limit)s
"""
DELETE_COPIES = "DELETE FROM resource_snapshot WHERE id = ANY(%(ids)s)"
DELETE_EMPTY = """
DELETE FROM snapshot x WHERE x.id = %(id)s AND x.action = 'DELETE'
    AND NOT EXISTS (SELECT 1 FROM resource_snapshot c WHERE c.snapshot_id = x.id)
"""
FIND_OWNER = (
    "SELECT k.project_id, k.root_id FROM snapshot x JOIN stack k ON k.id = x.stack_id WHERE x.id = %(id)s"
)
CONTINUE_DELETION = """
UPDATE snapshot SET due_at = now() + make_interval(secs => %(seconds)s)
WHERE id = %(id)s
"""
POSTPONE_DELETION = """
UPDATE snapshot SET tries = tries + 1, status_reason = %(reason)s,
    due_at = now() + make_interval(secs => least(300, 2 * power(2, least(tries, 10))))
WHERE id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A snapshot as it is now, read under its stack."""

    id: int
    uuid: uuid_.UUID
    name: str | None
    action: str
    status: str
    status_reason: str
    revision_id: int
    created_at: dt.datetime


@dataclass(frozen=True, slots=True)
class CopyRow:
    """A resource in a snapshot."""

    name: str
    type: str
    runs_as: str | None
    physical_id: str | None
    action: str
    status: str
    metadata: JsonMapping | None
    data: JsonMapping | None
    kept: bytes | None  # encrypted
    sealed: bytes | None  # metadata and data, encrypted, when any of it is secret


@dataclass(frozen=True, slots=True)
class Copy:
    """A resource snapshot to be deleted."""

    id: int
    name: str
    kind: str
    token: str
    physical_id: str | None
    data: JsonMapping | None
    sealed: bytes | None  # encrypted, with `data`
    kept: bytes | None  # the provider's answer, encrypted; None: none is known


@dataclass(frozen=True, slots=True)
class SnapshotSource:
    """The state of a stack that is locked for a snapshot."""

    action: str
    status: str
    revision_id: int
    snapshots: int
    queued_action: str | None


def lock(db: Db, stack_id: int) -> SnapshotSource | None:
    """Lock a live stack for the rest of the transaction; return None if it is gone."""
    row = db.execute(STACK, {"stack_id": stack_id}).fetchone()
    return None if row is None else SnapshotSource(*row)


def begin(
    db: Db, stack_id: int, ground: SnapshotSource, name: str | None, uuid: uuid_.UUID | None = None
) -> tuple[uuid_.UUID, StartedTraversal]:
    """Insert a snapshot of a locked stack, or reset the snapshot with this id, and start the traversal that
    creates it.
    """
    opened = start_traversal(db, stack_id, "SNAPSHOT")
    assert opened is not None
    uuid = uuid or uuid_.uuid4()
    db.execute(
        INSERT,
        {
            "uuid": uuid,
            "stack_id": stack_id,
            "name": name,
            "traversal": opened.traversal,
            "revision_id": ground.revision_id,
            "bytes": of_resources(db, stack_id),
        },
    )
    return uuid, opened


def get(database: Database, stack: StackRow, snapshot_id: str) -> SnapshotRow | None:
    """Return a snapshot of the stack."""
    try:
        uuid = uuid_.UUID(snapshot_id)
    except ValueError:
        return None
    with database.engine.connect() as connection:
        row = connection.execute(_of(stack).where(Snapshot.uuid == uuid)).one_or_none()
    return None if row is None else _row(row)


def of_stack(
    database: Database, stack: StackRow, *, marker: str | None = None, limit: int | None = None
) -> Iterator[SnapshotRow]:
    """Yield the stack's snapshots, the oldest first: those after the snapshot with the id `marker`, if it
    exists.
    """
    statement = _of(stack).order_by(Snapshot.created_at, Snapshot.id)
    before = get(database, stack, marker) if marker else None
    if before is not None:
        statement = statement.where(
            tuple_(Snapshot.created_at, Snapshot.id) > tuple_(before.created_at, before.id)
        )
    for row in streamed(database, statement, limit):
        yield _row(row)


def restored(db: Db, revision_id: int, name: str) -> bytes | None:
    """Return the encrypted data of a resource in the snapshot that a revision restores."""
    row = db.execute(RESTORED, {"name": name, "revision_id": revision_id}).fetchone()
    return None if row is None else row[0]


def complete_snapshot(db: Db, stack_id: int, uuid: str) -> int | None:
    """Return the row of a complete snapshot of the stack."""
    row = db.execute(FIND_COMPLETE, {"uuid": uuid, "stack_id": stack_id}).fetchone()
    return None if row is None else row[0]


def remove_by_uuid(db: Db, uuid: str) -> bool:
    """Mark a snapshot for deletion; return whether it exists no more."""
    row = db.execute(BY_UUID, {"uuid": uuid}).fetchone()
    if row is not None:
        remove(db, row[0])
    return row is None


def copies(database: Database, snapshot_id: int, *, kept_only: bool = False) -> Iterator[CopyRow]:
    """Yield the resources in the snapshot; `kept_only`: those with stored data."""
    columns = [
        getattr(ResourceSnapshot, "metadata_" if name == "metadata" else name).label(name)
        for name in CopyRow.__slots__
    ]
    statement = select(*columns).where(ResourceSnapshot.snapshot_id == snapshot_id)
    if kept_only:
        statement = statement.where(ResourceSnapshot.kept.is_not(None))
    for row in streamed(database, statement.order_by(ResourceSnapshot.name)):
        yield CopyRow(**row._mapping)


def remove(db: Db, snapshot_id: int) -> bool:
    """Mark a snapshot for deletion; return False while it is being created, or if it is marked already."""
    return db.execute(MARK_FOR_DELETION, {"id": snapshot_id}).rowcount == 1


def remove_all(db: Db, stack_id: int) -> None:
    """Mark all snapshots of a stack for deletion."""
    db.execute(MARK_ALL_FOR_DELETION, {"stack_id": stack_id})


def undeleted(db: Db, stack_id: int) -> tuple[str, str] | None:
    """Return a snapshot that must be deleted before the stack is gone: its id and the remaining work."""
    row = db.execute(FIND_UNDELETED, {"stack_id": stack_id}).fetchone()
    return None if row is None else (row[0], row[1])


def claim(db: Db) -> tuple[int, str, bool] | None:
    """Claim a snapshot to delete, for a minute; return the id of its row, its id, and whether more resource
    snapshots may appear.
    """
    row = db.execute(CLAIM).fetchone()
    return None if row is None else (row[0], row[1], row[2])


def owner_of(db: Db, snapshot_id: int) -> tuple[str, int]:
    """Return the project of a snapshot, and the root of its stack's tree."""
    row = db.execute(FIND_OWNER, {"id": snapshot_id}).fetchone()
    return ("", 0) if row is None else (str(row[0]), int(row[1]))


def next_copies(db: Db, snapshot_id: int, limit: int) -> list[Copy]:
    """Return the next few resource snapshots to delete."""
    return [
        Copy(*row) for row in db.execute(NEXT_COPIES, {"snapshot_id": snapshot_id, "limit": limit}).fetchall()
    ]


def delete_copies(db: Db, ids: Sequence[int]) -> None:
    """Delete the rows of deleted resource snapshots."""
    db.execute(DELETE_COPIES, {"ids": list(ids)})


def delete_if_empty(db: Db, snapshot_id: int) -> bool:
    """Delete a snapshot without resource snapshots; return False if it has any."""
    return db.execute(DELETE_EMPTY, {"id": snapshot_id}).rowcount == 1


def continue_delete(db: Db, snapshot_id: int, seconds: float) -> None:
    """Continue a deletion in `seconds`."""
    db.execute(CONTINUE_DELETION, {"id": snapshot_id, "seconds": seconds})


def postpone_delete(db: Db, snapshot_id: int, reason: str) -> None:
    """Retry a failed deletion, with growing delays of at most five minutes."""
    db.execute(POSTPONE_DELETION, {"id": snapshot_id, "reason": reason})


def _of(stack: StackRow) -> Select[Any]:
    columns = [getattr(Snapshot, name) for name in SnapshotRow.__slots__]
    return select(*columns).where(Snapshot.stack_id == stack.id)


def _row(row: Row[Any]) -> SnapshotRow:
    return SnapshotRow(**row._mapping)
