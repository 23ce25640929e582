"""Webhooks that a stack's environment names as event sinks, in SQL.

They exist as long as the stack's row. The stack's revision decides which of them are active; the rest are
`off`.
"""

from __future__ import annotations

import uuid as uuid_
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow, class_row

from orchestrator.json_types import JsonMapping

Db = Connection[TupleRow]

MAX_INACTIVE_SINKS: Final = 100  # of a stack, for a rollback to an earlier revision


@dataclass(frozen=True, slots=True)
class SinkRow:
    """A webhook named by any environment of the stack."""

    uuid: uuid_.UUID
    only_stacks: bool
    shown_url: str
    sealed: bytes


OF_STACK: Final = """
SELECT w.uuid, w.only_stacks, w.shown_url, w.sealed FROM webhook w JOIN stack s ON s.id = w.stack_id
WHERE s.project_id = %(project_id)s AND s.uuid = %(uuid)s AND w.of_environment ORDER BY w.id DESC
"""
# Active from this transaction on: none of its events has a smaller sequence.
INSERT: Final = """
INSERT INTO webhook (uuid, project_id, stack_id, nested_depth, only_stacks, shown_url, sealed, xid, event_id,
    created_by, slow, of_environment)
VALUES (%(uuid)s, %(project_id)s, %(stack_id)s, %(nested_depth)s, %(only_stacks)s, %(shown_url)s, %(sealed)s,
    pg_current_xact_id(), 0, %(created_by)s, true, true)
"""
SWITCH: Final = """
WITH named AS (
    SELECT sink->>'id' AS id FROM revision r, json_array_elements(r.environment->'event_sinks') AS sink
    WHERE r.id = %(revision_id)s
)
UPDATE webhook w
SET state = CASE WHEN n.id IS NULL THEN 'off' ELSE 'active' END,
    xid = CASE WHEN n.id IS NULL THEN w.xid ELSE pg_current_xact_id() END,
    event_id = CASE WHEN n.id IS NULL THEN w.event_id ELSE 0 END,
    tries = 0, failing_since = NULL, last_error = NULL, lease = NULL, leased_until = NULL, due_at = now()
FROM webhook o LEFT JOIN named n ON n.id = o.uuid::text
WHERE w.id = o.id AND o.stack_id = %(stack_id)s AND o.of_environment AND (n.id IS NULL) = (o.state <> 'off')
"""
DELETE_INACTIVE: Final = """
DELETE FROM webhook WHERE id IN (
    SELECT id FROM webhook WHERE stack_id = %(stack_id)s AND of_environment AND state = 'off'
    ORDER BY id DESC OFFSET %(kept)s)
"""


def of_stack(db: Db, project_id: str, stack: uuid_.UUID) -> list[SinkRow]:
    """Return all sinks of a stack, the newest first."""
    with db.cursor(row_factory=class_row(SinkRow)) as cursor:
        return cursor.execute(OF_STACK, {"project_id": project_id, "uuid": stack}).fetchall()


def add(db: Db, stack_id: int, new: Sequence[JsonMapping]) -> None:
    """Insert a stack's new sinks, active from the running transaction on."""
    for values in new:
        db.execute(INSERT, {**values, "stack_id": stack_id})
    if new:
        db.execute(DELETE_INACTIVE, {"stack_id": stack_id, "kept": MAX_INACTIVE_SINKS})


def activate_named(db: Db, stack_id: int, revision_id: int) -> None:
    """Activate the sinks that a revision of the stack names, and deactivate all other sinks."""
    db.execute(SWITCH, {"stack_id": stack_id, "revision_id": revision_id})
