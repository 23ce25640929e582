"""Decide the step of a visit: pure. `operations/reconcile` executes it, `outcome.py` judges its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.engine.check.visit import ResourceView, ResourceVisit
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import ResourceType

INTERRUPTED: Final = "the create request was interrupted, and this type cannot look up whether it succeeded"


@dataclass(frozen=True, slots=True)
class Abandon:
    """The traversal is over for this node: release it and change nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Already in the desired state."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create the resource; the result of an earlier attempt is looked up by its token first."""

    wait_seconds: float = 0.0  # if nothing is found: for how long an earlier request may still arrive


@dataclass(frozen=True, slots=True)
class Observe:
    """An operation is open and the physical id is known: observe its progress."""


@dataclass(frozen=True, slots=True)
class Compare:
    """The resource exists: `change.decide_change` compares it with its definition."""


@dataclass(frozen=True, slots=True)
class Recreate:
    """The create has failed: delete the object, then create it again under a new token; `request` the delete
    unless a request was answered already.
    """

    request: bool = True


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the resource; `request` unless a request was answered already. `find_first`: whether it was
    created is unknown.
    """

    find_first: bool = False
    wait_seconds: float = 0.0
    request: bool = True


@dataclass(frozen=True, slots=True)
class DropRow:
    """The resource was never created, or it is retained: delete only the row."""

    retained: bool = False


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """The effect of an earlier attempt is unknown, and another attempt could
    create a duplicate (docs/internals/protocol.md rule 3).
    """

    reason: str


@dataclass(frozen=True, slots=True)
class ReissueUpdate:
    """An update was recorded and perhaps never sent: send it again, for the current definition."""


@dataclass(frozen=True, slots=True)
class RunAction:
    """Check, suspend, resume or snapshot the resource; `request` unless it was requested already."""

    action: str
    request: bool = True


@dataclass(frozen=True, slots=True)
class InvalidState:
    """The state of the resource does not permit the action of the stack."""

    reason: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """The object exists already: observe it, and adopt it unchanged."""


Step = (
    Abandon
    | Keep
    | Create
    | Adopt
    | Observe
    | Compare
    | ReissueUpdate
    | Recreate
    | Delete
    | DropRow
    | OutcomeUnknown
    | RunAction
    | InvalidState
)

OPEN_ACTS = frozenset({"SUSPEND", "RESUME", "SNAPSHOT", "CHECK"})
PAUSES = frozenset({"SUSPEND", "RESUME"})

RETAINED = frozenset({"Retain", "retain"})


def decide(visit: ResourceVisit, resource_type: ResourceType) -> Step:
    """Return the step of this visit to a resource."""
    resource = visit.resource
    if visit.superseded or (visit.halted and resource.op is None):
        return Abandon("superseded" if visit.superseded else "halted")
    if visit.kind == "cleanup":
        return _cleanup(visit, resource_type)
    if resource.op in OPEN_ACTS:  # of whichever traversal: it is completed first
        return RunAction(resource.op, request=_perhaps_unsent(resource))
    if resource.op == "DISCARD":
        return Recreate(request=resource.requested_seconds is None)
    if resource.op == "UPDATE":  # a worker that died may not have sent it
        return ReissueUpdate() if _perhaps_unsent(resource) else Observe()
    if resource.op == "CREATE":
        if resource.physical_id is not None:
            return Observe()
        if not resource_type.calls_out or _was_refused(visit, resource_type):
            return Create()
        if not resource_type.can_find:
            return OutcomeUnknown(INTERRUPTED)
        return Create(wait_seconds=in_flight(visit.resource, resource_type))
    if visit.act is not None:
        return Keep() if resource.deposed else _act(visit.act, resource, resource_type)
    if resource.suspended and not _is_replaced_anyway(resource):
        return RunAction("RESUME")
    return _begin(visit, resource)


def _begin(visit: ResourceVisit, resource: ResourceView) -> Step:
    """Return the step for a resource without an open operation."""
    if resource.action == "INIT":
        return Adopt() if resource.physical_id is not None or visit.stack.action == "ADOPT" else Create()
    if resource.action == "ADOPT" and resource.status != "COMPLETE" and resource.physical_id is not None:
        return Adopt()
    return Compare()


def _is_replaced_anyway(resource: ResourceView) -> bool:
    """Whether a user has marked the resource unhealthy: it is not resumed first."""
    return resource.marked_unhealthy and resource.status == "FAILED"


def _act(action: str, resource: ResourceView, resource_type: ResourceType) -> Step:
    """Return the step of an action without a new template (docs/internals/engine-semantics.md §10)."""
    failed = resource.status == "FAILED"
    if resource.action == "INIT":
        if action == "CHECK" and resource_type.can_check:
            return InvalidState(f"Can not check {resource.name}, resource not created yet.")
        return Keep()
    if action == "CHECK" and resource.never_created and resource.physical_id is not None:
        return InvalidState(f"Can not check {resource.name}, resource was not created.")
    if action == "RESUME":
        paused = resource.suspended or resource.action == "SUSPEND"
        return RunAction(action) if paused or (resource.action == "RESUME" and failed) else Keep()
    if (failed and resource.action not in {"CHECK", action}) or resource.physical_id is None:
        return InvalidState(f"State ('{resource.action}', '{resource.status}') invalid for {action.lower()}")
    return RunAction(action)


def _cleanup(visit: ResourceVisit, resource_type: ResourceType) -> Step:
    resource = visit.resource
    body: JsonMapping = visit.definition.body if visit.definition else {}
    policy = "Retain" if body.get("external_id") else body.get("deletion_policy") or "Delete"
    if not resource.deposed:
        return Keep()  # a newer template contains it again
    if resource.attempt == 0:
        return DropRow()
    if visit.stack.retain or policy in RETAINED:
        return DropRow(retained=True)
    if resource.physical_id is None:
        if not resource_type.calls_out or _was_refused(visit, resource_type):
            return DropRow()
        if not resource_type.can_find:
            return OutcomeUnknown(INTERRUPTED)
        return Delete(find_first=True, wait_seconds=in_flight(visit.resource, resource_type))
    return Delete(request=resource.op != "DELETE" or resource.requested_seconds is None)


def _perhaps_unsent(resource: ResourceView) -> bool:
    """Whether the request of an update or an action was perhaps never sent. Its steps follow its answer."""
    return resource.lost_seconds is not None and resource.step is None


def _was_refused(visit: ResourceVisit, resource_type: ResourceType) -> bool:
    """Whether every create of a type that cannot find objects was refused: then there is no object."""
    return not resource_type.can_find and visit.resource.lost_seconds is None


def in_flight(resource: ResourceView, resource_type: ResourceType) -> float:
    """Return for how many seconds a request of a worker that lost its lease may still arrive."""
    lost = resource.lost_seconds
    return 0.0 if lost is None else max(0.0, lost + resource_type.flight_seconds)
