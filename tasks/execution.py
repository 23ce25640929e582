"""The end of a task: publishes its messages, and reports it to the fair queues of the broker."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from orchestrator.engine.messages import Message
from tasks.app import dispatcher, projects
from tasks.fair_queues import FinishedTask
from tasks.publisher import PROJECT_HEADER


@dataclass(slots=True)
class Execution:
    """A running task, and the messages to send at its end."""

    queue: str
    started_at: float = field(default_factory=time.perf_counter)
    messages: Sequence[Message] = ()

    @property
    def seconds(self) -> float:
        """Return its duration so far."""
        return time.perf_counter() - self.started_at


@contextmanager
def execution(request: Any) -> Iterator[Execution]:
    """Run a task; at its end, also after an error, send its messages and the next messages of the queue."""
    running = Execution((request.delivery_info or {}).get("routing_key") or "")
    project = getattr(request, PROJECT_HEADER, None) or ""
    if project and request.root_id:
        projects.remember(request.root_id, project)
    try:
        yield running
    finally:
        finished = FinishedTask(request.id, running.queue, project, running.seconds)
        dispatcher.publish(running.messages, parent_id=request.id, finished=finished)
