"""Marks for a repair that a user requests: written only to the row that was read before the observation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.observation.watched import VERSION

Db = Connection[TupleRow]

MARK: Final = f"""
WITH i AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(marks)s::jsonb) AS x(
        resource_id bigint, version bigint, observed text, reason text, told text)
), m AS MATERIALIZED (
    SELECT r.id, i.observed, i.reason, i.told
    FROM i JOIN resource r ON r.id = i.resource_id AND {VERSION} = i.version
    WHERE r.op IS NULL AND r.lease IS NULL AND NOT r.leftover AND r.action <> 'DELETE'
    ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
), w AS (
    UPDATE resource r SET observed = m.observed, observed_at = now(), observed_reason = nullif(m.reason, '')
    FROM m WHERE r.id = m.id RETURNING r.id, r.stack_id, r.name, r.type, r.physical_id, m.told
), told AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT w.stack_id, w.name, w.type, w.physical_id, 'UPDATE', 'IN_PROGRESS', w.told FROM w
)
SELECT id, stack_id FROM w
"""


class Mark(NamedTuple):
    """An observation of a version of a resource, and its event."""

    resource_id: int
    version: int
    observed: Literal["absent", "error", "changed", "recoverable"]
    reason: str
    told: str


def mark(db: Db, marks: Iterable[Mark]) -> dict[int, int]:
    """Mark resources for the next traversal; return the stacks by resource. A resource that has changed since
    it was observed is left out.
    """
    rows = [mark._asdict() for mark in marks]
    return dict(db.execute(MARK, {"marks": orjson.dumps(rows).decode()}).fetchall())
