"""Resize a group after a signal to its policy, without an update of the group's stack.

One transaction starts the child stack's traversal to the new size, writes the group's data, and inserts a
signal that waits for the child's end. That signal then refreshes the group's attributes and starts the
cooldown. A group with an operation in progress is not resized, and no event is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Final

from psycopg import errors

from orchestrator.engine.check.child_status import ChildRequest, ChildState, split_request, with_request
from orchestrator.engine.check.outcome import failure_reason
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import Message
from orchestrator.errors import ProviderBusy, ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.logs import logger
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context import operation
from orchestrator.operations.resource_context.state import (
    ResourceState,
    load_state,
    sealed_columns,
    to_columns,
)
from orchestrator.operations.runtime.lease_keeper import new_lease
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import Context, Observation, Resize, Value
from orchestrator.resources.groups import capacity
from orchestrator.resources.groups.scaling_group import Adjustment, ScalingGroup
from orchestrator.store.signals import group_resize
from orchestrator.store.signals.queue import Pending
from orchestrator.store.traversals import child_reads, children
from orchestrator.template.function_view import ParentResourceProxy

log = logger()

CHILD_FINISHED: Final = "::resized"  # the key of the details of a signal that waits for the child's end
ADJUSTMENT_FIELDS: Final = frozenset(field.name for field in fields(Adjustment))


def scale_group(engine: WorkerContext, policy: ResourceVisit, resize: Resize) -> list[Message] | None:
    """Start the resize of a group's child; None when there is no change, or the group is busy.

    Raises:
        ProviderError: the group does not exist, or cannot be resized so.
        ProviderBusy: another worker has just claimed the group.
    """
    db, name = engine.database.check_connection(durable=True), policy.resource.name
    group = group_resize.find(db, policy.stack.id, resize.group)
    if group is None:
        message = f'Alarm {name} could not find scaling group named "{resize.group}"'
        raise ProviderError(message, kind="NotFound")
    group_type = engine.types.get(group.kind)
    if not isinstance(group_type, ScalingGroup):
        raise ProviderError(f"{group.name} ({group.kind}) is not a scaling group", kind="NotSupported")
    if not group.settled:
        return None
    lease = new_lease()
    visit = group_resize.claim(db, group.id, lease, engine.settings.lease_seconds)
    if visit is None:
        raise ProviderBusy(f"{group.name} is being processed by another worker")
    with engine.leases.keep([(0, group.id, lease)]):
        try:
            messages = _start_resize(engine, visit, lease, group_type, _adjustment(resize.request))
        except BaseException:
            group_resize.release(db, visit, lease, visit.stack.uuid)
            raise
        if messages is None:
            group_resize.release(db, visit, lease, visit.stack.uuid)
        return messages


def is_child_finished_signal(details: object) -> bool:
    """Whether a signal waits for the end of a group's child."""
    return isinstance(details, Mapping) and CHILD_FINISHED in details


def after_child_finished(
    engine: WorkerContext, pending: Pending, lease: int, details: JsonMapping
) -> list[Message]:
    """Finish the resize of a group whose child has ended; wait again if it has not."""
    db, visit = engine.database.check_connection(durable=True), pending.visit
    event, root = details[CHILD_FINISHED], visit.stack.uuid
    with db.transaction():
        child = child_reads.state(db, visit.resource.id)
        if child is not None and children.lock_child(db, child.id) is not None:
            child = child_reads.state(db, visit.resource.id)
            if child is not None and child.in_progress:
                return [*group_resize.wait_for_child(db, pending, lease, root)]
    state = load_state(visit, engine.cipher)
    group_type = engine.types.get(visit.resource.resource_type)
    is_current = child is not None and not child.gone and child.traversal == event["traversal"]
    done = is_current and child is not None and child.status == "COMPLETE"
    reason = event["reason"] if done else None
    _set_metadata(
        state, capacity.finished(state.metadata or {}, event["cooldown"], reason, capacity.utc_now())
    )
    failure = None
    if done and isinstance(group_type, ScalingGroup):
        _refresh(engine, visit, state, group_type, child)
    elif is_current and child is not None:
        reason_of_child = failure_reason("ResourceFailure", visit.resource.name, child.reason)
        failure = f"Signal failed: {reason_of_child}"
    values, sealed = _stored(engine, state)
    return [*group_resize.record_finished(db, pending, lease, root, values, sealed, failure)]


def _start_resize(
    engine: WorkerContext, visit: ResourceVisit, lease: int, group_type: ScalingGroup, adjustment: Adjustment
) -> list[Message] | None:
    db, resource, root = engine.database.check_connection(durable=True), visit.resource, visit.stack.uuid
    state, child = load_state(visit, engine.cipher), child_reads.state(db, resource.id)
    if child is None or child.gone or child.in_progress:
        return None
    _, kept = split_request(state.data)
    view = engine.stacks.child_view(db, visit, child)
    step = group_type.scaled(
        _context(engine, visit, state, kept), state.properties, view, adjustment, capacity.utc_now()
    )
    if step is None:
        return None
    desired, secret = engine.stacks.desired_child(
        visit,
        step.child,
        child_uuid=child.uuid,
        name=child.name,
        secret=state.secret,
        parent=ParentResourceProxy(state.metadata, secret=state.secret),
    )
    state.secret = state.secret or secret
    _set_metadata(state, capacity.begun(state.metadata or {}))
    for tries_left in (2, 1, 0):
        try:
            with db.transaction():
                started = children.update(db, child.id, desired, converge=False)
                if started is None:
                    return None
                event = _record_event(adjustment, started.traversal, group_type.cooldown(state.properties))
                state.data = with_request(step.data, ChildRequest(started.traversal, 0))
                values, sealed = _stored(engine, state)
                details = engine.cipher.seal({CHILD_FINISHED: event})
                messages = group_resize.record_started(db, visit, lease, root, values, sealed, details)
                if messages is None:
                    raise LeaseLost
            log.info("group_resized", stack=root, resource=resource.name)
            return [*messages, started.message]
        except (errors.DeadlockDetected, errors.SerializationFailure):
            if not tries_left:
                raise
        except LeaseLost:
            return None
    raise AssertionError("unreachable")


class LeaseLost(Exception):
    """Another worker has the group."""


def _record_event(adjustment: Adjustment, traversal: int, cooldown: float | None) -> JsonObject:
    reason = f"{adjustment.type_label} : {adjustment.amount}"
    if adjustment.remove:
        reason = f"{adjustment.type_label} : removed {', '.join(adjustment.remove)}"
    seconds = cooldown if adjustment.cooldown is None else adjustment.cooldown
    return {"traversal": traversal, "cooldown": seconds, "reason": reason}


def _adjustment(request: Mapping[str, Value]) -> Adjustment:
    fields_ = {key: value for key, value in request.items() if key in ADJUSTMENT_FIELDS}
    for key, former in (("type_label", "told_as"), ("adjustment_type", "kind")):  # keys of 0.1
        if key not in fields_ and former in request:
            fields_[key] = request[former]
    return Adjustment(**{**fields_, "remove": tuple(fields_.get("remove") or ())})


def _refresh(
    engine: WorkerContext,
    visit: ResourceVisit,
    state: ResourceState,
    group_type: ScalingGroup,
    child: ChildState | None,
) -> None:
    """Update the group's attributes and reference id."""
    view = engine.stacks.child_view(engine.database.check_connection(durable=True), visit, child)
    body = visit.definition.body if visit.definition else {}
    ctx = _context(engine, visit, state, split_request(state.data)[1])
    attributes = group_type.child_attributes(ctx, view, body.get("asked") or ())
    state.secret = state.secret or view.used_secret
    reference = group_type.child_reference_id(ctx, view)
    operation.record_observation(
        state, group_type, Observation(True, attributes=attributes, reference_id=reference)
    )


def _set_metadata(state: ResourceState, metadata: JsonMapping) -> None:
    if state.given_metadata is None:
        state.given_metadata = state.metadata or {}
    state.metadata = metadata


def _context(engine: WorkerContext, visit: ResourceVisit, state: ResourceState, data: JsonMapping) -> Context:
    software = DeploymentStore.of(visit, engine.database, engine.cipher, engine.settings)
    return replace(operation.context(visit, state, "CHECK", software=software), data=data)


def _stored(engine: WorkerContext, state: ResourceState) -> tuple[JsonObject, str | None]:
    values = to_columns(state)
    sealed = sealed_columns(state, values, engine.cipher)
    values["value_digest"] = state.value_digest
    return values, sealed
