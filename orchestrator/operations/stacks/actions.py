"""What can be asked of a stack besides another template (docs/internals/rest-api.md §6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import ActionInProgress, InvalidRequest, NotFound, NotSupported
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.request_body import read_object
from orchestrator.store.access import idempotency
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import children, completion, traversals
from orchestrator.store.traversals.accept import accept_rollback
from orchestrator.store.traversals.traversals import Locked

Action = Callable[[OperationContext, StackRow], list[CheckMessage]]


def start_action(context: OperationContext, stack: StackRow, body: Body) -> list[CheckMessage]:
    """Begin the one action that a body names.

    Raises:
        InvalidRequest: it names none, several or an unknown one.
        NotFound: the stack is gone.
        NotSupported: the stack is in no state for it.
    """
    action = ACTIONS[requested_action(body)]
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    return action(context, stack)


def requested_action(body: Body) -> str:
    """Return the one action that a body names.

    Raises:
        InvalidRequest: it names none, several or an unknown one.
    """
    names = list(read_object(body.read()))
    if not names:
        raise InvalidRequest("No action specified")
    if len(names) > 1:
        raise InvalidRequest("Multiple actions specified")
    if names[0] not in ACTIONS:
        raise InvalidRequest(f"Invalid action {names[0]} specified")
    return names[0]


def cancel_update(context: OperationContext, stack: StackRow) -> list[CheckMessage]:
    """Go back to the last good revision; what runs finishes first."""
    with context.database.connect() as db, db.transaction():
        idempotency.take(db, stack.project_id, context.asked, stack.uuid, stack.name)
        running = _lock_in_progress(db, stack, "UPDATE")
        opened = accept_rollback(
            db, stack.id, running.good_revision_id, created_by=context.caller.user, ended="cancelled"
        )
        children.disturb(db, stack.id)
    assert opened is not None  # it was there a moment ago, and nobody else could remove it since
    return [opened.ring]


def cancel_without_rollback(context: OperationContext, stack: StackRow) -> list[CheckMessage]:
    """Start nothing more; what runs finishes by itself."""
    with context.database.connect() as db, db.transaction():
        running = _lock_in_progress(db, stack, "UPDATE", "CREATE")
        traversals.halt(db, stack.id, running.traversal)
        traversals.enqueue_open_operations(db, stack.id, running.traversal)
        reason = f"Stack {running.action} cancelled"
        ended = completion.end_failed(
            db, stack.id, running.traversal, reason=reason, at_once=True, outcome="cancelled"
        )
    with context.database.connect() as db:
        # By itself: a child's end locks the child before its parent's node.
        children.halt_below(db, stack.id, running.traversal)
    return [] if ended is None else ended.rings


def suspend(context: OperationContext, stack: StackRow) -> list[CheckMessage]:
    """Pause everything, what stands on others first; a stack that is paused stays so."""
    return [] if stack.state == "SUSPEND_COMPLETE" else _start_traversal_over_all(context, stack, "SUSPEND")


def resume(context: OperationContext, stack: StackRow) -> list[CheckMessage]:
    """End the pause of everything that is paused."""
    return [] if stack.state == "RESUME_COMPLETE" else _start_traversal_over_all(context, stack, "RESUME")


def check(context: OperationContext, stack: StackRow) -> list[CheckMessage]:
    """Look at everything, also where something is wrong."""
    return _start_traversal_over_all(context, stack, "CHECK")


def _start_traversal_over_all(context: OperationContext, stack: StackRow, action: str) -> list[CheckMessage]:
    """Begin an action over whatever runs, but not over a removal: that ends, and is not to be taken back."""
    with context.database.connect() as db, db.transaction():
        now = traversals.lock(db, stack.id)
        if now is None:
            raise NotFound("Stack", stack.name)
        if now.state == "DELETE_IN_PROGRESS":
            raise ActionInProgress(stack.name, now.action)
        opened = traversals.start_traversal(db, stack.id, action)
        children.disturb(db, stack.id)
    assert opened is not None  # it was there when it was locked
    return [opened.ring]


def _lock_in_progress(db: Connection[TupleRow], stack: StackRow, *actions: str) -> Locked:
    """Return the stack as it is, locked, if one of these actions is in progress.

    Raises:
        NotFound: it is gone.
        NotSupported: it does something else, or has just ended.
    """
    now = traversals.lock(db, stack.id)
    if now is None:
        raise NotFound("Stack", stack.name)
    if now.action not in actions or now.status != "IN_PROGRESS":
        raise NotSupported(f"Cancelling update when stack is {now.state}")
    return now


ACTIONS: Final[Mapping[str, Action]] = {
    "cancel_update": cancel_update,
    "cancel_without_rollback": cancel_without_rollback,
    "suspend": suspend,
    "resume": resume,
    "check": check,
}
