"""The step that deletes a resource."""

from __future__ import annotations

from orchestrator.engine.check.outcome import Deleted, Wait
from orchestrator.operations.reconcile.create_steps import REQUEST_PENDING
from orchestrator.operations.reconcile.step_outcomes import result_of
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import StepResult


def delete(
    operation: ResourceOperation, wait_seconds: float, retries_left: int, *, find_first: bool
) -> StepResult:
    """Delete the resource; `find_first` if the effect of an earlier create is unknown."""
    state, type_ = operation.state, operation.resource_type
    fresh = state.op != "DELETE"
    if state.physical_id is None and find_first:
        context = operation.context("DELETE")
        found = type_.find(context, context.token)
        if found is None:
            if wait_seconds > 0:
                return StepResult(Wait(wait_seconds, REQUEST_PENDING), state)
            return StepResult(Deleted(), state, started=True)
        state.physical_id = found
    state.op = "DELETE"
    if fresh and type_.calls_out:
        operation.record_start()
    context, physical_id = operation.context("DELETE", 0.0 if fresh else None), state.physical_id or ""
    type_.delete(context, physical_id)
    seen = type_.observe(context, physical_id)
    if not seen.exists and type_.needs_lease:
        operation.services.stored_context.revoke_access(operation.resource.id)
        if (users := operation.users()) is not None:
            users.release()
    started = fresh and not type_.calls_out
    return result_of(operation, seen, retries_left, started=started, deleting=True)
