"""Wake up the webhooks that recent events concern; `webhook_delivery.py` delivers."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.engine.messages import Message
from orchestrator.operations.runtime.maintenance_job import Maintenance, MaintenanceJob
from orchestrator.store.events import webhooks


class WebhookWakeUp:
    """Remembers the last event up to which webhooks were marked as due, while a webhook is active."""

    def __init__(self) -> None:
        """Begin without a position: the first run marks all webhooks."""
        self._rung_until: int | None = None

    def run(self, tools: Maintenance) -> Sequence[Message]:
        """Mark the webhooks that events since the last run concern."""
        self._rung_until = webhooks.mark_due(tools.db, self._rung_until)
        return ()

    def forget(self) -> None:
        """Forget the position: no webhook is active."""
        self._rung_until = None


def new_job() -> MaintenanceJob:
    """Return the job of a new sweep."""
    job = WebhookWakeUp()
    return MaintenanceJob("webhooks", job.run, webhooks.HAS_ACTIVE, rest=job.forget)
