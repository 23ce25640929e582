"""The quota of resources of a project, nested stacks included."""

from __future__ import annotations

from functools import lru_cache, partial

from orchestrator.errors import LimitExceeded
from orchestrator.operations.context import OperationContext
from orchestrator.operations.project_counts import ProjectCounts
from orchestrator.store.access import resource_counts
from orchestrator.store.connections.database import Database


class ResourceCounts:
    """The number of resources of each project, as counted by this process."""

    def __init__(self, database: Database) -> None:
        """Start without counts."""
        self._database = database
        self._counts = ProjectCounts(partial(resource_counts.total, database))

    def require_room(
        self, project_id: str, quota: float, count: int, stack_uuid: str = "", *, reserve: bool = False
    ) -> None:
        """Check that a stack of the project may have `count` resources of its own.

        A stack that has as many already is not refused. `reserve` counts the resources as accepted.

        Raises:
            LimitExceeded: the project would have more than `quota` resources; a negative quota is unlimited.
        """
        if quota < 0 or not count:
            return
        with self._counts.locked(project_id) as counted:
            added = count
            if stack_uuid and (reserve or counted.number + count > quota):
                with self._database.borrow() as db:
                    added -= resource_counts.of_stack(db, stack_uuid)
            if added > 0 and counted.number + added > quota:
                raise LimitExceeded(
                    f"You have reached the maximum resources per tenant, {quota:.0f}. "
                    "Please delete some resources."
                )
            if reserve:
                counted.number += added


@lru_cache(maxsize=8)  # databases; a process has one
def counts_of(database: Database) -> ResourceCounts:
    """Return the counts of a database."""
    return ResourceCounts(database)


def require_room(
    context: OperationContext, count: int, stack_uuid: str = "", *, reserve: bool = False
) -> None:
    """Check that a stack of the caller's project may have `count` resources of its own.

    Raises:
        LimitExceeded: the project would have more resources than its quota.
    """
    quota = context.quota("resources")
    counts_of(context.database).require_room(
        context.caller.project_id, quota, count, stack_uuid, reserve=reserve
    )
