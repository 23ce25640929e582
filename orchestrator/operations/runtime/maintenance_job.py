"""A kind of periodic work, which the sweep runs in its turn (`operations/maintenance/`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.engine.messages import Message
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database

AUDIT_SECONDS: Final = 30.0  # between two runs of a job that should find nothing
MAX_ROWS: Final = 1_000  # of a kind of work, in a sweep

WaitingSeconds = Callable[[Collection[str]], Mapping[str, float]]


def no_message_waits(_stacks: Collection[str]) -> Mapping[str, float]:
    """Return nothing, for workers without a fair queue."""
    return {}


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The services of a process for its jobs."""

    db: Connection[TupleRow]  # of the sweep
    database: Database
    settings: Settings
    types: Mapping[str, ResourceType]
    cipher: Cipher
    waiting_seconds: WaitingSeconds = no_message_waits  # ages of the messages of stacks in the fair queue

    def connection(self) -> AbstractContextManager[Connection[TupleRow]]:
        """Return the connection of the sweep, for functions that open and close one."""
        return nullcontext(self.db)


@dataclass(frozen=True, slots=True)
class MaintenanceJob:
    """A kind of periodic work.

    The sweep evaluates the conditions of all jobs in a single statement: a sweep without work costs no more.
    A condition may contain `%(timeout)s`, the timeout of actions without a timeout.
    """

    name: str
    run: Callable[[Maintenance], Sequence[Message]]  # returns the messages to send
    due: str | None = None  # SQL condition, answered by an index; None: always
    every: float = 0.0  # seconds between two runs; without a condition, the first is as late
    # Marks due work as queued: in a transaction that a single sweep on all hosts has open at a time.
    exclusive: bool = False
    rest: Callable[[], None] | None = None  # called by a sweep whose condition does not hold
