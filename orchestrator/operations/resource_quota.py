"""The quota of resources of a project, nested stacks included."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from orchestrator.errors import LimitExceeded
from orchestrator.operations.context import OperationContext
from orchestrator.operations.project_counts import ProjectCounts
from orchestrator.operations.quotas import is_near
from orchestrator.store.access import resource_counts
from orchestrator.store.access.quotas import Limit
from orchestrator.store.connections.database import Database

REFUSAL: Final = "You have reached the maximum resources per tenant, {}. Please delete some resources."


class ResourceCounts:
    """The number of resources of each project, as counted by this process."""

    def __init__(self, database: Database) -> None:
        """Start without counts."""
        self._database = database
        self._counts = ProjectCounts(partial(resource_counts.total, database))

    def require_room(
        self, project_id: str, quota: float, count: int, stack_uuid: str = "", *, reserve: bool = False
    ) -> Limit | None:
        """Check that a stack of the project may have `count` resources of its own. Return the limit to be
        enforced by the transaction that writes them, None if the project is far from it.

        A stack that has as many already is not refused. `reserve` counts the resources as accepted.

        Raises:
            LimitExceeded: the project would have more than `quota` resources; a negative quota is unlimited.
        """
        if quota < 0 or not count:
            return None
        maximum = int(quota)
        with self._counts.locked(project_id) as counted:
            added, near = count, is_near(used=counted.number, added=count, maximum=maximum)
            if stack_uuid and (reserve or near):
                with self._database.borrow() as db:
                    added -= resource_counts.of_stack(db, stack_uuid)
            refusal = REFUSAL.format(maximum)
            if added > 0 and counted.number + added > maximum:
                raise LimitExceeded(refusal)
            if reserve:
                counted.number += added
        return Limit(project_id, maximum, resource_counts.of_project, refusal) if near and added > 0 else None


@lru_cache(maxsize=8)  # databases; a process has one
def counts_of(database: Database) -> ResourceCounts:
    """Return the counts of a database."""
    return ResourceCounts(database)


def require_room(
    context: OperationContext, count: int, stack_uuid: str = "", *, reserve: bool = False
) -> Limit | None:
    """Check that a stack of the caller's project may have `count` resources of its own. Return the limit to
    be enforced by the transaction that writes them, None if the project is far from it.

    Raises:
        LimitExceeded: the project would have more resources than its quota.
    """
    quota = context.quota("resources")
    return counts_of(context.database).require_room(
        context.caller.project_id, quota, count, stack_uuid, reserve=reserve
    )
