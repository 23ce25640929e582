"""The quota of root stacks of a project.

A create counts the root stacks of its project in its transaction only if the project is close to the quota.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from orchestrator.operations.context import OperationContext
from orchestrator.operations.project_counts import ProjectCounts
from orchestrator.operations.quotas import UNLIMITED
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks.root_stacks import count_stacks

CLOSE: Final = 0.9  # of the quota


def quota_to_enforce(context: OperationContext) -> int:
    """Return the quota that the next create of the project enforces; -1 if the project is far from it."""
    quota = context.quota("stacks")
    if quota < 0:
        return quota
    with counts_of(context.database).locked(context.caller.project_id) as count:
        count.number += 1
        return UNLIMITED if count.number < CLOSE * quota else quota


@lru_cache(maxsize=8)  # databases; a process has one
def counts_of(database: Database) -> ProjectCounts:
    """Return the counts of a database."""
    return ProjectCounts(partial(_count, database))


def _count(database: Database, project_id: str) -> int:
    with database.borrow() as db:
        return count_stacks(db, project_id)
