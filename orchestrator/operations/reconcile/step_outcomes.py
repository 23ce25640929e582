"""The outcome of an observation or an error during a step."""

from __future__ import annotations

from orchestrator.engine.check.outcome import Outcome, Ready, outcome_of_error, outcome_of_observation
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import StepResult
from orchestrator.resources.base import Context, Created, Observation


def observe_operation(operation: ResourceOperation) -> Observation:
    """Observe the resource during its create or update."""
    state, was_open = operation.state, operation.resource.op in ("CREATE", "UPDATE")
    action = "UPDATE" if state.op == "UPDATE" else "CREATE"
    context = operation.context(action, None if was_open else 0.0)
    return operation.resource_type.observe(context, state.physical_id or "")


def result_of(
    operation: ResourceOperation,
    observation: Observation,
    retries_left: int,
    *,
    started: bool,
    deleting: bool = False,
) -> StepResult:
    """Return the result of an observation; outputs are recorded when the resource is ready."""
    outcome = outcome_of_observation(
        observation,
        name=operation.resource.name,
        deleting=deleting,
        retries_left=retries_left,
        retry_count=operation.visit.retry_count,
    )
    if isinstance(outcome, Ready):
        operation.record(observation)
    return StepResult(outcome, operation.state, started)


def error_outcome(operation: ResourceOperation, error: Exception, retries_left: int) -> Outcome:
    """Return the outcome of an error raised by the type."""
    name, count = operation.resource.name, operation.visit.retry_count
    return outcome_of_error(error, name=name, retries_left=retries_left, retry_count=count)


def grant_access(operation: ResourceOperation, created: Created, context: Context) -> None:
    """Grant access with the credentials that the type declares, if any."""
    grant = created.access or operation.resource_type.grants(context, created.physical_id)
    if grant is not None:
        operation.services.stored_context.grant_access(operation.resource.id, grant)
