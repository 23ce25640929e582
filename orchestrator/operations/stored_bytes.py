"""The quota of stored bytes of a project: contents of revisions, snapshots and software configs, also of
deleted stacks until the purge (store/adr/0008).

The sum is read by each process now and then (`project_counts.py`), and again by a transaction that adds to it
if the project is close to the limit.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from orchestrator.operations.context import OperationContext
from orchestrator.operations.project_counts import ProjectCounts
from orchestrator.operations.quotas import is_near
from orchestrator.store.access.quotas import Limit
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import stored_bytes

REFUSAL: Final = (
    "You have reached the maximum stored bytes per tenant, {}: templates, files, environments, snapshots and "
    "software configs, also of earlier revisions and deleted stacks until they are purged."
)


def limit_to_enforce(context: OperationContext, added: int) -> Limit | None:
    """Return the limit that a transaction of the caller's project which adds at most `added` bytes enforces;
    None if the project is far from it.
    """
    quota = context.quota("stored_bytes")
    return limit_of(context.database, context.caller.project_id, quota, added)


def limit_of(database: Database, project_id: str, quota: float, added: int) -> Limit | None:
    """Return the same for any project."""
    if quota < 0:
        return None
    maximum = int(quota)
    with counts_of(database).locked(project_id) as counted:
        near = is_near(used=counted.number, added=added, maximum=maximum)
        counted.number += added
    return Limit(project_id, maximum, stored_bytes.of_project, REFUSAL.format(maximum)) if near else None


@lru_cache(maxsize=8)  # databases; a process has one
def counts_of(database: Database) -> ProjectCounts:
    """Return the sums of a database."""
    return ProjectCounts(partial(stored_bytes.total, database))
