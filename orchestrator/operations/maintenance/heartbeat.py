"""A worker's sign of life: what `GET /services` shows as engines. Nothing else goes by it: work that is not
done is found by its lease.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import workers

INTERVAL = 20  # seconds between two signs
KEPT = 24 * 3_600  # seconds for which one that was killed is shown


@dataclass(slots=True)
class Heartbeat:
    """One process's, told as often as one likes."""

    database: Database
    name: str
    queues: Sequence[str]
    uuid: UUID = field(default_factory=uuid4)
    _due_at: float = 0.0  # by the monotonic clock

    def tick(self) -> None:
        """Say that it runs, when it is time to."""
        now = time.monotonic()
        if now < self._due_at:
            return
        host = socket.gethostname()
        workers.report(self.database, self.uuid, self.name, host, self.queues, interval=INTERVAL, kept=KEPT)
        self._due_at = now + INTERVAL

    def end(self) -> None:
        """Say that it ends."""
        workers.remove(self.database, self.uuid)
