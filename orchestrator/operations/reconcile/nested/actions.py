"""Steps of a nested stack's resource that are the same for all types: delete, and the actions."""

from __future__ import annotations

import uuid

from orchestrator.engine.check.child_status import ChildRequest, ChildState, ChildStep, child_status
from orchestrator.engine.check.outcome import Deleted, Ready
from orchestrator.operations.reconcile.nested.advance import CHILD_GONE
from orchestrator.operations.reconcile.nested.operation import (
    NestedOperation,
    child_failed,
    failed,
    transition,
    wait_for_child,
)
from orchestrator.operations.resource_context.state import (
    StepResult,
    in_progress_event_written,
    observation_from_state,
    output_digest,
)
from orchestrator.operations.snapshots.restored_template import CHILD
from orchestrator.store import observations

CHILD_DELETING = "Its stack is being deleted."
CHILD_DELETE_FAILED = "The delete of its stack has failed."


def delete_child(nested: NestedOperation) -> StepResult:
    """Delete the child, or wait for the end of its delete."""
    operation, child = nested.operation, nested.child
    state = operation.state
    state.action = "DELETE"
    if child is None or child.gone:
        started = not in_progress_event_written(operation.visit, state)
        return StepResult(Deleted(), state, started)
    if child.action == "DELETE" and state.op == "DELETE":
        match child_status(child, nested.request):
            case "running":
                return wait_for_child(nested, 0)
            case "failed":
                return child_failed(nested, child)
    return transition(nested, ChildStep("delete", child))


def run_child_action(nested: NestedOperation, action: str) -> StepResult:
    """Run an action on the child, or judge its end.

    An operation of the child that a user or a signal has started is not superseded: a CHECK observes the
    child's resources beside it, and any other action waits for its end (operations/adr/0009).
    """
    operation, child = nested.operation, nested.child
    state, visit = operation.state, operation.visit
    fresh, earlier = state.op != action, action != visit.act
    state.action = action
    if child is None or child.gone:
        return failed(nested, "NotFound", CHILD_GONE)
    if child.action == "DELETE":  # requested directly; an action would stop the delete
        return failed(nested, "NotFound", CHILD_DELETING if child.in_progress else CHILD_DELETE_FAILED)
    requested_here = nested.request is not None and nested.request.parent_traversal == visit.traversal
    if fresh or not (earlier or requested_here or visit.halted):
        if not _is_independent(child, nested.request):
            return _request_action(nested, action)
        return _observe_child(nested, child) if action == "CHECK" else wait_for_child(nested, 0)
    match child_status(child, nested.request):
        case "running":
            return wait_for_child(nested, 0)
        case "failed" if not earlier:
            return child_failed(nested, child)
        case "elsewhere" if not earlier and not visit.halted:
            return _request_action(nested, action)
    state.value_digest = output_digest(state)
    return StepResult(Ready(observation_from_state(state)), state)


def _is_independent(child: ChildState, request: ChildRequest | None) -> bool:
    """Return whether the child is in an operation that a user or a signal has started."""
    if not child.in_progress or child.halted:
        return False
    return request is None or child.traversal != request.traversal or request.parent_traversal is None


def _observe_child(nested: NestedOperation, child: ChildState) -> StepResult:
    """Let the sweep start an observation pass over the child's resources; the resource itself is ready."""
    state = nested.operation.state
    reason = f"Its stack is {child.action}_{child.status}: its resources are observed beside it"
    observations.begin(nested.db, child.id, f"Observation of the resources started during {child.action}")
    state.value_digest = output_digest(state)
    return StepResult(Ready(observation_from_state(state, reason)), state)


def _request_action(nested: NestedOperation, action: str) -> StepResult:
    """Request an action of the child. The child's own snapshot is its resource snapshot in a SNAPSHOT; the
    id is recorded first.
    """
    operation, snapshot = nested.operation, None
    if action == "SNAPSHOT":
        resource_uuid = operation.resource.uuid
        token = f"{resource_uuid}-s{operation.visit.traversal}"
        snapshot = uuid.uuid5(uuid.UUID(resource_uuid), token)
        operation.services.record_snapshot(operation.visit, operation.state, token, {CHILD: str(snapshot)})
    return transition(nested, ChildStep("act", nested.child, action=action, desired=snapshot))
