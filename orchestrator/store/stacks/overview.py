"""Figures of all root stacks of a project, bounded by the number of its stacks or by a limit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared

MAX_FAILED: Final = 200  # newest failed stacks whose causes are read
MAX_CAUSES_PER_STACK: Final = 5

COUNTS: Final = """
SELECT s.action, s.status, count(*) FROM stack s
WHERE s.project_id = %(project_id)s AND s.deleted_at IS NULL AND s.owner_id IS NULL
GROUP BY s.action, s.status
"""
SLOWEST: Final = """
SELECT s.uuid::text, s.name, s.action, s.status, s.action_started_at FROM stack s
WHERE s.project_id = %(project_id)s AND s.status = 'IN_PROGRESS' AND s.deleted_at IS NULL
    AND s.owner_id IS NULL
ORDER BY s.action_started_at LIMIT %(limit)s
"""
CAUSES: Final = """
SELECT s.uuid::text, s.name, f.resource_name, f.resource_type, f.reason, f.created_at
FROM (
    SELECT s.id, s.uuid, s.name, s.traversal FROM stack s
    WHERE s.project_id = %(project_id)s AND s.status = 'FAILED' AND s.deleted_at IS NULL
    ORDER BY s.action_started_at DESC LIMIT %(stacks)s) s
CROSS JOIN LATERAL (
    SELECT f.resource_name, f.resource_type, f.reason, f.created_at FROM failure f
    WHERE f.stack_id = s.id AND f.traversal = s.traversal
        AND NOT EXISTS (SELECT 1 FROM stack c WHERE c.owner_id = s.id AND c.parent_resource = f.resource_name
            AND c.status = 'FAILED')
    ORDER BY f.id LIMIT %(causes)s) f
"""


@dataclass(frozen=True, slots=True)
class SlowStack:
    """A root stack at work."""

    uuid: str
    name: str
    action: str
    status: str
    since: dt.datetime


@dataclass(frozen=True, slots=True)
class RootCause:
    """A failure of a stack that comes from no nested stack."""

    stack_uuid: str
    stack_name: str
    resource_name: str
    resource_type: str | None
    reason: str
    at: dt.datetime


def counts(database: Database, project_id: str) -> Mapping[tuple[str, str], int]:
    """Return the number of live root stacks, by action and status."""
    with database.borrow() as db:
        rows = fetch_prepared(db, COUNTS, {"project_id": project_id})
    return {(action, status): number for action, status, number in rows}


def slowest(database: Database, project_id: str, limit: int) -> Sequence[SlowStack]:
    """Return the operations that began first."""
    with database.borrow() as db:
        rows = fetch_prepared(db, SLOWEST, {"project_id": project_id, "limit": limit})
    return [SlowStack(*row) for row in rows]


def root_causes(database: Database, project_id: str) -> Sequence[RootCause]:
    """Return the causes of the newest failed stacks, nested stacks included."""
    values = {"project_id": project_id, "stacks": MAX_FAILED, "causes": MAX_CAUSES_PER_STACK}
    with database.borrow() as db:
        rows = fetch_prepared(db, CAUSES, values)
    return [RootCause(*row) for row in rows]
