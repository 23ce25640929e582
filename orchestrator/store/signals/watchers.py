"""Who watches whose signals, in SQL.

A watcher registers before it reads: the row of the one it watches is locked for share meanwhile, so that a
signal just being written down is either read by the watcher, or its writer sees the watcher; and once it is
registered, reading is enough. Whoever watches is woken, or told by a signal of its own
(`store/signals/queue.py`), as durable as any: nobody polls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

# What the engine tells a resource in a signal, besides what people send.
LOOK: Final = "look"  # one that it watches was signalled
FORGET: Final = "forget"  # what earlier signals told is over

_PEER: Final = """
SELECT r.id, r.name, coalesce(r.runs_as, r.type), r.physical_id, r.reference_id, r.properties,
    r.metadata, convert_from(r.sealed, 'UTF8'),
    EXISTS (SELECT 1 FROM watcher w WHERE w.resource_id = r.id AND w.watcher_id = %(watcher_id)s)
FROM resource r WHERE """
REQUIRED = f"{_PEER}r.id = ANY(%(ids)s::bigint[]) ORDER BY r.leftover, r.id DESC"
ONE = f"{_PEER}r.id = %(id)s"

WATCH = """
INSERT INTO watcher (resource_id, watcher_id, stack_id)
SELECT r.id, %(watcher_id)s, r.stack_id FROM resource r WHERE r.id = %(resource_id)s FOR SHARE
ON CONFLICT DO NOTHING
"""

# What goes itself, or whose stack goes, need not be told; nor what was told and has not taken it in yet.
FORGET_ALL = f"""
INSERT INTO signal (stack_id, resource_id, details, about, due_at)
SELECT r.stack_id, r.id, %(details)s, '{FORGET}', now()
FROM watcher w JOIN resource r ON r.id = w.resource_id JOIN stack s ON s.id = r.stack_id
WHERE w.watcher_id = %(watcher_id)s AND NOT r.leftover AND r.physical_id IS NOT NULL
    AND s.action <> 'DELETE'
    AND NOT EXISTS (SELECT 1 FROM signal g WHERE g.resource_id = r.id AND g.about = '{FORGET}')
"""
UNWATCH = "DELETE FROM watcher WHERE watcher_id = %s"


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A resource that another one requires; its values may be sealed."""

    id: int
    name: str
    kind: str
    physical_id: str | None
    reference_id: str | None
    properties: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None
    sealed: str | None
    watched: bool  # by who asks, since before it was read


def required(db: Db, ids: Sequence[int], watcher_id: int) -> list[PeerRow]:
    """Return these resources, those that stay first."""
    return (
        [PeerRow(*row) for row in fetch_prepared(db, REQUIRED, {"ids": list(ids), "watcher_id": watcher_id})]
        if ids
        else []
    )


def register_watcher(db: Db, resource_id: int, watcher_id: int) -> PeerRow | None:
    """Have a resource told when another one is signalled; return that one as it is now."""
    fetch_prepared(db, WATCH, {"resource_id": resource_id, "watcher_id": watcher_id})
    rows = fetch_prepared(db, ONE, {"id": resource_id, "watcher_id": watcher_id})
    return PeerRow(*rows[0]) if rows else None


def clear_watched_metadata(db: Db, watcher_id: int, details: bytes) -> None:
    """Have those that a resource watches forget what signals told them, and watch them no longer."""
    with db.transaction():
        db.execute(FORGET_ALL, {"watcher_id": watcher_id, "details": details})
        db.execute(UNWATCH, (watcher_id,))
