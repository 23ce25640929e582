"""The quota of root stacks of a project.

A create counts the root stacks of its project in its transaction only if the project is close to the quota.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from orchestrator.operations.context import OperationContext
from orchestrator.operations.project_counts import ProjectCounts
from orchestrator.operations.quotas import is_near
from orchestrator.store.access.quotas import Limit
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks.root_stacks import count_stacks

REFUSAL: Final = "You have reached the maximum stacks per tenant, {}. Please delete some stacks."


def limit_to_enforce(context: OperationContext) -> Limit | None:
    """Return the limit that the next create of the project enforces; None if the project is far from it."""
    quota, project_id = context.quota("stacks"), context.caller.project_id
    if quota < 0:
        return None
    with counts_of(context.database).locked(project_id) as count:
        near = is_near(used=count.number, added=1, maximum=quota)
        count.number += 1
    return Limit(project_id, quota, count_stacks, REFUSAL.format(quota)) if near else None


@lru_cache(maxsize=8)  # databases; a process has one
def counts_of(database: Database) -> ProjectCounts:
    """Return the counts of a database."""
    return ProjectCounts(partial(_count, database))


def _count(database: Database, project_id: str) -> int:
    with database.borrow() as db:
        return count_stacks(db, project_id)
