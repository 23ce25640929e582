"""Watchers of a resource's signals, in SQL.

A watcher registers before it reads, with a share lock on the row of the watched resource. A signal that is
being written is then either read by the watcher, or its writer sees the watcher; after the registration
reading is sufficient. A watcher is woken, or notified by its own signal (`store/signals/queue.py`),
which is as durable as any other: no watcher polls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.json_types import JsonMapping
from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

# Internal signals of the engine to a resource.
SIGNALLED: Final = "look"  # a watched resource was signalled
CLEARED: Final = "forget"  # the values from earlier signals are void
ADJUSTMENT: Final = "adjustment"  # to a group: the request of a scaling policy
RESIZED: Final = "resized"  # to a group: its child has ended a resize, or its update has failed
CHILD_FINISHED: Final = "::resized"  # key of the details of the latter: the resize, None to only refresh

_PEER: Final = """
SELECT r.id, r.name, coalesce(r.runs_as, r.type), r.physical_id, r.reference_id, r.properties,
    r.metadata, convert_from(r.sealed, 'UTF8'),
    EXISTS (SELECT 1 FROM watcher w WHERE w.resource_id = r.id AND w.watcher_id = %(watcher_id)s)
FROM resource r WHERE """
REQUIRED = f"{_PEER}r.id = ANY(%(ids)s::bigint[]) ORDER BY r.deposed, r.id DESC"
BY_ID = f"{_PEER}r.id = %(id)s"

WATCH = """
INSERT INTO watcher (resource_id, watcher_id, stack_id)
SELECT r.id, %(watcher_id)s, r.stack_id FROM resource r WHERE r.id = %(resource_id)s FOR SHARE
ON CONFLICT DO NOTHING
"""

# A watcher that is being deleted, or whose stack is, gets no notification; nor does a watcher with an
# unprocessed notification.
CLEAR_ALL = f"""
INSERT INTO signal (stack_id, resource_id, details, about, due_at)
SELECT r.stack_id, r.id, %(details)s, '{CLEARED}', now()
FROM watcher w JOIN resource r ON r.id = w.resource_id JOIN stack s ON s.id = r.stack_id
WHERE w.watcher_id = %(watcher_id)s AND NOT r.deposed AND r.physical_id IS NOT NULL
    AND s.action <> 'DELETE'
    AND NOT EXISTS (SELECT 1 FROM signal g WHERE g.resource_id = r.id AND g.about = '{CLEARED}')
"""
UNREGISTER = "DELETE FROM watcher WHERE watcher_id = %(watcher_id)s"


@dataclass(frozen=True, slots=True)
class RequiredRow:
    """A resource that another resource requires; its values may be encrypted."""

    id: int
    name: str
    kind: str
    physical_id: str | None
    reference_id: str | None
    properties: JsonMapping | None
    metadata: JsonMapping | None
    sealed: str | None
    watched: bool  # by the caller, before this was read


def required(db: Db, ids: Sequence[int], watcher_id: int) -> list[RequiredRow]:
    """Return these resources, current incarnations first."""
    return (
        [
            RequiredRow(*row)
            for row in fetch_prepared(db, REQUIRED, {"ids": list(ids), "watcher_id": watcher_id})
        ]
        if ids
        else []
    )


def register_watcher(db: Db, resource_id: int, watcher_id: int) -> RequiredRow | None:
    """Register a watcher of a resource; return the resource as it is now."""
    fetch_prepared(db, WATCH, {"resource_id": resource_id, "watcher_id": watcher_id})
    rows = fetch_prepared(db, BY_ID, {"id": resource_id, "watcher_id": watcher_id})
    return RequiredRow(*rows[0]) if rows else None


def clear_watched_metadata(db: Db, watcher_id: int, details: bytes) -> None:
    """Have the resources that a resource watches discard the values from signals, and unregister it."""
    with db.transaction():
        db.execute(CLEAR_ALL, {"watcher_id": watcher_id, "details": details})
        db.execute(UNREGISTER, {"watcher_id": watcher_id})
