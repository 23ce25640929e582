"""Projects of stacks, for the fair queues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

import psycopg
import sqlalchemy.exc

from orchestrator.logs import logger
from orchestrator.operations.runtime.caches import BoundedCache
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import projects

CACHE_SIZE: Final = 50_000  # stacks

log = logger()


class StackProjects:
    """The projects of the stacks that this process sends messages for; a stack never changes its project."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """`database` is called in the process that reads."""
        self.database = database
        self._known: BoundedCache[str, str] = BoundedCache(CACHE_SIZE)

    def __call__(self, stacks: Collection[str]) -> Mapping[str, str]:
        """Return the projects of stacks by uuid, without unknown stacks and without all during an outage."""
        found = {uuid: project for uuid in stacks if (project := self._known.get(uuid)) is not None}
        missing = [uuid for uuid in stacks if uuid not in found]
        if missing:
            try:
                read = projects.of_stacks(self.database(), missing)
            except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError) as error:
                log.warning("stack_projects_unknown", stacks=len(missing), error=str(error))
                return found
            for uuid, project in read.items():
                self.remember(uuid, project)
            found.update(read)
        return found

    def remember(self, stack: str, project: str) -> None:
        """Keep the project of a stack."""
        self._known.put(stack, project)
