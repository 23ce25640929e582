"""Decide what one visit does: pure. `carry_out` does it, and `outcome` judges what was seen."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.engine.check.visit import Json, ResourceView, Visit
from orchestrator.resources.base import ResourceType


@dataclass(frozen=True, slots=True)
class Abandon:
    """The traversal is over for this node: let go of everything, touch nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class Keep:
    """As wanted already."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make it; what an earlier try may have made is found by its token before it is asked for again."""

    wait_seconds: float = 0.0  # nothing found: how long an earlier call may still land


@dataclass(frozen=True, slots=True)
class Observe:
    """An operation is open and its thing is known: look how it does."""


@dataclass(frozen=True, slots=True)
class Compare:
    """The resource exists: `change.decide_change` compares it with its definition."""


@dataclass(frozen=True, slots=True)
class Recreate:
    """What was made went wrong: remove it, then make it again under a new token."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove it. `look_first`: whether anything was made is not known."""

    look_first: bool = False
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DropRow:
    """Nothing was ever made, or it is to be left alone: only the row goes."""

    retained: bool = False


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """It cannot be known what an earlier try did, and trying again could double it
    (docs/internals/protocol.md rule 3).
    """

    reason: str


@dataclass(frozen=True, slots=True)
class ReissueUpdate:
    """A change was begun and may never have been asked for: ask again, for what is wanted now."""


@dataclass(frozen=True, slots=True)
class RunAction:
    """Check, suspend, resume or copy what is there; `ask` unless that was asked for already."""

    action: str
    ask: bool = True


@dataclass(frozen=True, slots=True)
class InvalidState:
    """In no state for what the stack is doing."""

    reason: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """It is there already, made by somebody else: look at it, and take it over as it is."""


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

RETAINED = frozenset({"Retain", "retain"})


def decide(visit: Visit, kind: ResourceType) -> Step:
    """Return what this visit to a resource does."""
    resource = visit.resource
    assert resource is not None
    if visit.superseded or (visit.halted and resource.op is None):
        return Abandon("superseded" if visit.superseded else "halted")
    if visit.kind == "cleanup":
        return _cleanup(visit, kind)
    if resource.op in OPEN_ACTS:  # whoever began it: first it comes to its end
        return RunAction(resource.op, ask=resource.lost_seconds is not None)
    if resource.op == "DISCARD":
        return Recreate()
    if resource.op == "UPDATE":  # a worker that died may not have come to ask for it
        return Observe() if resource.lost_seconds is None else ReissueUpdate()
    if resource.op == "CREATE":
        if resource.physical_id is not None:
            return Observe()
        if not kind.calls_out:
            return Create()
        if not kind.can_find:
            return OutcomeUnknown(
                "it was cut off while being created, and its type cannot be asked whether it was"
            )
        return Create(wait_seconds=_in_flight(visit, kind))
    if visit.act is not None:
        return Keep() if resource.deposed else _act(visit.act, resource, kind)
    if resource.suspended:
        return RunAction("RESUME")
    return _begin(visit, resource)


def _begin(visit: Visit, resource: ResourceView) -> Step:
    """Return what is done with a resource that no operation is open on."""
    if resource.action == "INIT":
        return Adopt() if resource.physical_id is not None or visit.stack.action == "ADOPT" else Create()
    if resource.action == "ADOPT" and resource.status != "COMPLETE" and resource.physical_id is not None:
        return Adopt()
    return Compare()


def _act(action: str, resource: ResourceView, kind: ResourceType) -> Step:
    """Return what an action does that brings nothing to another template
    (docs/internals/engine-semantics.md §10).
    """
    failed = resource.status == "FAILED"
    if resource.action == "INIT":
        if action == "CHECK" and kind.can_check:
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


def _cleanup(visit: Visit, kind: ResourceType) -> Step:
    resource = visit.resource
    assert resource is not None
    body: Json = visit.definition.body if visit.definition else {}
    policy = "Retain" if body.get("external_id") else body.get("deletion_policy") or "Delete"
    if not resource.deposed:
        return Keep()  # a newer template has it again
    if resource.attempt == 0:
        return DropRow()
    if visit.stack.retain or policy in RETAINED:
        return DropRow(retained=True)
    if resource.physical_id is None:
        if not kind.calls_out:
            return DropRow()
        if not kind.can_find:
            return OutcomeUnknown(
                "it was cut off while being created, and its type cannot be asked whether it was"
            )
        return Delete(look_first=True, wait_seconds=_in_flight(visit, kind))
    return Delete()


def _in_flight(visit: Visit, kind: ResourceType) -> float:
    """Return for how many seconds a call of a worker that lost its lease may still land."""
    lost = visit.resource.lost_seconds if visit.resource else None
    return 0.0 if lost is None else max(0.0, lost + kind.flight_seconds)
