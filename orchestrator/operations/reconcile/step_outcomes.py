"""The outcome of an observation or an error during a step."""

from __future__ import annotations

from orchestrator.engine.check.outcome import (
    Attempts,
    Outcome,
    Ready,
    outcome_of_error,
    outcome_of_observation,
)
from orchestrator.engine.check.ready_timeout import ready_limit, within_limit
from orchestrator.operations.resource_context.live_attributes import read_used_attributes
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import StepResult
from orchestrator.resources.base import Context, Created, Observation
from orchestrator.resources.verbs.values import found_ids


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
    if not (deleting or observation.ready):
        observation = _within_ready_limit(operation, observation)
    outcome = outcome_of_observation(
        observation,
        name=operation.resource.name,
        deleting=deleting,
        attempts=_attempts(operation, retries_left),
    )
    if isinstance(outcome, Ready):
        operation.record(observation)
        read_used_attributes(operation)
    return StepResult(outcome, operation.state, started)


def _within_ready_limit(operation: ResourceOperation, observation: Observation) -> Observation:
    """Return the observation; an object that is not ready in time is in error."""
    visit, resource, state = operation.visit, operation.resource, operation.state
    limit = ready_limit(visit, operation.resource_type, operation.services.settings.stack_action_timeout)
    elapsed = (resource.reachable_seconds or 0.0) if resource.op == state.op and not state.opened else 0.0
    return within_limit(observation, limit, elapsed, waited=visit.waited_seconds, halted=visit.halted)


def error_outcome(operation: ResourceOperation, error: Exception) -> Outcome:
    """Return the outcome of an error raised by the type."""
    return outcome_of_error(error, name=operation.resource.name, attempts=_attempts(operation, 0))


def _attempts(operation: ResourceOperation, retries_left: int) -> Attempts:
    visit, settings = operation.visit, operation.services.settings
    return Attempts(visit.retry_count, visit.unreachable_tries, retries_left, settings.retry_max_seconds)


def find_object(operation: ResourceOperation, context: Context) -> bool:
    """Search the object of an earlier create by its token. Record its id and grant access to it, except for a
    delete. Return whether it was found.
    """
    found = found_ids(operation.resource_type.find(context, context.token))
    if not found:
        return False
    physical_id = operation.state.physical_id = found[0]
    if context.action != "DELETE":
        grant_access(operation, Created(physical_id), context)
    return True


def grant_access(operation: ResourceOperation, created: Created, context: Context) -> None:
    """Grant access with the credentials that the type declares, if any."""
    grant = created.access or operation.resource_type.grants(context, created.physical_id)
    if grant is not None:
        operation.services.stored_context.grant_access(operation.resource.id, grant)
