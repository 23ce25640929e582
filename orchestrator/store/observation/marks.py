"""Marks in SQL: the next traversal of a stack visits its marked resources, and carries their repairs out.

A mark is written only to the version of the row that was read before the decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.observation.repairs import Mark
from orchestrator.store.observation.verdicts import CURRENT
from orchestrator.store.observation.watched import VERSION
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]

IS_FREE: Final = "r.op IS NULL AND r.lease IS NULL AND NOT r.deposed AND r.action <> 'DELETE'"

MARK: Final = f"""
WITH i AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(marks)s::jsonb) AS x(
        resource_id bigint, version bigint, repair jsonb, told text)
), m AS MATERIALIZED (
    SELECT r.id, i.repair, i.told FROM i JOIN resource r ON r.id = i.resource_id AND {VERSION} = i.version
    WHERE {IS_FREE} ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
), w AS (
    UPDATE resource r SET repair = m.repair FROM m WHERE r.id = m.id
    RETURNING r.id, r.stack_id, r.name, r.type, r.physical_id, m.told
), told AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT w.stack_id, w.name, w.type, w.physical_id, 'UPDATE', 'IN_PROGRESS', w.told FROM w
    WHERE w.told <> ''
)
SELECT id, stack_id FROM w
"""
LOST: Final = f"""
SELECT r.id, {VERSION}, v.verdict
FROM resource_verdict v JOIN resource r ON r.id = v.resource_id
JOIN observation_group g ON g.id = v.group_id
WHERE v.stack_id = %(stack_id)s AND v.confirmed AND v.unknown_since IS NULL
    AND {check_in("v.verdict", ("MISSING", "FAILED"))} AND {CURRENT} AND {IS_FREE}
    AND (g.loss_since IS NULL OR g.loss_approved_at IS NOT NULL)
"""


class MarkRow(NamedTuple):
    """The mark of a version of a resource, and its event."""

    resource_id: int
    version: int
    mark: Mark
    told: str = ""  # the event; empty: none


def mark(db: Db, marks: Iterable[MarkRow]) -> dict[int, int]:
    """Mark resources for the next traversal; return the stacks by resource. A resource that has changed since
    it was read, or has an operation, is left out.
    """
    rows = [
        {"resource_id": id_, "version": version, "repair": mark.as_json(), "told": told}
        for id_, version, mark, told in marks
    ]
    return dict(db.execute(MARK, {"marks": orjson.dumps(rows).decode()}).fetchall())


def mark_lost_members(db: Db, stack_id: int) -> None:
    """Mark the resources of a stack that the continuous observation has found missing or failed, so that the
    next traversal replaces them. Nothing is marked while so many objects are lost that the provider may be at
    fault.
    """
    lost = db.execute(LOST, {"stack_id": stack_id}).fetchall()
    if lost:
        mark(db, (MarkRow(id_, version, _replaced(state)) for id_, version, state in lost))


def _replaced(state: str) -> Mark:
    return Mark("MISSING", "recreate") if state == "MISSING" else Mark("FAILED", "replace")
