"""The outcome of an observation or an error during a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from orchestrator import backoff
from orchestrator.engine.check.outcome import (
    Attempts,
    Outcome,
    Ready,
    Wait,
    outcome_of_error,
    outcome_of_observation,
)
from orchestrator.engine.check.ready_timeout import ready_limit, within_limit
from orchestrator.engine.check.refusals import QUOTA_SECONDS, RefusalTimes
from orchestrator.errors import Superseded
from orchestrator.logs import logger
from orchestrator.operations.resource_context.early_outputs import record_early_outputs
from orchestrator.operations.resource_context.live_attributes import read_used_attributes
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import StepResult
from orchestrator.resources.base import Context, Created, Observation
from orchestrator.resources.verbs.values import found_ids
from orchestrator.store.maintenance import orphan_searches, orphans
from orchestrator.template.secret_values import SecretValues, bounded

log = logger()

MAX_STEPS: Final = 10  # of an operation in one visit


def observe_operation(operation: ResourceOperation) -> Observation:
    """Observe the resource during its create or update, and carry out the steps that this requires."""
    state, was_open = operation.state, operation.resource.op in ("CREATE", "UPDATE")
    action = "UPDATE" if state.op == "UPDATE" else "CREATE"
    return observe_and_advance(operation, lambda: operation.context(action, None if was_open else 0.0))


def observe_and_advance(operation: ResourceOperation, context: Callable[[], Context]) -> Observation:
    """Observe the resource during an operation. Each step that the type names is recorded, carried out and
    followed by another observation; a step named again is left to a later visit, in which it is repeated.
    """
    done = set[str]()
    while True:
        observation = operation.observe(context())
        step = observation.step
        if not step or not observation.exists or observation.error or step in done:
            return observation
        if len(done) == MAX_STEPS:
            return replace(observation, retry_after=0.0)
        done.add(step)
        if not advance(operation, step, context):
            return observation


def advance(operation: ResourceOperation, step: str, context: Callable[[], Context]) -> bool:
    """Carry out a step; False: the lease is lost. The next observation shows whether it had an effect."""
    state = operation.state
    if not operation.record_step(step):
        return False
    ctx = context()
    advanced = operation.calls.run(
        operation.resource_type.advance, ctx, state.physical_id or "", state.properties, step
    )
    if advanced is not None:
        take_result(operation, advanced, ctx)
    return True


def take_result(operation: ResourceOperation, result: Created, context: Context) -> None:
    """Take over the physical id and the data that an update or a step returned."""
    state = operation.state
    state.physical_id = result.physical_id
    hide_data(operation, result)
    if result.data:
        state.data = result.data
    grant_access(operation, result, context)


def hide_data(operation: ResourceOperation, result: Created) -> None:
    """Encrypt the data of a type that says so."""
    if result.secret:
        operation.state.hide(bounded(SecretValues.within(result.data)))


def result_of(
    operation: ResourceOperation, observation: Observation, retries_left: int, *, started: bool
) -> StepResult:
    """Return the result of an observation; outputs are recorded when the resource is ready."""
    if not observation.ready:
        observation = _within_ready_limit(operation, observation)
    outcome = outcome_of_observation(
        observation, name=operation.resource.name, attempts=attempts_of(operation, retries_left)
    )
    if isinstance(outcome, Ready):
        operation.record(observation)
        read_used_attributes(operation)
    elif operation.visit.early_pending and isinstance(outcome, Wait) and not outcome.retried:
        outcome = replace(outcome, early=record_early_outputs(operation, observation))
    return StepResult(outcome, operation.state, started)


def _within_ready_limit(operation: ResourceOperation, observation: Observation) -> Observation:
    """Return the observation; an object that is not ready in time is in error."""
    visit, resource, state = operation.visit, operation.resource, operation.state
    limit = ready_limit(visit, operation.resource_type, operation.services.settings.stack_action_timeout)
    elapsed = (resource.reachable_seconds or 0.0) if resource.op == state.op and not state.opened else 0.0
    return within_limit(observation, limit, elapsed, waited=visit.waited_seconds, halted=visit.halted)


def error_outcome(operation: ResourceOperation, error: Exception) -> Outcome:
    """Return the outcome of an error raised by the type."""
    return outcome_of_error(error, name=operation.resource.name, attempts=attempts_of(operation, 0))


def attempts_of(operation: ResourceOperation, retries_left: int) -> Attempts:
    """Return the attempts of the operation so far."""
    visit = operation.visit
    refused = RefusalTimes(
        visit.unreachable_tries,
        visit.refused_seconds,
        QUOTA_SECONDS,
        backoff.RETRY_MAX_SECONDS,
    )
    return Attempts(visit.retry_count, retries_left, backoff.RETRY_MAX_SECONDS, refused)


def find_object(operation: ResourceOperation, context: Context) -> bool:
    """Search the object of an earlier create by its token. Record its id and grant access to it, except for a
    delete. Return whether it was found.

    Without a token, an equal object of another owner would be found: it is searched only if a create request
    was not answered.
    """
    if not may_search(operation, context):
        return False
    found = found_ids(operation.calls.run(operation.resource_type.find, context, context.token))
    if not found:
        return False
    physical_id = found[0] if len(found) == 1 else keep_one(operation, found, context.token)
    operation.state.physical_id = physical_id
    if context.action != "DELETE":
        grant_access(operation, Created(physical_id), context)
    return True


def may_search(operation: ResourceOperation, context: Context) -> bool:
    """Return whether an object that `find` returns belongs to the resource: it has the token, or a create
    request was not answered.
    """
    lost = operation.state.unanswered or operation.resource.lost_seconds is not None
    return lost or finds_by_token(operation, context)


def finds_by_token(operation: ResourceOperation, context: Context) -> bool:
    """Return whether `find` returns only objects with the token: a given name may have another owner."""
    type_, given = operation.resource_type, context.properties
    by_name = type_.unique is not None and type_.unique.searched and type_.unique.is_shared(given, given)
    return type_.finds_by_token and not by_name


def keep_one(operation: ResourceOperation, found: Sequence[str], token: str) -> str:
    """Return the object to keep of several that were created with the same token. The others are recorded as
    orphans, which the sweep deletes.

    An earlier visit may have chosen otherwise from a list in another order, and died: what it has recorded is
    not chosen.

    Raises:
        Superseded: the lease is lost; nothing was recorded.
    """
    visit, stored = operation.visit, operation.services.stored_context
    recorded = orphans.unhandled_of(stored.db, visit.resource.id)
    kept = next((id_ for id_ in found if id_ not in recorded), found[0])
    others = [id_ for id_ in found if id_ != kept]
    log.warning("duplicates_found", resource=visit.resource.name, kept=kept, others=others)
    if stored.lease is None or not orphans.record_duplicates(stored.db, visit, stored.lease, token, others):
        raise Superseded("the lease was lost before duplicates were recorded")
    return kept


def search_later(operation: ResourceOperation) -> None:
    """Let the sweep search objects of a create without an answer that arrive after it was repeated, or after
    its resource was removed. Types without tokens have none: their objects cannot be distinguished.

    Raises:
        Superseded: the lease is lost; nothing was recorded.
    """
    type_ = operation.resource_type
    by_token = type_.can_find and finds_by_token(operation, operation.context("CREATE"))
    if operation.resource.lost_seconds is None or not by_token:
        return
    visit, stored = operation.visit, operation.services.stored_context
    token = operation.context("CREATE").token
    if stored.lease is None or not orphan_searches.record(
        stored.db, visit, stored.lease, token, operation.physical_name
    ):
        raise Superseded("the lease was lost before a search was recorded")


def grant_access(operation: ResourceOperation, created: Created, context: Context) -> None:
    """Grant access with the credentials that the type declares, if any."""
    grant = created.access or operation.resource_type.grants(context, created.physical_id)
    if grant is not None:
        operation.services.stored_context.grant_access(operation.resource.id, grant)
