"""Ask a nested type for the next step of its child, and prepare that step."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Literal

from orchestrator.engine.check.child_status import ChildState, ChildStep
from orchestrator.engine.check.outcome import Ready
from orchestrator.json_types import JsonMapping
from orchestrator.operations.children.child_view import StoredChildView
from orchestrator.operations.children.reached_revision import reached_revision
from orchestrator.operations.reconcile.nested.operation import (
    NestedOperation,
    failed,
    nested_context,
    parent_proxy,
    transition,
)
from orchestrator.operations.resource_context.state import StepResult
from orchestrator.operations.snapshots.restored_template import CHILD
from orchestrator.resources.base import Observation
from orchestrator.resources.nested_type import Pause, SetChild, Settled
from orchestrator.store import snapshots
from orchestrator.store.signals import group_resize
from orchestrator.store.stacks.progress import ROLLOUT
from orchestrator.store.traversals.children import DesiredChild

CANCELLED = "{} aborted (user triggered cancel)"
CHILD_GONE = "Its stack no longer exists."


def advance(
    nested: NestedOperation, turn: int, adopted: JsonMapping | None = None, *, unchanged: bool = False
) -> StepResult:
    """Ask the type for step number `turn`; a new child adopts the resources in `adopted`. `unchanged`: the
    resource is as before, only its child is to be visited.
    """
    operation, state = nested.operation, nested.operation.state
    view = nested.loader.child_view(nested.db, operation.visit, nested.child)
    ctx = replace(nested_context(nested), unchanged=unchanged)
    step = nested.resource_type.step(ctx, state.properties, view, turn)
    match step:
        case Settled():
            return _settle(nested, view, step)
        case Pause(seconds=seconds, data=data):
            state.data = data or state.data
            return transition(nested, ChildStep("pause", nested.child, turn=turn, seconds=seconds))
        case SetChild(data=data):
            state.data = data or state.data
    if operation.visit.halted:
        return failed(nested, "Error", CANCELLED.format(state.action))
    return _set_child(nested, step, turn, adopted)


def _set_child(nested: NestedOperation, step: SetChild, turn: int, adopted: JsonMapping | None) -> StepResult:
    """Request the create or the update of the child."""
    operation, state, child = nested.operation, nested.operation.state, nested.child
    existing = None if child is None or child.gone else child
    desired = nested.loader.desired_child(
        operation.visit,
        step.child,
        child_uuid=str(uuid.uuid4()) if existing is None else existing.uuid,
        name=operation.physical_name if existing is None else existing.name,
        hides=state,
        parent=parent_proxy(nested),
        keeps=existing.revision_id if step.keeps_files and existing is not None else None,
    )
    if step.rollout is not None:
        desired = replace(desired, outline={**desired.outline, ROLLOUT: step.rollout._asdict()})
    if existing is not None and operation.visit.stack.action == "RESTORE":
        desired = _restored(nested, desired, existing)
    elif existing is not None:
        same = reached_revision(nested.db, operation.services.cipher, existing.id, desired)
        desired = replace(desired, revision_id=same)
    if existing is None and adopted is not None:
        desired = replace(desired, adopted=operation.services.cipher.seal(adopted))
    state.physical_id = desired.uuid
    verb: Literal["create", "update"] = "create" if existing is None else "update"
    return transition(nested, ChildStep(verb, child, desired=desired, turn=turn))


def _restored(nested: NestedOperation, desired: DesiredChild, child: ChildState) -> DesiredChild:
    """Return the desired child with its resources restored from its own snapshot."""
    operation = nested.operation
    sealed = snapshots.restored(nested.db, operation.visit.stack.revision_id, operation.resource.name)
    uuid_ = operation.services.cipher.open(sealed).get(CHILD) if sealed else None
    snapshot_id = None if uuid_ is None else snapshots.complete_snapshot(nested.db, child.id, str(uuid_))
    return desired if snapshot_id is None else nested.loader.restored(desired, snapshot_id)


def _settle(nested: NestedOperation, view: StoredChildView, step: Settled) -> StepResult:
    """Settle the resource with the outputs of its child."""
    operation, type_ = nested.operation, nested.resource_type
    state, definition = operation.state, operation.visit.definition
    if step.batched and nested.child is not None:
        group_resize.mark_batched(nested.db, nested.child.id)
    if step.data is not None:
        state.data = step.data
    if step.metadata is not None and step.metadata != (state.metadata or {}):
        if state.given_metadata is None:
            state.given_metadata = state.metadata or {}
        state.metadata = step.metadata
    context = nested_context(nested)
    used = definition.body.get("asked") if definition else None
    attributes = type_.child_attributes(context, view, used or ())
    observation = Observation(
        exists=True, attributes=attributes, reference_id=type_.child_reference_id(context, view)
    )
    operation.record(observation)
    if view.secrets is None or view.secrets:
        state.hide(view.secrets)
    return StepResult(Ready(observation), state)
