"""The periodic work of the observation: schedules, passes on request, repairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrator import metrics
from orchestrator.engine.messages import Message
from orchestrator.logs import logger
from orchestrator.operations.observation.healing import limits_of, repair_due_faults
from orchestrator.operations.observation.observation_pass import continue_pass
from orchestrator.operations.runtime.maintenance_job import AUDIT_SECONDS, Maintenance, MaintenanceJob
from orchestrator.store import observations
from orchestrator.store.connections.damaged_rows import apart
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.observation import groups, repairs

log = logger()

MAX_ROWS: Final = 1_000  # of a sweep
REPAIR_SECONDS: Final = 2.0  # between two searches for due repairs


def enqueue_groups(tools: Maintenance) -> Sequence[Message]:
    """Return messages for the groups to be observed."""
    return groups.due(tools.db, MAX_ROWS) if tools.settings.observation_interval_seconds else ()


def enqueue_observations(tools: Maintenance) -> Sequence[Message]:
    """Return messages for the resources of passes."""
    observed = observations.due(tools.db, tools.settings.re_enqueue_seconds, MAX_ROWS)
    metrics.count_recovered("observation", len(observed))
    return observed


def start_discoveries(tools: Maintenance) -> Sequence[Message]:
    """Have the groups of new resources created."""
    interval = tools.settings.observation_interval_seconds
    if interval:
        groups.start_discoveries(tools.db, tools.settings.region_name, interval)
    return ()


def continue_passes(tools: Maintenance) -> Sequence[Message]:
    """Select the next resources of passes; return their messages."""
    messages: list[Message] = []
    for stack_id in observations.due_passes(tools.db):
        with apart("stack", stack_id=stack_id), tools.db.transaction():
            messages += continue_pass(tools.db, tools.types, stack_id, tools.settings.re_enqueue_seconds)
    return messages


def repair(tools: Maintenance) -> Sequence[Message]:
    """Start due repairs. A fault of this code must not stop the sweep."""
    if not tools.settings.observation_interval_seconds:
        return ()
    try:
        return repair_due_faults(tools.db, tools.types, limits=limits_of(tools.settings))
    except UNREACHABLE:
        raise
    except Exception:
        log.exception("repair_error")
        return ()


GROUPS: Final = MaintenanceJob("observation_groups", enqueue_groups, groups.HAS_DUE, exclusive=True)
OBSERVATIONS: Final = MaintenanceJob(
    "observations", enqueue_observations, observations.HAS_DUE, exclusive=True
)
DISCOVERIES: Final = MaintenanceJob("discoveries", start_discoveries, every=AUDIT_SECONDS)
PASSES: Final = MaintenanceJob("observation_passes", continue_passes, observations.HAS_DUE_PASSES)
REPAIRS: Final = MaintenanceJob("repairs", repair, repairs.HAS_FAULTS, every=REPAIR_SECONDS)
