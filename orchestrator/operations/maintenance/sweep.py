"""The periodic scan for due, lost, overdue or stalled work. It re-enqueues that work, so losing messages of
the broker is harmless (invariant 1).

A sweep runs beside every worker, in a single process at a time. It runs the jobs of `jobs.py` whose
conditions hold; each part of a job is its own transaction. Its cost depends on the amount of due work,
not on the total amount.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.engine.messages import Message
from orchestrator.operations.maintenance.jobs import maintenance_jobs
from orchestrator.operations.maintenance.purge import IncrementalPurge, Policy
from orchestrator.operations.runtime.maintenance_job import (
    Maintenance,
    MaintenanceJob,
    WaitingSeconds,
    no_message_waits,
)
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import sweep_queries, sweep_turn

LOCK = 0x5357454550  # for a single sweep at a time on all hosts


@dataclass(slots=True)
class Sweep:
    """A worker's sweep, with its own connection."""

    database: Database
    settings: Settings
    types: Mapping[str, ResourceType]
    cipher: Cipher
    min_interval: float = 0.0  # seconds between the starts of two sweeps in any process
    waiting_seconds: WaitingSeconds = no_message_waits
    jobs: Sequence[MaintenanceJob] = field(default_factory=maintenance_jobs)
    last_runs: dict[str, float] = field(init=False)  # of the jobs with an interval
    _db: Connection[TupleRow] | None = None
    _purging: IncrementalPurge = field(init=False)

    def __post_init__(self) -> None:
        """Take the limits from the settings, and begin the intervals of the jobs without a condition."""
        self._purging = IncrementalPurge(Policy.of(self.settings))
        now = time.monotonic()
        self.last_runs = {job.name: now if job.due is None else -math.inf for job in self.jobs if job.every}

    def run(self) -> list[Message]:
        """Sweep once, unless another process sweeps or has just swept; return the messages to send."""
        if self._db is None or self._db.closed:
            self._db = self.database.connect(hot=True, replan=True, name="orchestrator-sweep")
            sweep_queries.bound_transactions(self._db)
        db, messages = self._db, list[Message]()
        conditions = tuple(dict.fromkeys(job.due for job in self.jobs if job.due is not None))
        holding = sweep_turn.take(db, conditions, self.min_interval, self.settings.stack_action_timeout)
        if holding is None:
            return []
        tools = Maintenance(db, self.database, self.settings, self.types, self.cipher, self.waiting_seconds)
        if any(job.exclusive and job.due in holding for job in self.jobs):
            with db.transaction():
                if sweep_turn.lock(db, LOCK):
                    messages += self._run(tools, holding, exclusive=True)
        return messages + self._run(tools, holding, exclusive=False)

    def _run(self, tools: Maintenance, holding: Collection[str], *, exclusive: bool) -> list[Message]:
        messages: list[Message] = []
        for job in self.jobs:
            if job.exclusive is exclusive and self._is_due(job, holding):
                messages += job.run(tools)
        return messages

    def _is_due(self, job: MaintenanceJob, holding: Collection[str]) -> bool:
        """Whether the condition of a job holds and its interval is over; if so, the next interval begins."""
        if job.due is not None and job.due not in holding:
            if job.rest is not None:
                job.rest()
            return False
        if job.every:
            now = time.monotonic()
            if now - self.last_runs[job.name] < job.every:
                return False
            self.last_runs[job.name] = now
        return True

    def purge(self) -> None:
        """Purge a few slices, for a tick without messages to send."""
        if self._db is not None and not self._db.closed:
            self._purging.tick(self._db)

    def close(self) -> None:
        """Close the connection; the next sweep opens a new connection."""
        if self._db is not None:
            self._db.close()
