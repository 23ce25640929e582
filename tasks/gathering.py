"""Tasks that a worker receives together are carried out together (adr/0002).

A worker of local types reads several checks from the broker at once, those that are already there
(`broker_connections.py`), and waits for none. Each remains a task: it is received, started, and it succeeds
or fails with its own events; it can be revoked, and is acknowledged at its end. Only the database work and
the publication are shared (`check.carry_out`). A single message takes Celery's own way.
"""

from __future__ import annotations

import os
import time
from typing import Any, Final

from billiard.einfo import ExceptionInfo
from celery.concurrency.solo import TaskPool
from celery.worker.request import Request
from celery.worker.strategy import default

from tasks import check
from tasks.fair_queues import GATHERED, LANES
from tasks.publisher import PROJECT_HEADER

GATHERS: Final = False  # an idle worker can stall between two reads (adr/0002, "Status")
LOCAL: Final = "local"  # lane of the types that are checked together


def strategy(task: Any, app: Any, consumer: Any, **options: Any) -> Any:
    """Return Celery's handler of messages, which gathers checks if the worker has a single thread and no
    queue of providers.
    """
    lanes = {LANES.get(queue) for queue in app.amqp.queues.consume_from}
    if GATHERS and consumer.hub is not None and isinstance(consumer.pool, TaskPool) and lanes == {LOCAL}:
        check.pace.gathers = True
        consumer = Gathering(consumer)
    return default(task, app, consumer, **options)


class Gathering:
    """A consumer whose checks are carried out after all messages of a read were received."""

    def __init__(self, consumer: Any) -> None:
        """Take Celery's consumer."""
        self._consumer = consumer
        self._requests: list[Request] = []

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of Celery's consumer."""
        return getattr(self._consumer, name)

    def on_task_request(self, request: Request) -> None:
        """Add a task; the first one has all carried out in the next turn of the event loop."""
        if not self._requests:
            self._consumer.hub.call_soon(self._carry_out)
        self._requests.append(request)

    def _carry_out(self) -> None:
        requests, self._requests = self._requests, []
        checks = [request for request in requests if _queue(request) == GATHERED]
        single = [request for request in requests if _queue(request) != GATHERED]
        if len(checks) == 1:
            single = checks + single
        elif checks:
            carry_out(checks)
        for request in single:
            self._consumer.on_task_request(request)
        if self._consumer.task_consumer is not None:
            channel = self._consumer.task_consumer.channel
            channel.further_queue, channel.further = GATHERED, check.pace.together - 1


def carry_out(requests: list[Request]) -> None:
    """Carry out checks; each ends with its own events and its own result."""
    current = [request for request in requests if not request.revoked()]
    if not current:
        return
    accepted_at = time.monotonic()
    for request in current:
        request.on_accepted(os.getpid(), accepted_at)
    results = check.carry_out([_task(request) for request in current])
    seconds = (time.monotonic() - accepted_at) / len(current)
    for request, (summary, error) in zip(current, results, strict=True):
        if error is None:
            request.on_success((False, repr(summary), seconds))
        else:
            details = ExceptionInfo((type(error), error, error.__traceback__))
            details.exception = error  # without its wrapper for other processes
            request.on_failure(details, return_ok=True)


def _task(request: Request) -> check.CheckTask:
    node_ids, traversal = request.args
    project = request.request_dict.get(PROJECT_HEADER) or ""
    return check.CheckTask(request.id, request.root_id or "", project, _queue(request), node_ids, traversal)


def _queue(request: Request) -> str:
    return (request.delivery_info or {}).get("routing_key") or ""
