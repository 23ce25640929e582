"""The one task: check these nodes of one traversal.

A message carries node ids and their traversal, nothing else that is read. A check that fails for a reason of
ours is logged and dropped: its lease runs out, and the sweep rings again.
"""

from __future__ import annotations

import time
from typing import Any

from orchestrator import metrics
from orchestrator.logs import logger
from orchestrator.operations.reconcile.check import check_nodes
from orchestrator.operations.runtime.lease_keeper import new_lease
from orchestrator.store.connections.database import UNREACHABLE
from tasks.app import app, dispatcher, engine
from tasks.celery_settings import QUEUES
from tasks.publisher import TASK

log = logger()

PAUSES = (
    0.0,
    0.2,
    1.0,
    2.0,
)  # seconds between tries at a database that restarts; a broken connection is replaced


@app.task(name=TASK, bind=True, max_retries=2, shared=False)
def check(self: Any, node_ids: list[int], traversal: int) -> None:
    """Visit nodes and enqueue what that unblocked."""
    queue = (self.request.delivery_info or {}).get("routing_key")
    begun = time.perf_counter()
    lease = new_lease()
    for tried, pause in enumerate(PAUSES):
        try:
            rings = check_nodes(
                engine(),
                node_ids,
                traversal,
                durable=queue == "provider",
                bulk=queue == "bulk",
                lease=lease,
                again=tried > 0,
            )
            break
        except UNREACHABLE as error:
            log.warning("database_unreachable", nodes=node_ids, error=str(error))
            time.sleep(pause)  # nothing else could be done meanwhile either
    else:
        return  # the sweep rings again
    dispatcher.publish(rings, parent_id=self.request.id)
    metrics.took(queue if queue in QUEUES else metrics.OTHER, time.perf_counter() - begun)
