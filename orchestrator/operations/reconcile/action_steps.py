"""Steps that check, suspend, resume or snapshot a resource (docs/internals/engine-semantics.md §10)."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.engine.check.outcome import (
    Failed,
    Outcome,
    PreviousOperationEnded,
    Ready,
    Unhealthy,
    Wait,
    outcome_of_action,
)
from orchestrator.operations.reconcile.step_outcomes import observe_and_advance
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import StepResult, observation_from_state
from orchestrator.resources.base import Context, Observation

# Elapsed time of an observation right after the request; 0 means that no request was sent.
JUST_STARTED_SECONDS = 0.001


def run_action_step(operation: ResourceOperation, action: str, *, request: bool) -> StepResult:
    """Run an action that changes no definition; `request` unless it was requested before.

    Without work for a provider, it ends at once.
    """
    state, type_ = operation.state, operation.resource_type
    state.action = action
    if action == "CHECK" and not type_.has_provider_check:
        return _check(operation)
    fresh = state.op != action
    supported = {"SNAPSHOT": type_.can_copy, "CHECK": True}.get(action, type_.can_pause)
    if type_.calls_out and not supported:
        if action == "SNAPSHOT":
            _snapshot_resource(operation)
        return _result_of(operation, observation_from_state(state), started=True)
    state.op = action
    if type_.calls_out and fresh:
        operation.record_start()
    token = _snapshot_resource(operation) if action == "SNAPSHOT" else None
    if action != "SNAPSHOT" and request:
        _request_action(operation, action)

    def context() -> Context:
        context = operation.context(action, JUST_STARTED_SECONDS if fresh else None)
        return replace(context, token=token or context.token)

    observation = observe_and_advance(operation, context)
    return _result_of(operation, observation, started=fresh and not type_.calls_out)


def _check(operation: ResourceOperation) -> StepResult:
    """Check the resource by an observation."""
    state, type_ = operation.state, operation.resource_type
    if not type_.can_check:
        reason = f"CHECK not supported for {operation.resource.type}"
        return StepResult(Ready(observation_from_state(state, reason)), state)
    observation = operation.observe(operation.context("CHECK", 0.0))
    if observation.exists and not observation.error and not observation.ready:
        observation = replace(observation, error=observation.reason or "It is not ready.", error_kind="Error")
    return _result_of(operation, observation, started=True)


def _request_action(operation: ResourceOperation, action: str) -> None:
    """Request a suspend, a resume or a check. Until it is answered, it may be carried out at any time."""
    state, type_ = operation.state, operation.resource_type
    state.unanswered = type_.calls_out
    verbs = {"SUSPEND": type_.suspend, "RESUME": type_.resume, "CHECK": type_.check}
    operation.calls.run(verbs[action], operation.context(action, 0.0), state.physical_id or "")
    state.unanswered = False


def _snapshot_resource(operation: ResourceOperation) -> str:
    """Request the resource snapshot unless that is recorded; return its token."""
    state, type_, visit = operation.state, operation.resource_type, operation.visit
    record = operation.services.record_snapshot
    token, recorded = record(visit, state, f"{operation.resource.uuid}-s{visit.traversal}", None)
    if visit.act == "SNAPSHOT" and recorded is None and type_.can_copy:
        context = replace(operation.context("SNAPSHOT", 0.0), token=token)
        record(visit, state, token, operation.calls.run(type_.snapshot, context, state.physical_id or ""))
    return token


def _result_of(operation: ResourceOperation, observation: Observation, *, started: bool) -> StepResult:
    state, type_ = operation.state, operation.resource_type
    outcome = outcome_of_observed_action(operation, observation)
    earlier = state.action != operation.visit.act  # the action of an earlier traversal
    if earlier and isinstance(outcome, Wait) and state.action in type_.preemptible:
        if type_.can_cancel:
            operation.calls.run(type_.cancel, operation.context(state.action), state.physical_id or "")
        outcome = Ready(observation_from_state(state))  # this traversal need not wait for it
    elif isinstance(outcome, Ready):
        operation.record(observation)
    elif isinstance(outcome, Failed) and state.action == "CHECK":
        outcome = Unhealthy(outcome.reason)
    return StepResult(outcome, state, started)


def outcome_of_observed_action(operation: ResourceOperation, observation: Observation) -> Outcome:
    """Return the outcome of an observation during an action.

    An update completes an open action and resumes a suspended resource first. A missing object, or an object
    in error, ends that action as failed, but not the update, which compares the resource next.
    """
    state, name = operation.state, operation.resource.name
    outcome = outcome_of_action(observation, name=name, physical_id=state.physical_id or "")
    if isinstance(outcome, Failed) and operation.visit.act is None:
        return PreviousOperationEnded(observation_from_state(state), outcome.reason)
    return outcome
