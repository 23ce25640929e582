"""The signal task: process the queued signals of a resource.

As in `check`, a message carries only an id. The sweep re-enqueues lost messages.
"""

from __future__ import annotations

from typing import Any

from orchestrator.logs import logger
from orchestrator.operations.signals.process import process_signals
from orchestrator.store.connections.database import UNREACHABLE
from tasks.app import app, engine
from tasks.execution import execution
from tasks.publisher import SIGNAL_TASK

log = logger()


@app.task(name=SIGNAL_TASK, bind=True, max_retries=2, shared=False)
def signal(self: Any, resource_id: int) -> None:
    """Process the signals of a resource and enqueue the nodes that became ready."""
    with execution(self.request) as running:
        try:
            running.messages = process_signals(engine(), resource_id)
        except UNREACHABLE as error:  # the sweep re-enqueues the resource
            log.warning("database_unreachable", resource=resource_id, error=str(error))
