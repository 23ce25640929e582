"""Steps that create, adopt or delete a resource."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from orchestrator.engine.check.absence import AbsenceInDoubt
from orchestrator.engine.check.change import ADOPT, Evidence, Replace, decide_change
from orchestrator.engine.check.decide import Delete, Recreate
from orchestrator.engine.check.outcome import (
    FIRST_DELETE_RETRY_SECONDS,
    Attempts,
    Deleted,
    DeleteProgress,
    Failed,
    Ready,
    Replaced,
    Wait,
    failure_reason,
    outcome_of_delete,
)
from orchestrator.errors import (
    UNANSWERED_ERRORS,
    UNREACHABLE_ERRORS,
    ProviderBusy,
    ProviderConflict,
    ProviderError,
    ProviderFailed,
    ProviderSilent,
)
from orchestrator.operations.reconcile.comparison import comparison, type_changed
from orchestrator.operations.reconcile.desired_state import apply_definition
from orchestrator.operations.reconcile.step_outcomes import (
    attempts_of,
    find_object,
    finds_by_token,
    grant_access,
    hide_data,
    observe_and_advance,
    observe_operation,
    result_of,
    search_later,
)
from orchestrator.operations.reconcile.update_steps import end_operation, follow_operation
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import StepResult, in_progress_event_written
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.verbs.values import found_ids

FIND_SECONDS: Final = 3.0  # pause between searches for the object of a create without an answer
NO_ID = "Resource ID was not provided."
REQUEST_PENDING = "an earlier request for it may still be carried out"


def create(operation: ResourceOperation, wait_seconds: float, retries_left: int) -> StepResult:
    """Create the resource, or find the result of an earlier request."""
    state, external = operation.state, operation.resource_type.calls_out
    if type_changed(operation):  # started for an older definition: its cleanup finds and deletes the result
        return StepResult(Replaced(), state)
    fresh = state.op is None
    if external and not fresh and operation.resource_type.can_find:
        earlier = _earlier_request(operation, wait_seconds, retries_left)
        if earlier is not None:
            return earlier
        search_later(operation)
    desired = apply_definition(operation)
    if desired.external_id is not None:
        return _adopt_external(operation, desired.external_id)
    if fresh and external and operation.resource_type.can_release:
        waits = operation.services.incarnations.release(operation)
        if waits is not None:
            return StepResult(waits, state)
    context = operation.context("CREATE", attempt=state.attempt + 1) if fresh else operation.context("CREATE")
    taken = fresh and external and operation.resource_type.can_find and _name_is_taken(operation, context)
    # Refused, nothing of this attempt is recorded.
    with operation.calls.reserved(context) if fresh and external else nullcontext():
        if fresh:
            state.attempt, state.action = state.attempt + 1, "CREATE"
        state.op = "CREATE"
        if taken:
            raise ProviderConflict(f"There is another {operation.resource_type.name} of this name.")
        if external and not state.opened:  # also after a search, which takes time: the lease may be lost
            operation.record_start()
        seen = _send_create(operation, context)
    if seen is None or seen.step:
        seen = observe_operation(operation)
    return result_of(operation, seen, retries_left, started=fresh and not external)


def _name_is_taken(operation: ResourceOperation, context: Context) -> bool:
    """Return whether `find` returns an object before the first request: it has the given name and belongs to
    another owner. After a request without an answer, it could not be distinguished from the resource's own.
    """
    type_ = operation.resource_type
    if type_.unique is None or finds_by_token(operation, context):
        return False
    return bool(found_ids(operation.calls.run(type_.find, context, context.token)))


def _earlier_request(
    operation: ResourceOperation, wait_seconds: float, retries_left: int
) -> StepResult | None:
    """Return the result of an earlier request, for whichever definition; None if it had no effect. Until it
    can no longer be carried out, its object is searched every few seconds.
    """
    if find_object(operation, operation.context("CREATE")):
        return follow_operation(operation, retries_left)
    if wait_seconds > 0:
        return StepResult(Wait(min(wait_seconds, FIND_SECONDS), REQUEST_PENDING), operation.state)
    return None


def _send_create(operation: ResourceOperation, context: Context) -> Observation | None:
    """Send the create request; return the object as the answer describes it. Until it is answered, it may be
    carried out at any time.
    """
    state, type_ = operation.state, operation.resource_type
    state.unanswered = type_.calls_out
    try:
        created = operation.calls.run(type_.create, context, state.properties)
    except UNANSWERED_ERRORS as error:
        found = _find_at_once(operation, context) if type_.calls_out and type_.can_find else None
        state.unanswered = found is None or not (found or isinstance(error, ProviderFailed))
        if not found:
            raise
        return None
    except ProviderError:
        state.unanswered = False  # a refusal is an answer
        # An earlier request, carried out only now, may be the reason: its name or address is in use.
        repeated = operation.resource.op == "CREATE"
        if not (repeated and type_.can_find and _find_at_once(operation, context, doubts=True)):
            raise
        return None
    state.unanswered = False
    state.physical_id, state.data = created.physical_id, created.data
    hide_data(operation, created)
    grant_access(operation, created, context)
    return created.observation


def _find_at_once(operation: ResourceOperation, context: Context, *, doubts: bool = False) -> bool | None:
    """Return whether a create without an answer was carried out already, None if the search has failed: its
    error is not reported instead of the first error.

    Raises:
        AbsenceInDoubt: `doubts`, and an object was not found that may exist.
    """
    try:
        return find_object(operation, context)
    except AbsenceInDoubt:
        if doubts:
            raise
        return None
    except (ProviderError, *UNREACHABLE_ERRORS):
        return None


def recreate(operation: ResourceOperation, step: Recreate, retries_left: int) -> StepResult:
    """Delete a resource that failed during its create, then create it again under a new token. An object that
    is ready before the request to delete it is kept.
    """
    state, type_ = operation.state, operation.resource_type
    if type_.calls_out and step.request and operation.resource.lost_seconds is None:
        kept = _ready_after_all(operation)
        if kept is not None:
            return kept
    state.unanswered = type_.calls_out  # from here on its delete may be carried out
    try:
        observation, _ = _delete_object(operation, lambda: operation.context("DELETE"), request=step.request)
    except ProviderError as error:
        sent = isinstance(error, ProviderSilent | AbsenceInDoubt) or state.requested
        refused = step.request and not sent
        state.unanswered = not refused or operation.resource.lost_seconds is not None
        raise
    if observation.exists:
        return StepResult(Wait(observation.retry_after, "removing what went wrong", discard=True), state)
    state.physical_id = state.op = state.reference_id = None
    state.unanswered = state.requested = False  # the next object has its own delete
    state.data, state.attributes, state.given_metadata = {}, {}, None
    try:
        return create(operation, 0.0, retries_left)
    except ProviderBusy:
        if state.op is None:  # its start was refused: the object is gone, and the next one not requested
            state.op, state.attempt = "CREATE", state.attempt + 1
        raise


def _ready_after_all(operation: ResourceOperation) -> StepResult | None:
    """Return the result of a create whose object is ready by now; None if it is not."""
    observation = observe_operation(operation)
    if observation.error or not (observation.exists and observation.ready):
        return None
    operation.state.op = "CREATE"
    return end_operation(operation, result_of(operation, observation, 0, started=False))


def _adopt_external(operation: ResourceOperation, physical_id: str) -> StepResult:
    """Take an external resource: it is observed and never changed."""
    state = operation.state
    state.physical_id, state.action = physical_id, "CHECK"
    state.attempt = max(state.attempt, 1)
    observation = operation.observe(operation.context("CHECK", 0.0), physical_id)
    if not observation.exists:
        observation = replace(
            observation, exists=True, error=observation.error or f"there is no {physical_id}"
        )
    return result_of(operation, replace(observation, ready=True), 0, started=True)


def adopt(operation: ResourceOperation) -> StepResult:
    """Take over a resource of an adopted stack: it is observed and not changed."""
    state, resource, cipher = operation.state, operation.resource, operation.services.cipher
    opened = cipher.open(resource.sealed.encode()) if resource.sealed else {}
    metadata, state.action = state.metadata, "ADOPT"
    started = not in_progress_event_written(operation.visit, state)
    apply_definition(operation)
    desired_secret = state.secret
    secret = desired_secret or opened.get("secret", bool(opened))
    state.metadata, state.secret = metadata or state.metadata, True  # secret until an observation denies it
    if state.physical_id is None:
        return StepResult(Failed(failure_reason("Exception", resource.name, NO_ID)), state, started)
    physical_id = state.physical_id
    try:
        observation = operation.observe(operation.context("CHECK", 0.0), physical_id)
    except LookupError as error:
        reason = f"Its resource_data has no {error}."
        return StepResult(Failed(failure_reason("Exception", resource.name, reason)), state, started)
    case = comparison(operation, state)._replace(evidence=Evidence(observation=observation))
    if isinstance(decide_change(case, ADOPT), Replace):
        return StepResult(Replaced(), state)
    if not observation.exists:
        observation = replace(
            observation, exists=True, error=observation.error or f"There is no {physical_id}."
        )
    state.secret = secret
    if secret and not desired_secret:
        state.secrets = None
    result = result_of(operation, replace(observation, ready=True), 0, started=started)
    if not isinstance(result.outcome, Ready):
        state.hide(None)
    return result


def delete(operation: ResourceOperation, step: Delete, retries_left: int) -> StepResult:
    """Delete the resource. The request is sent once; after that the object is only observed."""
    state, type_ = operation.state, operation.resource_type
    fresh = state.op != "DELETE"
    unknown = state.physical_id is None and step.find_first
    if unknown and not find_object(operation, operation.context("DELETE")):
        if step.wait_seconds > 0:
            return StepResult(Wait(min(step.wait_seconds, FIND_SECONDS), REQUEST_PENDING), state)
        search_later(operation)
        return StepResult(Deleted(), state, started=True)
    if operation.resource.released and type_.deletes_first:  # its name belongs to its successor
        return StepResult(Deleted(), state, started=fresh)
    if type_.shares_objects and operation.services.incarnations.share(operation):
        return StepResult(Deleted(), state, started=fresh)
    state.op = "DELETE"
    if fresh and type_.calls_out:
        operation.record_start()
    seen, progress = _delete_object(
        operation,
        lambda: operation.context("DELETE", 0.0 if fresh else None),
        request=step.request,
        attempts=attempts_of(operation, retries_left),
    )
    if not seen.exists and type_.needs_lease:
        operation.services.stored_context.revoke_access(operation.resource.id)
        if (users := operation.users()) is not None:
            users.release()
    started = fresh and not type_.calls_out
    outcome = outcome_of_delete(seen, progress, name=operation.resource.name)
    return StepResult(outcome, state, started)


def _delete_object(
    operation: ResourceOperation,
    context: Callable[[], Context],
    *,
    request: bool,
    attempts: Attempts | None = None,
) -> tuple[Observation, DeleteProgress]:
    """Request the delete of the object if that is due, and observe it; return the progress as well.

    `attempts` limits the repetitions for an object in error; None: no limit. A request after which the object
    did not exist, in doubt, was perhaps not carried out: it is repeated if a later visit finds the object.
    """
    state, type_ = operation.state, operation.resource_type
    repeats = type_.calls_out and not operation.visit.halted
    pause = type_.delete_retry_seconds if repeats else 0.0
    if attempts is not None and not attempts.failed:
        pause = min(pause, FIRST_DELETE_RETRY_SECONDS)
    seconds = 0.0 if request else operation.resource.requested_seconds or 0.0
    progress = DeleteProgress(seconds, pause, stalled_seconds=type_.delete_stalled_seconds)
    if request and operation.visit.absent:
        observation = operation.observe(context())
        if not observation.exists:
            return observation, progress
    if not request:
        observation = observe_and_advance(operation, context)
        in_error = progress.is_due(observation, attempts)
        if not in_error and not progress.is_stalled(observation):
            return observation, progress
        progress = DeleteProgress(0.0, progress.retry_seconds, repeated=in_error)
    seen = operation.calls.run(type_.delete, context(), state.physical_id or "")
    state.requested = True
    if seen is None or seen.step:
        try:
            seen = observe_and_advance(operation, context)
        except AbsenceInDoubt:
            state.requested = False
            raise
    return seen, progress
