"""The maintenance jobs, in the order in which a sweep runs them. Each capability has its own."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.operations import queued_actions
from orchestrator.operations.events import webhook_delivery
from orchestrator.operations.maintenance import late_requests, node_messages, orphans, purge, stack_ends
from orchestrator.operations.observation import healing, observation_pass, rounds
from orchestrator.operations.runtime.maintenance_job import MaintenanceJob
from orchestrator.operations.signals import process
from orchestrator.operations.snapshots import cleanup


def maintenance_jobs() -> Sequence[MaintenanceJob]:
    """Return the jobs of a new sweep."""
    return (
        node_messages.DUE,
        process.DUE,
        rounds.GROUPS,
        observation_pass.OBSERVATIONS,
        late_requests.DUE,
        node_messages.QUEUED,
        webhook_delivery.wake_up_job(),
        stack_ends.OVERDUE,
        stack_ends.RESUMED,
        stack_ends.failing_stacks(),
        queued_actions.AT_REST,
        cleanup.PENDING,
        node_messages.SUPERSEDED,
        purge.BREAKERS,
        rounds.DISCOVERIES,
        stack_ends.STALLED,
        orphans.ORPHANS,
        observation_pass.PASSES,
        healing.REPAIRS,
        stack_ends.COUNTED,
    )
