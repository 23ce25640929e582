"""The other task: take in the signals of one resource.

As with `check`, a message carries an id and nothing else that is read; what is lost, the sweep rings for
again.
"""

from __future__ import annotations

from typing import Any

from orchestrator.logs import logger
from orchestrator.operations.signals.process import process_signals
from orchestrator.store.connections.database import UNREACHABLE
from tasks.app import app, dispatcher, engine
from tasks.publisher import SIGNAL_TASK

log = logger()


@app.task(name=SIGNAL_TASK, bind=True, max_retries=2, shared=False)
def signal(self: Any, resource_id: int) -> None:
    """Let a resource take in what it was sent, and enqueue what that woke."""
    try:
        rings = process_signals(engine(), resource_id)
    except UNREACHABLE as error:
        log.warning("database_unreachable", resource=resource_id, error=str(error))
        return  # the sweep rings again
    dispatcher.publish(rings, parent_id=self.request.id)
