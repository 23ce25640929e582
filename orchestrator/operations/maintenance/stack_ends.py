"""Stacks whose action times out, fails, continues or stalls, and the counts of their progress."""

from __future__ import annotations

import time
from typing import Final

from orchestrator import metrics
from orchestrator.engine.messages import CheckMessage
from orchestrator.logs import logger
from orchestrator.operations import stack_completion
from orchestrator.operations.runtime.maintenance_job import (
    AUDIT_SECONDS,
    MAX_ROWS,
    Maintenance,
    MaintenanceJob,
)
from orchestrator.store.connections.damaged_rows import apart
from orchestrator.store.connections.database import try_lock, unlock
from orchestrator.store.maintenance import stalled, sweep_queries
from orchestrator.store.stacks import progress
from orchestrator.store.traversals import resumption, traversals

log = logger()

COUNTING: Final = 0x5357454551  # for a single count at a time
COUNTING_SECONDS: Final = 0.025  # time after which a sweep counts no further stack


def fail_overdue(tools: Maintenance) -> list[CheckMessage]:
    """Fail the stacks whose action timed out."""
    messages: list[CheckMessage] = []
    for stack_id, traversal in sweep_queries.timed_out(tools.db, tools.settings.stack_action_timeout):
        metrics.count_recovered("timed_out", 1)
        with apart("stack", stack_id=stack_id):
            timed_out = stack_completion.TIMED_OUT
            messages += stack_completion.fail(tools.database, stack_id, traversal, timed_out)
    return messages


def resume(tools: Maintenance) -> list[CheckMessage]:
    """Continue the failed actions whose pause is over."""
    messages: list[CheckMessage] = []
    for stack_id, traversal in resumption.due(tools.db, MAX_ROWS):
        metrics.count_recovered("resumed", 1)
        with apart("stack", stack_id=stack_id):
            messages += resumption.resume(tools.db, stack_id, traversal)
    return messages


class FailingStacks:
    """Follows the open operations of failing stacks to their end, and ends the stacks then."""

    def __init__(self) -> None:
        """Begin without a followed traversal."""
        self._followed: set[tuple[int, int]] = set()

    def run(self, tools: Maintenance) -> list[CheckMessage]:
        """Halt, follow and end."""
        messages: list[CheckMessage] = []
        for stack_id, traversal in sweep_queries.keep_going_finished(tools.db):
            with apart("stack", stack_id=stack_id):
                traversals.halt(tools.db, stack_id, traversal)
        halted = sweep_queries.failing(tools.db)
        for stack_id, traversal in halted:
            if (stack_id, traversal) not in self._followed:
                with apart("stack", stack_id=stack_id):
                    traversals.enqueue_open_operations(tools.db, stack_id, traversal)
        self._followed = set(halted)
        for stack_id, traversal in sweep_queries.drained(tools.db):
            with apart("stack", stack_id=stack_id):
                messages += stack_completion.drain(tools.database, stack_id, traversal)
        return messages


def recover_stalled(tools: Maintenance) -> list[CheckMessage]:
    """Recover stalled stacks; there should never be any (docs/internals/protocol.md rule 16)."""
    messages: list[CheckMessage] = []
    for stack_id, traversal, stack in stalled.stalled_stacks(tools.db):
        metrics.count_recovered("stalled", 1)
        log.error("stack_stalled", stack=stack, traversal=traversal)
        with apart("stack", stack=stack):
            messages += stalled.restart_traversal(tools.db, stack_id, traversal)
    for stack_id, traversal, stack in stalled.unplanned_stacks(tools.db):
        metrics.count_recovered("stranded", 1)
        log.error("stack_stranded", stack=stack, traversal=traversal)
        with apart("stack", stack=stack):
            messages += stack_completion.fail_immediately(tools.database, stack_id, traversal)
    return messages


def count_progress(tools: Maintenance) -> list[CheckMessage]:
    """Count the progress of active stacks; the more expensive the count, the more rarely."""
    if not try_lock(tools.db, COUNTING):
        return []
    try:
        started = time.monotonic()
        for stack_id, traversal, ended in progress.due(tools.db):
            with apart("stack", stack_id=stack_id):
                progress.count(tools.db, stack_id, traversal, final=ended)
            if time.monotonic() - started > COUNTING_SECONDS:
                break
    finally:
        unlock(tools.db, COUNTING)
    return []


OVERDUE: Final = MaintenanceJob("overdue_stacks", fail_overdue, sweep_queries.HAS_ENDING)
RESUMED: Final = MaintenanceJob("resumed_stacks", resume, resumption.HAS_DUE)
STALLED: Final = MaintenanceJob("stalled_stacks", recover_stalled, every=AUDIT_SECONDS)
COUNTED: Final = MaintenanceJob("progress", count_progress, progress.HAS_DUE)


def failing_stacks() -> MaintenanceJob:
    """Return the job of failing stacks, which remembers those that it follows."""
    return MaintenanceJob("failing_stacks", FailingStacks().run, sweep_queries.HAS_ENDING)
