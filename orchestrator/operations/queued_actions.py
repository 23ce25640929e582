"""Start or drop the queued action of a stack that has come to rest (docs/internals/engine-semantics.md §10).

A queued action starts when the stack is COMPLETE, and is dropped when it is FAILED. A delete drops it at
once. A newer operation of the stack postpones it.
"""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator import metrics
from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import ActionInProgress, Conflict
from orchestrator.logs import logger
from orchestrator.operations.runtime.maintenance_job import Maintenance, MaintenanceJob
from orchestrator.store import snapshots
from orchestrator.store.connections.damaged_rows import apart
from orchestrator.store.traversals import children, queued_actions, traversals

log = logger()


class ActionQueued(Conflict):
    """The stack has a queued action of another kind."""

    def __init__(self, name: str, queued_action: str) -> None:
        """Name the stack and its queued action."""
        super().__init__(f"Stack {name} already has a queued action ({queued_action}).")


def require_queueable(name: str, action: str, in_progress: str, queued_action: str | None) -> bool:
    """Return whether the action is still to be queued; False if it is queued already.

    Raises:
        ActionInProgress: the stack is being deleted.
        ActionQueued: another action is queued.
    """
    if in_progress == "DELETE":
        raise ActionInProgress(name, in_progress)
    if queued_action not in (None, action):
        raise ActionQueued(name, str(queued_action))
    return queued_action is None


def reason_of(action: str, in_progress: str) -> str:
    """Return the reason of the event that reports a queued action."""
    return f"{action} is queued: it starts when the {in_progress} in progress is complete"


def start_or_drop(db: Connection[TupleRow], stack_id: int) -> list[CheckMessage]:
    """Start the queued action of a stack at rest, or drop it; return the messages to send.

    Without effect if the stack has no queued action or is in progress. Opens its own transaction unless
    the caller has one.
    """
    with db.transaction():
        at_rest = queued_actions.lock_at_rest(db, stack_id)
        if at_rest is None:
            return []
        queued_action, action, status = at_rest
        if status != "COMPLETE":
            reason = f"The queued {queued_action} was dropped: {action} before it ended with {status}"
            queued_actions.drop(db, stack_id, queued_action, reason)
            log.info("queued_action_dropped", stack_id=stack_id, action=queued_action)
            return []
        queued_actions.clear(db, stack_id, queued_action)
        opened = _start(db, stack_id, queued_action)
        children.mark_stale(db, stack_id)
        log.info("queued_action_started", stack_id=stack_id, action=queued_action)
        return [] if opened is None else [opened.message]


def _start(db: Connection[TupleRow], stack_id: int, action: str) -> traversals.StartedTraversal | None:
    if action != "SNAPSHOT":
        return traversals.start_traversal(db, stack_id, action)
    queued = queued_actions.queued_snapshot(db, stack_id)
    ground = snapshots.lock(db, stack_id)
    if queued is None or ground is None:  # the snapshot was purged
        return None
    return snapshots.begin(db, stack_id, ground, queued.name, queued.uuid)[1]


def start_at_rest(tools: Maintenance) -> list[CheckMessage]:
    """Start or drop the queued actions of all stacks at rest."""
    messages: list[CheckMessage] = []
    for stack_id in queued_actions.stacks_at_rest(tools.db):
        metrics.count_recovered("queued_action", 1)
        with apart("stack", stack_id=stack_id):
            messages += start_or_drop(tools.db, stack_id)
    return messages


AT_REST: Final = MaintenanceJob("queued_actions", start_at_rest, queued_actions.HAS_QUEUED)
