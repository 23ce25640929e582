"""The execution of tasks: the number that a worker reads at once (adr/0002), and the end of a task, which
publishes its messages and is reported to the fair queues of the broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from orchestrator.engine.messages import Message
from tasks.app import dispatcher, projects
from tasks.fair_queues import FinishedTasks
from tasks.publisher import PROJECT_HEADER, Publication

T = TypeVar("T")
R = TypeVar("R")

MOST_TOGETHER: Final = 16  # tasks that a worker reads at once
SECONDS: Final = 0.012  # of processor time for the tasks of a read: another worker may be idle meanwhile
WEIGHT: Final = 0.3  # of the last task in the mean


class Pace:
    """The number of tasks that this worker reads at once: more, the shorter they are."""

    def __init__(self) -> None:
        """Read single tasks, until the worker gathers tasks."""
        self.gathers = False
        self._mean = SECONDS

    @property
    def together(self) -> int:
        """Return the number of tasks for the next read."""
        return max(1, min(MOST_TOGETHER, int(SECONDS / self._mean))) if self.gathers else 1

    def note(self, number: int, seconds: float) -> None:
        """Note the processor time that tasks took in all."""
        kept = (1 - WEIGHT) ** number
        self._mean = kept * self._mean + (1 - kept) * max(seconds / number, 1e-6)


def isolated(
    tasks: Sequence[T], run: Callable[[Sequence[T], bool], R], failed: Callable[[T, Exception], None]
) -> list[R]:
    """Run tasks together. After an unexpected error run each by itself, so that it affects no other.

    The second argument of `run` is true then. `failed` receives a task that still fails.
    """
    try:
        return [run(tasks, False)]
    except Exception as error:
        if len(tasks) == 1:
            failed(tasks[0], error)
            return []
    results = []
    for task in tasks:
        try:
            results.append(run([task], True))
        except Exception as error:
            failed(task, error)
    return results


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
        finished = FinishedTasks([request.id], running.queue, project, running.seconds)
        dispatcher.publish_all([Publication(running.messages, request.id)], [finished])
