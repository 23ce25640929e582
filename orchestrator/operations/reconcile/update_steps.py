"""Steps for an existing resource: compare, update, and follow an open operation."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.engine.check.change import (
    NO_NAMES,
    PREEMPT,
    REISSUE,
    TAKE_OVER,
    Ask,
    AwaitReady,
    Comparison,
    Decision,
    Forbidden,
    Recover,
    Refuse,
    Replace,
    Shadow,
    Update,
    decide_change,
)
from orchestrator.engine.check.decide import Keep
from orchestrator.engine.check.outcome import (
    Failed,
    Postponed,
    PreviousOperationEnded,
    Ready,
    Refreshed,
    Replaced,
    Restricted,
    Unchanged,
    Wait,
    failure_reason,
)
from orchestrator.engine.check.ready_timeout import failed_limit
from orchestrator.errors import InvalidTemplate, LimitExceeded, ProviderError, Superseded, TypeNotPermitted
from orchestrator.operations.reconcile.comparison import (
    comparison,
    with_definition,
    with_fact,
    with_known_drift,
)
from orchestrator.operations.reconcile.desired_state import apply_definition, record_requirements
from orchestrator.operations.reconcile.step_outcomes import (
    advance,
    observe_operation,
    result_of,
    take_result,
)
from orchestrator.operations.resource_context.live_attributes import read_used_attributes
from orchestrator.operations.resource_context.operation import RECOVERY, ResourceOperation, is_current
from orchestrator.operations.resource_context.state import (
    DesiredResource,
    ResourceState,
    StepResult,
    merged_requirements,
    observation_from_state,
    output_digest,
)
from orchestrator.resources.base import Observation

REPAIRED_REASON = "Update status to COMPLETE for FAILED resource neither update nor replace."


def compare(operation: ResourceOperation) -> StepResult:
    """Compare an existing resource with its definition, and carry out the decision."""
    before, desired = replace(operation.state), None
    case = comparison(operation, before)
    decision = decide_change(case)
    if isinstance(decision, Ask):  # the type stays: the definition is evaluated
        desired = apply_definition(operation)
        if desired.external_id is None and operation.state.shadowed:
            _unshadow(operation)
        case = with_definition(case, operation.state, desired)
        decision = decide_change(case)
    case, decision = _decided(operation, case, decision, before)
    informed = with_known_drift(operation, case, decision, before)
    if informed is not case:
        _, decision = _decided(operation, informed, decide_change(informed), before)
    if not isinstance(decision, Replace) and operation.resource_type.can_release:
        waits = operation.services.incarnations.reclaim(operation, before.properties)
        if waits is not None:
            return StepResult(waits, before, desired=desired)
    return carry_out(operation, decision, before, desired)


def _decided(
    operation: ResourceOperation, case: Comparison, decision: Decision, before: ResourceState
) -> tuple[Comparison, Decision]:
    """Return the decision, and the comparison with all facts that it has asked for."""
    while isinstance(decision, Ask):
        case = with_fact(operation, case, decision, before)
        decision = decide_change(case)
    return case, decision


def carry_out(
    operation: ResourceOperation, decision: Decision, before: ResourceState, desired: DesiredResource | None
) -> StepResult:
    """Carry out a decision about an existing resource; `before` is its state without the definition."""
    match decision:
        case Keep() if desired is not None and desired.external_id is not None:
            return _keep_external(operation, before)
        case Keep():
            return _settle_unchanged(operation, before)
        case Update(changed=changed):
            return _update(operation, changed, before)
        case Recover():
            return _start_recovery(operation, before)
        case Shadow():
            return _shadow(operation)
        case AwaitReady(observation=observation):
            return _await_ready(operation, observation, before)
        case Refuse(message=message):
            reason = failure_reason("NotSupported", operation.resource.name, message)
            return StepResult(Failed(reason), replace(before, action="UPDATE"))
        case Forbidden(action=action):
            return StepResult(Restricted(action), before)
    return StepResult(Replaced(), before, desired=desired)


def reissue_update(operation: ResourceOperation) -> StepResult:
    """Send an update again whose fate is unknown, for the current definition."""
    before, desired = replace(operation.state), None
    case = comparison(operation, before)._replace(restricted=NO_NAMES)
    decision = decide_change(case, REISSUE)
    if isinstance(decision, Ask):
        desired = apply_definition(operation)
        decision = decide_change(with_definition(case, operation.state, desired), REISSUE)
    if isinstance(decision, Update):
        return _update(operation, decision.changed, before)
    return StepResult(Replaced(), before, desired=desired)


def _update(operation: ResourceOperation, changed: frozenset[str], before: ResourceState) -> StepResult:
    """Update the resource in place."""
    state, type_ = operation.state, operation.resource_type
    state.action = "UPDATE"
    desired_requirements = state.requires, state.input_digests
    state.requires, state.input_digests = merged_requirements(before, state)  # until the update has ended
    state.op = "UPDATE"
    if type_.calls_out:
        operation.record_start()
    if changed:
        context = operation.context("UPDATE", 0.0)
        state.unanswered = type_.calls_out
        updated = operation.calls.run(
            type_.update, context, state.physical_id or "", state.properties, changed
        )
        state.unanswered = False
        take_result(operation, updated, context)
    result = result_of(operation, observe_operation(operation), 0, started=not type_.calls_out)
    if isinstance(result.outcome, Ready):
        state.requires, state.input_digests = desired_requirements
    return result


def _await_ready(operation: ResourceOperation, observation: Observation, before: ResourceState) -> StepResult:
    """Wait for a failed resource that exists; replace it if it does not become ready."""
    visit, settings = operation.visit, operation.services.settings
    limit = failed_limit(visit, operation.resource_type, settings.stack_action_timeout)
    remaining = limit - visit.waited_seconds
    if remaining <= 0:
        return StepResult(Replaced(), before)
    if observation.step:
        advance(operation, observation.step, lambda: operation.context(operation.resource.action, 0.0))
    after = observation.retry_after
    reason = f"it failed before and is not ready yet{': ' if observation.reason else ''}{observation.reason}"
    return StepResult(Postponed(remaining if after is None else min(after, remaining), reason), before)


def _settle_unchanged(operation: ResourceOperation, before: ResourceState) -> StepResult:
    """Settle an unchanged resource; rewrite its row only if the row is stale."""
    state, status = operation.state, operation.resource.status
    inputs_changed = state.input_digests != before.input_digests
    state.properties = before.properties
    if inputs_changed:
        _read_attributes(operation)
    outputs_changed = read_used_attributes(operation, missing_only=not inputs_changed)
    outputs_changed |= state.value_digest != before.value_digest
    stale = outputs_changed or before.corrected or operation.resource.suspect
    if status == "COMPLETE" and not stale:
        return StepResult(Unchanged(), state)
    if status == "FAILED":
        return StepResult(Refreshed(observation_from_state(state, REPAIRED_REASON)), state)
    state.action = "UPDATE"
    return StepResult(Refreshed(observation_from_state(state)), state)


def _read_attributes(operation: ResourceOperation) -> None:
    """Record the attributes of an unchanged object again: a required resource has changed, and attributes may
    follow it, such as the addresses of a server its port.
    """
    state, type_ = operation.state, operation.resource_type
    if not (type_.calls_out and state.attributes and state.physical_id) or state.shadowed:
        return
    seen = operation.observe(operation.context("CHECK", 0.0))
    if seen.exists and seen.ready and not seen.error:  # otherwise it is left to checks and observations
        operation.record(seen)


def _keep_external(operation: ResourceOperation, before: ResourceState) -> StepResult:
    """Keep an external resource; only its requirements are recorded again."""
    state = operation.state
    kept = replace(
        before,
        requires=state.requires,
        input_digests=state.input_digests,
        definition_id=state.definition_id,
    )
    return StepResult(Unchanged(), kept)


def _shadow(operation: ResourceOperation) -> StepResult:
    """Leave a resource alone that is shadowed by OS::Heat::None: it never changes and has no attributes.

    The row keeps its type, so that a later delete deletes the object (docs/internals/resource-types.md §A4).
    """
    state, before = operation.state, operation.state.value_digest
    state.attributes, state.reference_id, state.shadowed = {}, None, True
    state.value_digest = output_digest(state)
    record_requirements(operation)
    if before == state.value_digest and operation.resource.status == "COMPLETE":
        return StepResult(Unchanged(), state)
    state.action = "UPDATE"
    return StepResult(Refreshed(observation_from_state(state)), state)


def _unshadow(operation: ResourceOperation) -> None:
    """Observe a resource whose own type is back."""
    state = operation.state
    state.shadowed = False
    operation.record(operation.observe(operation.context("CHECK", 0.0)))


def follow_operation(operation: ResourceOperation, retries_left: int) -> StepResult:
    """Observe an open operation; an update follows if the definition has changed since its start."""
    state = operation.state
    taken_over = _take_over(operation)
    if taken_over is not None:
        return taken_over
    retries = 0 if state.op == "UPDATE" else retries_left
    if operation.is_recovering:
        result = _follow_recovery(operation)
    else:
        result = result_of(operation, observe_operation(operation), retries, started=False)
    if isinstance(result.outcome, Wait) and not result.outcome.retried:
        return _follow_pending(operation, result)
    return end_operation(operation, result)


def end_operation(operation: ResourceOperation, result: StepResult) -> StepResult:
    """Return the result of an observation that may end an operation; an update follows if the definition has
    changed since its start.
    """
    state = operation.state
    match result.outcome:
        case Failed(reason=reason) if not is_current(operation):
            ended = PreviousOperationEnded(observation_from_state(state), reason)
            return result._replace(outcome=ended)
        case Ready(observation=seen) if not is_current(operation):
            return result._replace(outcome=PreviousOperationEnded(seen))
        case Ready():
            record_requirements(operation)
    return result


def _take_over(operation: ResourceOperation) -> StepResult | None:
    """Replace a resource with an open operation if its current definition requires that: the replacement does
    not wait for the end of the operation. None: the operation is followed.
    """
    visit, type_, state = operation.visit, operation.resource_type, operation.state
    if visit.act is not None or visit.halted or not type_.calls_out or is_current(operation):
        return None
    if state.op in type_.adjustable or state.op in type_.preemptible or "pre-update" in visit.hooks:
        return None
    scratch = operation._replace(state=replace(state))
    case, desired = comparison(operation, state), None
    decision = decide_change(case, TAKE_OVER)
    if isinstance(decision, Ask):
        try:
            desired = apply_definition(scratch)
        except (
            InvalidTemplate,
            LimitExceeded,
            TypeNotPermitted,
            ProviderError,
        ):  # reported when the operation has ended
            return None
        decision = decide_change(with_definition(case, scratch.state, desired), TAKE_OVER)
    if not isinstance(decision, Replace):
        return None
    return StepResult(Replaced(), state, desired=desired)


def _follow_pending(operation: ResourceOperation, result: StepResult) -> StepResult:
    """Change or cancel a pending operation of an older definition, if its type supports that."""
    state, type_ = operation.state, operation.resource_type
    adjustable = state.op in type_.adjustable
    if not (adjustable or state.op in type_.preemptible) or is_current(operation):
        return result
    if adjustable:
        return reissue_update(operation)
    if isinstance(decide_change(comparison(operation, state), PREEMPT), Replace):
        operation.calls.run(type_.cancel, operation.context(state.op or ""), state.physical_id or "")
        return result._replace(outcome=Replaced())
    state.value_digest = output_digest(state, type_.live_attributes)  # dependents no longer wait for it
    ended = PreviousOperationEnded(observation_from_state(state, "Given up for a newer template"))
    return result._replace(outcome=ended)


def _start_recovery(operation: ResourceOperation, before: ResourceState) -> StepResult:
    """Begin to recover the object of an unchanged resource: the first repair of an object in error.

    A recovery is an update with a recorded step. It is requested once; again only after a request without an
    answer, or after the death of the worker that sent it. If the object is still in error then, the update
    fails, and the next repair is a replacement (operations/adr/0019).
    """
    state = operation.state
    state.action = "UPDATE"
    state.requires, state.input_digests = merged_requirements(before, state)  # until the update has ended
    state.op = "UPDATE"
    operation.record_start()
    _request_recovery(operation)
    return result_of(operation, _observe_recovery(operation), 0, started=False)


def _follow_recovery(operation: ResourceOperation) -> StepResult:
    """Observe a recovery; repeat its request if that may not have been sent."""
    observation = _observe_recovery(operation)
    refused = operation.visit.unreachable_tries or operation.visit.refusal
    unsent = refused or operation.resource.lost_seconds is not None
    if observation.error and unsent:
        _request_recovery(operation)
        observation = _observe_recovery(operation)
    return result_of(operation, observation, 0, started=False)


def _request_recovery(operation: ResourceOperation) -> None:
    if not operation.record_step(RECOVERY):
        raise Superseded("the lease was lost before a recovery was requested")
    operation.calls.run(
        operation.resource_type.recover, operation.context("UPDATE", 0.0), operation.state.physical_id or ""
    )


def _observe_recovery(operation: ResourceOperation) -> Observation:
    """Observe the object; it is not in error while the provider works on it."""
    observation = observe_operation(operation)
    if observation.error and observation.busy:
        return replace(observation, error="", ready=False, busy=False)
    return observation
