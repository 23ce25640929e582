"""`converge`: observe a stack now, show what differs, and repair it (docs/drift.md).

The repair is an UPDATE traversal of the current revision over the damaged resources, as an automatic repair
(operations/adr/0019). A person has requested it: it needs neither a policy nor an approval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.observation.repairs import (
    Action,
    Mark,
    action_for,
    corrected,
    is_restricted,
    obstacle,
)
from orchestrator.engine.observation.rounds import is_mass_loss
from orchestrator.errors import ActionInProgress, Conflict, InvalidRequest, NotFound, NotSupported
from orchestrator.json_types import JsonObject
from orchestrator.logs import logger
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.observation.adoption_plan import adoption_plan
from orchestrator.operations.observation.faults import is_in_group, observed_fault
from orchestrator.operations.observation.stack_survey import Survey, Surveyed, survey
from orchestrator.operations.request_body import read_object
from orchestrator.store.access import idempotency
from orchestrator.store.observation import marks, repair_starts, repairs, rules
from orchestrator.store.observation.marks import MarkRow
from orchestrator.store.observation.repairs import StackState
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import traversals
from orchestrator.store.traversals.traversals import Locked

log = logger()

ACTION: Final = "converge"
OPTIONS: Final = frozenset({"plan", "adopt", "resources"})
MAX_NAMES: Final = 5  # in an error
MAX_RESOURCES: Final = 1_000  # named in a request


@dataclass(frozen=True, slots=True)
class Deviation:
    """A resource that differs, or could not be observed, and what is done about it."""

    surveyed: Surveyed
    action: Action | None
    properties: frozenset[str]  # that are corrected
    obstacle: str  # why nothing is done; empty: nothing is in the way
    restricted: bool  # the environment forbids the action
    holds_data: bool  # which a new object would not have


@dataclass(frozen=True, slots=True)
class Convergence:
    """The answer to a request; the messages are to be sent after the commit."""

    body: JsonObject
    messages: Sequence[CheckMessage] = ()


@dataclass(frozen=True, slots=True)
class Requested:
    """What a request asks for; without resources all of them."""

    plan: bool = False
    adopt: bool = False  # plan how the template adopts the observed state
    resources: frozenset[str] = frozenset()


def converge(context: OperationContext, stack: StackRow, body: Body) -> Convergence:
    """Observe a stack; return what differs, and unless only a plan is requested, start the repair.

    Raises:
        InvalidRequest: the body has unknown keys, values or resources.
        NotFound: the stack is deleted.
        NotSupported: it is suspended, or the environment forbids an action.
        ActionInProgress: an operation of the stack is in progress.
        Conflict: it has not reached its desired revision, or has changed meanwhile.
        LimitExceeded: it has too many resources for a request.
    """
    requested = _requested(body)
    _require_at_rest(context, stack)
    surveyed = survey(context, stack)
    found = _deviations(context, surveyed.deviating)
    if requested.resources:
        found = _chosen(stack, found, requested.resources)
    answer = {**_body(stack, found, surveyed), "warnings": _warnings(surveyed)}
    if requested.adopt:
        plan = adoption_plan(context, stack, [one.surveyed for one in found])
        return Convergence({**answer, "adoption": plan})
    todo = [one for one in found if one.action is not None and not one.obstacle]
    if requested.plan or not (todo or any(one.restricted for one in found)):
        return Convergence(answer)
    _refuse_restricted(found)
    messages = _start(context, stack, todo)
    return Convergence({**answer, "started": True}, messages)


def _requested(body: Body) -> Requested:
    options = read_object(body.read()).get(ACTION)
    if options is None:
        return Requested()
    if not isinstance(options, dict):
        raise InvalidRequest("The value of converge must be null or a map.")
    unknown = sorted(options.keys() - OPTIONS)
    if unknown:
        raise InvalidRequest(
            f"Unknown keys {', '.join(unknown)} in converge, must be among: {', '.join(sorted(OPTIONS))}."
        )
    plan, adopt, names = (options.get(key) for key in ("plan", "adopt", "resources"))
    for key, value in (("plan", plan), ("adopt", adopt)):
        if value is not None and not isinstance(value, bool):
            raise InvalidRequest(f"{key} must be a boolean.")
    if adopt and plan is False:
        raise InvalidRequest("adopt is a plan: the changed template is applied by an update.")
    if names is None:
        return Requested(bool(plan), bool(adopt))
    if not (
        isinstance(names, list) and 0 < len(names) <= MAX_RESOURCES and all(type(n) is str for n in names)
    ):
        raise InvalidRequest(
            f"resources must be a list of 1 to {MAX_RESOURCES} paths, such as group.0.server."
        )
    return Requested(bool(plan), bool(adopt), frozenset(names))


def _require_at_rest(context: OperationContext, stack: StackRow) -> None:
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    with context.database.borrow(hot=False) as db, db.transaction():
        now = traversals.lock(db, stack.id)
        _require_reached(stack, now)


def _require_reached(stack: StackRow, now: Locked | None) -> None:
    if now is None:
        raise NotFound("Stack", stack.name)
    if now.status == "IN_PROGRESS":
        raise ActionInProgress(stack.name, now.action)
    if now.action == "SUSPEND":
        raise NotSupported("Converging a stack when it is suspended")
    if not now.reached:
        raise Conflict(
            f"Stack {stack.name} is {now.state} and has not reached its desired revision. Update it instead."
        )


def _deviations(context: OperationContext, deviating: Sequence[Surveyed]) -> list[Deviation]:
    ids = {one.visit.stack.id for one in deviating}
    with context.database.borrow(hot=False) as db:
        states, holders = repairs.stacks(db, ids), rules.holders(db, ids)
    grouped = {id_: is_in_group(context.types, holders.get(id_, ())) for id_ in ids}
    return [
        _deviation(one, states[id_], grouped=grouped[id_])
        for one in sorted(deviating, key=lambda one: one.placed.path)
        if (id_ := one.visit.stack.id) in states
    ]


def _deviation(surveyed: Surveyed, state: StackState, *, grouped: bool) -> Deviation:
    if surveyed.drift.unknown:
        return Deviation(
            surveyed, None, frozenset(), surveyed.drift.unknown, restricted=False, holds_data=False
        )
    fault = observed_fault(
        surveyed.visit,
        surveyed.type,
        surveyed.recorded,
        surveyed.drift,
        state.environment,
        grouped=grouped,
    )
    action = action_for(fault)
    refusal = obstacle(fault, action)
    return Deviation(
        surveyed,
        action,
        corrected(fault),
        refusal,
        restricted=is_restricted(fault, action) and not fault.external,
        holds_data=fault.holds_data and action in ("recreate", "replace"),
    )


def _chosen(stack: StackRow, found: Sequence[Deviation], names: Collection[str]) -> list[Deviation]:
    known = {one.surveyed.placed.path for one in found}
    unknown = sorted(set(names) - known)
    if unknown:
        shown = ", ".join(unknown[:MAX_NAMES])
        raise InvalidRequest(f"No difference was found at these resources of stack {stack.name}: {shown}.")
    return [one for one in found if one.surveyed.placed.path in names]


def _refuse_restricted(found: Sequence[Deviation]) -> None:
    restricted = [one for one in found if one.restricted]
    if restricted:
        shown = ", ".join(f"{one.surveyed.placed.path} ({one.action})" for one in restricted[:MAX_NAMES])
        raise InvalidRequest(
            f"The environment restricts the repair of {shown}. Nothing was changed. Name the other resources "
            "in 'resources', or remove the restriction."
        )


def _start(context: OperationContext, stack: StackRow, todo: Sequence[Deviation]) -> list[CheckMessage]:
    names = [one.surveyed.placed.path for one in todo]
    with context.database.borrow(hot=False) as db, db.transaction():
        idempotency.record(db, stack.project_id, context.client_token, stack.uuid, stack.name)
        _require_reached(stack, traversals.lock(db, stack.id))
        marked = marks.mark(db, [_mark(one) for one in todo])
        if len(marked) < len(todo):
            raise Conflict(
                f"Resources of stack {stack.name} have changed since they were observed. Try again."
            )
        stack_ids = set(marked.values())
        started = repair_starts.begin(db, stack.id, stack_ids, "convergence", names, automatic=False)
    return [started.message]


def _mark(one: Deviation) -> MarkRow:
    drift, item = one.surveyed.drift, one.surveyed.placed.item
    cause = drift.reason or ", ".join(difference.property for difference in drift.differences)
    told = f"Convergence ({one.action}), observed {drift.state}: {cause}"
    assert one.action is not None  # or nothing is done
    return MarkRow(item.id, item.version, Mark(drift.state, one.action, one.properties), told)


def _warnings(surveyed: Survey) -> list[str]:
    """Return what speaks against a repair: a service that has lost many objects at once may be at fault."""
    missing = Counter(one.type.service for one in surveyed.deviating if one.drift.state == "MISSING")
    return [
        f"{lost} of {surveyed.observed[service]} objects of {service or 'a service'} do not exist: the fault "
        "may be the provider's. A repair creates all of them again."
        for service, lost in sorted(missing.items())
        if is_mass_loss(lost, surveyed.observed[service])
    ]


def _body(stack: StackRow, found: Sequence[Deviation], surveyed: Survey) -> JsonObject:
    return {
        "stack_id": str(stack.uuid),
        "stack_name": stack.name,
        "observed": sum(surveyed.observed.values()),
        "resources": [_shown(one) for one in found],
        "started": False,
    }


def _shown(one: Deviation) -> JsonObject:
    resource, stack, drift = one.surveyed.visit.resource, one.surveyed.visit.stack, one.surveyed.drift
    return {
        "path": one.surveyed.placed.path,
        "stack_id": stack.uuid,
        "stack_name": stack.name,
        "resource_name": resource.name,
        "resource_type": resource.type,
        "physical_resource_id": resource.physical_id,
        "verdict": drift.verdict,
        "reason": drift.unknown or drift.reason,
        "differences": [difference.as_json() for difference in drift.differences],
        "action": one.action,
        "obstacle": one.obstacle or None,
        "restricted": one.restricted,
        "holds_data": one.holds_data,
    }
