"""The check task: visit nodes of a traversal.

A message carries node ids and their traversal; nothing else is read. An unexpected error in a check is
logged and the message dropped: the lease expires, and the sweep re-enqueues the node.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from orchestrator import metrics
from orchestrator.logs import logger
from orchestrator.operations.reconcile.check import Attempt, check_external, check_of
from orchestrator.store.connections.database import UNREACHABLE
from tasks import task_events
from tasks.app import app, engine
from tasks.celery_settings import QUEUES
from tasks.execution import execution
from tasks.publisher import OBSERVE_QUEUE, TASK

log = logger()


# Seconds before each try; a broken connection is replaced at once, a restarting database needs longer.
PAUSES = (0.0, 0.2, 1.0, 2.0)


@app.task(
    name=TASK,
    bind=True,
    max_retries=2,
    shared=False,
    Request=task_events.REQUEST,
    throws=(task_events.ResourceFailed,),
)
def check(self: Any, node_ids: list[int], traversal: int) -> str | None:
    """Visit nodes and enqueue the nodes that became ready; return the summary for Flower.

    Raises:
        ResourceFailed: a resource failed. Everything is committed and published by then.
    """
    attempt = Attempt()
    with execution(self.request) as running:
        visit = check_external if running.queue == OBSERVE_QUEUE else check_of(running.queue)
        for pause in PAUSES:
            try:
                running.messages = visit(engine(), node_ids, traversal, attempt)
                break
            except UNREACHABLE as error:
                attempt = replace(attempt, repeats=True)
                log.warning("database_unreachable", nodes=node_ids, error=str(error))
                time.sleep(pause)
        else:
            return None  # the sweep re-enqueues the nodes
    metrics.observe_check(running.queue if running.queue in QUEUES else metrics.OTHER, running.seconds)
    return task_events.summary(attempt.checked)
