"""Heartbeats of workers, which `GET /services` lists as engines. Nothing else depends on them: unfinished
work is found by its lease.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import workers

INTERVAL_SECONDS = 20  # seconds between two heartbeats
LISTED_SECONDS = 24 * 3_600  # seconds for which a killed worker stays in the list


@dataclass(slots=True)
class Heartbeat:
    """The heartbeat of a process; `tick` may be called at any rate."""

    database: Database
    name: str
    queues: Sequence[str]
    uuid: UUID = field(default_factory=uuid4)
    _due_at: float = 0.0  # on the monotonic clock

    def tick(self) -> None:
        """Record a heartbeat if it is due."""
        now = time.monotonic()
        if now < self._due_at:
            return
        host = socket.gethostname()
        workers.report(
            self.database,
            self.uuid,
            self.name,
            host,
            self.queues,
            interval=INTERVAL_SECONDS,
            kept=LISTED_SECONDS,
        )
        self._due_at = now + INTERVAL_SECONDS

    def end(self) -> None:
        """Record the end of the process."""
        workers.remove(self.database, self.uuid)
