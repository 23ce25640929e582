"""The quota of resources of a project.

A count reads a row per stack. It is used again for a time proportional to its duration, so that counting
takes at most 1/COST_SHARE of the time of a process, however large the project is: a small project is counted
almost always, a project with a million stacks every few seconds.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from orchestrator.errors import LimitExceeded
from orchestrator.operations.context import OperationContext
from orchestrator.store.access import resource_counts
from orchestrator.store.connections.database import Database

COST_SHARE: Final = 20
MAX_COUNTED: Final = 10_000  # projects


@dataclass(slots=True)
class _Count:
    """The number of resources of a project at a time, and those accepted since then."""

    number: int = 0
    until: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class ResourceCounts:
    """The number of resources of each project, as counted by this process."""

    def __init__(self, database: Database) -> None:
        """Start without counts."""
        self._database = database
        self._counts: OrderedDict[str, _Count] = OrderedDict()
        self._lock = threading.Lock()

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
        counted = self._of(project_id)
        with counted.lock:
            if time.monotonic() >= counted.until:
                self._read(project_id, counted)
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

    def _of(self, project_id: str) -> _Count:
        with self._lock:
            counted = self._counts.setdefault(project_id, _Count())
            self._counts.move_to_end(project_id)
            if len(self._counts) > MAX_COUNTED:
                self._counts.popitem(last=False)
        return counted

    def _read(self, project_id: str, counted: _Count) -> None:
        started = time.monotonic()
        counted.number = resource_counts.total(self._database, project_id)
        now = time.monotonic()
        counted.until = now + COST_SHARE * (now - started)


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
