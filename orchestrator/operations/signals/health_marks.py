"""Health marks: a marked resource is replaced by the next update."""

from __future__ import annotations

import secrets
import time
from typing import Final

from orchestrator.errors import (
    ActionInProgress,
    AmbiguousPhysicalId,
    InvalidRequest,
    InvalidValue,
    NotFound,
    ResourceNotFound,
)
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.request_body import read_object
from orchestrator.operations.resource_context.state import load_state, sealed_columns, to_columns
from orchestrator.operations.runtime import lease_keeper
from orchestrator.operations.stacks.resources import NO_ROW, get_resource
from orchestrator.resources.groups import capacity
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.store.signals import group_resize, queue
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import children

MARKED: Final = "state changed by resource_mark_unhealthy api"
MARK_SECONDS: Final = 5.0  # for the worker that is calling the provider at this moment
MARK_PAUSE_SECONDS: Final = 0.1
MAX_REASON_CHARACTERS: Final = 65_535  # characters; the size of Heat's column


def mark_unhealthy(context: OperationContext, stack: StackRow, name: str, body: Body) -> None:
    """Mark a resource, by name or physical id, for replacement by the next update, or clear the mark.

    Raises:
        NotFound: the stack or the resource does not exist.
        InvalidRequest: the body has unknown keys, or lacks the required key.
        ActionInProgress: an operation on the resource is in progress that cannot be given up: a delete, an
            action, or the operation of a child stack.
    """
    unhealthy, reason = _mark(read_object(body.read()))
    resource_id = _named(context, stack, name)
    deadline = time.monotonic() + MARK_SECONDS
    while (result := _marked(context, stack, resource_id, reason, healthy=not unhealthy)) != "done":
        if result == "busy" or time.monotonic() > deadline:
            raise ActionInProgress(stack.name, stack.action)
        time.sleep(MARK_PAUSE_SECONDS)
    if not unhealthy:
        _clear_scaling_in_progress(context, resource_id)


def _marked(
    context: OperationContext, stack: StackRow, resource_id: int, reason: str, *, healthy: bool
) -> queue.MarkResult:
    """Mark a resource."""
    with context.database.borrow() as db, db.transaction():
        result = queue.mark(db, stack.id, resource_id, reason, healthy=healthy)
        if result == "done":
            children.mark_stale(db, stack.id)
    return result


def _clear_scaling_in_progress(context: OperationContext, resource_id: int) -> None:
    """Clear the flag of a group that it is being scaled (docs/internals/resource-types.md §A6)."""
    lease = secrets.randbits(63)
    with context.database.borrow(hot=False) as db:
        visit = group_resize.claim(db, resource_id, lease, lease_keeper.LEASE_SECONDS)
        if visit is None:
            return
        state, root = load_state(visit, context.cipher), visit.stack.uuid
        resource_type = context.types.get(visit.resource.resource_type)
        if not isinstance(resource_type, ScalingGroup) or not (state.metadata or {}).get(
            capacity.IN_PROGRESS
        ):
            group_resize.release(db, visit, lease, root)
            return
        state.given_metadata = state.metadata if state.given_metadata is None else state.given_metadata
        state.metadata = capacity.finished(state.metadata or {}, None, None, capacity.utc_now())
        values = to_columns(state)
        sealed = sealed_columns(state, values, context.cipher)
        group_resize.record_pending(
            db, visit, lease, root, {**values, "value_digest": state.value_digest}, sealed
        )


def _mark(document: JsonMapping) -> tuple[bool, str]:
    unknown = document.keys() - {"mark_unhealthy", "resource_status_reason"}
    if unknown:
        raise InvalidRequest(f"Invalid keys in resource mark unhealthy {unknown}")
    if "mark_unhealthy" not in document:
        raise InvalidRequest("Missing mandatory (mark_unhealthy) key from mark unhealthy request")
    value, reason = document["mark_unhealthy"], document.get("resource_status_reason")
    text = str(value).lower()
    if text not in ("true", "false"):
        raise InvalidRequest(
            f'Unrecognized value "{value}" for "mark_unhealthy", acceptable values are: true, false.'
        )
    if reason is not None and not isinstance(reason, str):
        raise InvalidValue("resource_status_reason is not a string")
    if reason is not None and len(reason) > MAX_REASON_CHARACTERS:
        raise InvalidValue(f"resource_status_reason has more than {MAX_REASON_CHARACTERS} characters")
    return text == "true", reason or MARKED


def _named(context: OperationContext, stack: StackRow, name: str) -> int:
    """Return the id of a resource by its name or its physical id."""
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    row = get_resource(context, stack, name)
    if row is not None and row.id == NO_ROW:
        raise ActionInProgress(stack.name, stack.action)
    if row is not None:
        return row.id
    with context.database.borrow() as db:
        receiver = queue.with_physical_id(db, stack.id, name)
    if len(receiver) > 1:
        raise AmbiguousPhysicalId(name)
    if not receiver:
        raise ResourceNotFound(name, stack.name)
    return receiver[0]
