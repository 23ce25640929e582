"""Messages for signals whose message was lost, or which wait for a due time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrator import metrics
from orchestrator.engine.messages import Message
from orchestrator.operations.runtime.maintenance_job import MAX_ROWS, Maintenance, MaintenanceJob
from orchestrator.store.signals import queue


def enqueue_due(tools: Maintenance) -> Sequence[Message]:
    """Return messages for due signals."""
    messages = queue.due(tools.db, tools.settings.re_enqueue_seconds, MAX_ROWS)
    metrics.count_recovered("signal", len(messages))
    return messages


DUE: Final = MaintenanceJob("signals", enqueue_due, queue.HAS_DUE, exclusive=True)
