"""Execute a step: call the type, then observe. No transaction is open here.

The result is the outcome and the new state of the resource; `batch.py` writes both. Nested stacks have their
own steps (`nested/steps.py`), which run inside the same `execute`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.engine.check.absence import AbsenceInDoubt
from orchestrator.engine.check.decide import (
    PAUSES,
    Abandon,
    Adopt,
    Compare,
    Create,
    Delete,
    DropRow,
    InvalidState,
    Keep,
    Observe,
    OutcomeUnknown,
    Recreate,
    ReissueUpdate,
    RunAction,
    Step,
)
from orchestrator.engine.check.outcome import (
    MAX_CHECK_RETRIES,
    Deleted,
    Failed,
    Outcome,
    Postponed,
    PreviousOperationEnded,
    Ready,
    Unchanged,
    Unhealthy,
    Wait,
    error_text,
    failure_reason,
)
from orchestrator.engine.check.refusals import refusal_of
from orchestrator.errors import UNANSWERED_ERRORS, UNREACHABLE_ERRORS, ProviderError, Superseded
from orchestrator.operations.reconcile.action_steps import outcome_of_observed_action, run_action_step
from orchestrator.operations.reconcile.create_delete_steps import (
    FIND_SECONDS,
    adopt,
    create,
    delete,
    recreate,
)
from orchestrator.operations.reconcile.step_outcomes import error_outcome
from orchestrator.operations.reconcile.update_steps import compare, follow_operation, reissue_update
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import (
    OperationNotRecorded,
    StepResult,
    in_progress_event_written,
)
from orchestrator.store.connections.database import UNREACHABLE

RunStep = Callable[[ResourceOperation, Step, int], StepResult]


def run_step(operation: ResourceOperation, step: Step, retries_left: int) -> StepResult:
    """Run a step of a resource that is no nested stack."""
    if operation.resource_type.can_release and isinstance(step, Observe | ReissueUpdate):
        waits = operation.services.incarnations.reclaim(operation, operation.state.properties)
        if waits is not None:
            return StepResult(waits, operation.state)
    match step:
        case Create(wait_seconds=seconds):
            return create(operation, seconds, retries_left)
        case Adopt():
            return adopt(operation)
        case Observe():
            return follow_operation(operation, retries_left)
        case Compare():
            return compare(operation)
        case ReissueUpdate():
            return reissue_update(operation)
        case Recreate():
            return recreate(operation, step, retries_left)
        case Delete():
            return delete(operation, step, retries_left)
        case RunAction(action=action, request=request):
            return run_action_step(operation, action, request=request)
    return run_local_step(operation, step)


def run_local_step(operation: ResourceOperation, step: Step) -> StepResult:
    """Run a step that calls no provider."""
    state, name = operation.state, operation.resource.name
    match step:
        case DropRow(retained=retained):
            state.action = "DELETE"
            return StepResult(Deleted(silent=not retained), state)
        case OutcomeUnknown(reason=reason):
            return StepResult(Failed(failure_reason("OutcomeUnknown", name, reason)), state)
        case InvalidState(reason=reason):
            state.action = operation.visit.act or state.action
            if state.action == "CHECK":  # a resource that was never created fails its check
                left_alone = not operation.resource.never_created
                return StepResult(Unhealthy(reason, left_alone=left_alone), state)
            return StepResult(Unhealthy(failure_reason("Error", name, reason), left_alone=True), state)
        case Keep() | Abandon():
            return StepResult(Unchanged(), state)
    raise AssertionError(step)


def execute(
    operation: ResourceOperation, step: Step, retries_left: int, run: RunStep = run_step
) -> StepResult:
    """Run a step; errors of the type become outcomes."""
    state = operation.state
    if operation.visit.kind == "cleanup":
        state.action = "DELETE"
    try:
        result = _abort_if_stack_failed(operation, run(operation, step, retries_left))
        if _is_side_step(operation, step) and isinstance(result.outcome, Ready):
            return result._replace(outcome=PreviousOperationEnded(result.outcome.observation))
        return result
    except (
        Superseded,
        OperationNotRecorded,
        *UNREACHABLE,
    ):  # no outcome
        raise
    except Exception as error:
        state.absent = isinstance(error, AbsenceInDoubt)
        state.refused = state.op in ("UPDATE", *PAUSES) and not isinstance(error, UNANSWERED_ERRORS)
        outcome = _search_soon(operation, error_outcome(operation, error))
        if isinstance(outcome, Failed):
            outcome = _after_refusal(operation, step, outcome)
        elif _is_refused_in_failed_stack(operation):
            reason = f"{state.op} aborted: {error_text(error)}"
            outcome = Failed(failure_reason("Error", operation.resource.name, reason))
        if isinstance(step, RunAction) and step.action == "CHECK":
            outcome = _not_observed(operation, error, outcome)
        if isinstance(outcome, Wait) and state.op is None and operation.resource.op is None:
            return StepResult(Postponed(outcome.seconds, outcome.reason, outcome.refusal), state)
        started = not state.opened and not in_progress_event_written(operation.visit, state)
        return StepResult(outcome, state, started)


def _search_soon(operation: ResourceOperation, outcome: Outcome) -> Outcome:
    """Return the outcome of an error; the object of a create without an answer is searched soon."""
    state = operation.state
    lost = state.unanswered and state.op == "CREATE" and state.physical_id is None
    if not (lost and operation.resource_type.can_find and isinstance(outcome, Wait)):
        return outcome
    return replace(outcome, seconds=min(outcome.seconds or FIND_SECONDS, FIND_SECONDS))


def _is_refused_in_failed_stack(operation: ResourceOperation) -> bool:
    """Whether a create was refused temporarily, nothing was created, and the stack has failed: then it is not
    tried again.
    """
    state = operation.state
    in_flight = state.unanswered or operation.resource.lost_seconds is not None
    return operation.visit.halted and state.op == "CREATE" and state.physical_id is None and not in_flight


def _not_observed(operation: ResourceOperation, error: Exception, outcome: Outcome) -> Outcome:
    """Return the outcome of a CHECK that got no observation: after a few attempts it is reported apart from
    absent and broken resources, and the CHECK of the stack continues. An absence to be confirmed and the wait
    for a place are no attempts.
    """
    tries, refusal = operation.visit.unreachable_tries, refusal_of(error)
    if isinstance(outcome, Wait) and (refusal is None or tries < MAX_CHECK_RETRIES):
        return outcome
    return Unhealthy(f"could not be observed: {error_text(error)}", left_alone=True, refusal=refusal)


def _abort_if_stack_failed(operation: ResourceOperation, result: StepResult) -> StepResult:
    """Cancel a pending operation when the stack has failed or was cancelled."""
    visit, state, outcome = operation.visit, operation.state, result.outcome
    failed = visit.halted and visit.stack.status != "IN_PROGRESS"
    if not failed or not isinstance(outcome, Wait) or outcome.retried:
        return result
    type_ = operation.resource_type
    if not type_.can_cancel or state.op not in type_.preemptible or state.physical_id is None:
        return result
    cancelled = operation.calls.run(type_.cancel, operation.context(state.op), state.physical_id)
    reason = f"{state.op} aborted: {cancelled}"
    return StepResult(Failed(failure_reason("Error", operation.resource.name, reason)), state)


def report_aborted(operation: ResourceOperation, result: StepResult) -> StepResult:
    """Report an operation that outlasts its failed stack as aborted; it is followed as before."""
    visit, outcome = operation.visit, result.outcome
    if isinstance(outcome, Wait) and visit.halted and visit.stack.status == "FAILED":
        return result._replace(outcome=replace(outcome, aborted=True))
    return result


def _after_refusal(operation: ResourceOperation, step: Step, refused: Failed) -> Outcome:
    """Return the outcome of a refused request, perhaps after an observation of the object.

    The refusal of a repeated request does not end the earlier one (docs/internals/protocol.md rule 1): a
    pending operation is followed, and once it has ended, the answer to the repeated request counts. An action
    that precedes an update was perhaps refused because the object is gone or in error.
    """
    state, type_ = operation.state, operation.resource_type
    repeated = isinstance(step, RunAction | ReissueUpdate) and operation.resource.op is not None
    pending = repeated and state.unanswered
    precedes_update = isinstance(step, RunAction) and operation.visit.act is None and type_.calls_out
    if not pending and not precedes_update:
        return refused
    try:
        observation = operation.observe(operation.context(state.action))
    except (ProviderError, *UNREACHABLE_ERRORS) as error:
        outcome = error_outcome(operation, error)
        return outcome if isinstance(outcome, Wait) else refused
    if observation.error or not observation.exists:
        return outcome_of_observed_action(operation, observation) if precedes_update else refused
    if observation.ready or not pending:
        return refused
    return Wait(observation.retry_after, observation.reason or "state changed")


def _is_side_step(operation: ResourceOperation, step: Step) -> bool:
    """Whether a step only completes an earlier operation, so that the traversal's own action follows."""
    act = operation.visit.act
    match step:
        case RunAction(action=action):
            return action != act
        case Create() | Observe() | ReissueUpdate() | Recreate():
            return act is not None
    return False
