"""What is sent to one resource: signals, the clearing of a hook among them, and marks on its health.

A refusal is answered at once and leaves nothing behind but the event that Heat writes. What is accepted is
durable before the answer; the resource takes it in afterwards (`take_in.py`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.engine import hooks
from orchestrator.engine.messages import Message, SignalRing
from orchestrator.errors import (
    ActionInProgress,
    ActionNotSupported,
    AmbiguousPhysicalId,
    InvalidHook,
    InvalidRequest,
    InvalidTemplate,
    InvalidValue,
    NotFound,
    NotSupported,
    ResourceNotAvailable,
    ResourceNotFound,
)
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.known import known_before, stored_values
from orchestrator.operations.request import read_object
from orchestrator.resources.base import ResourceType
from orchestrator.resources.groups import scaling
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.store import children, resizing, signals
from orchestrator.store import hooks as store_hooks
from orchestrator.store.resources import ResourceRow, get_resource
from orchestrator.store.stacks import StackRow
from orchestrator.template.parse import Limits, check_size

UNSET_HOOK: Final = "unset_hook"
MARKED: Final = "state changed by resource_mark_unhealthy api"


def signal(context: OperationContext, stack: StackRow, name: str, body: Body) -> list[Message]:
    """Accept a signal for a resource.

    Raises:
        NotFound: there is no such stack or resource, or it is not made yet.
        NotSupported: its type takes none, or not now.
        InvalidHook: a hook was to be cleared that is none, or at which it does not wait.
        InvalidRequest: the details are no JSON, or nested too deep.
    """
    row = _found(context, stack, name)
    data = body.read()
    details = _details(context, data) if data.startswith(b"{") else None
    kind = context.types.get(row.kind)
    if details is not None and hooks.is_hook(details.get(UNSET_HOOK)):
        rings = _clear(context, stack, name, details[UNSET_HOOK])
        if rings:
            return rings
    _refuse_now(context, stack, row, kind)
    if details is not None and UNSET_HOOK in details:
        raise _no_hook(stack, row, kind, details[UNSET_HOOK])
    if kind is None or not kind.takes_signals:
        raise ActionNotSupported("signal")
    sealed = context.cipher.seal(details)
    seconds = context.settings.ring_again_seconds
    with context.database.connect() as db:
        accepted = signals.accept(
            db, stack.id, row.id, sealed, always=kind.signals_always, ring_seconds=seconds
        )
    if not accepted:
        _refuse_now(context, stack, _found(context, stack, name), kind)
        raise ResourceNotAvailable(name)
    return [SignalRing(row.id, name, str(stack.uuid))]


def waiting(context: OperationContext, stack: StackRow) -> list[store_hooks.Paused]:
    """Return the resources of a stack that wait at hooks."""
    with context.database.connect() as db:
        return store_hooks.paused(db, stack.id)


def mark_unhealthy(context: OperationContext, stack: StackRow, name: str, body: Body) -> None:
    """Mark a resource, by its name or its physical id, to be replaced by the next update, or unmark it.

    Raises:
        NotFound: there is no such stack or resource.
        InvalidRequest: the body has other keys, or not the one it needs.
        ActionInProgress: it is being operated on.
    """
    unhealthy, reason = _mark(read_object(body.read()))
    resource_id = _named(context, stack, name)
    with context.database.connect() as db, db.transaction():
        done = signals.mark(db, stack.id, resource_id, reason, healthy=not unhealthy)
        if done:
            children.disturb(db, stack.id)
    if not done:
        raise ActionInProgress(stack.name, stack.action)
    if not unhealthy:
        _let_scale(context, resource_id)


def _let_scale(context: OperationContext, resource_id: int) -> None:
    """Let a group that says it is being scaled be scaled again (spec/resource-types.md A6)."""
    lease = secrets.randbits(63)
    with context.database.connect() as db:
        visit = resizing.claim(db, resource_id, lease, context.settings.lease_seconds)
        if visit is None:
            return
        assert visit.resource is not None
        known, root = known_before(visit, context.cipher), visit.stack.uuid
        kind = context.types.get(visit.resource.kind)
        if not isinstance(kind, ScalingGroup) or not (known.metadata or {}).get(scaling.IN_PROGRESS):
            resizing.let_go(db, visit, lease, root)
            return
        known.given_metadata = known.metadata if known.given_metadata is None else known.given_metadata
        known.metadata = scaling.finished(known.metadata or {}, None, None, scaling.utc_now())
        values = stored_values(known)
        sealed = context.cipher.seal(values).decode() if known.secret else None
        resizing.keep(db, visit, lease, root, {**values, "value_digest": known.value_digest}, sealed)


def _mark(document: Mapping[str, Any]) -> tuple[bool, str]:
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
    return text == "true", reason or MARKED


def _found(context: OperationContext, stack: StackRow, name: str) -> ResourceRow:
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    row = get_resource(context.database, stack, name)
    if row is not None:
        return row
    with context.database.connect() as db:
        if signals.is_planning(db, stack.id):  # it may still come
            raise ResourceNotAvailable(name)
    raise ResourceNotFound(name, stack.name)


def _named(context: OperationContext, stack: StackRow, name: str) -> int:
    """Return the id of a resource by its name or its physical id."""
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    row = get_resource(context.database, stack, name)
    if row is not None:
        return row.id
    with context.database.connect() as db:
        found = signals.with_physical_id(db, stack.id, name)
    if len(found) > 1:
        raise AmbiguousPhysicalId(name)
    if not found:
        raise ResourceNotFound(name, stack.name)
    return found[0]


def _details(context: OperationContext, data: bytes) -> dict[str, Any]:
    """Return what is sent; as deep as a template may be, or it could be neither sealed nor kept."""
    details = read_object(data)
    try:
        check_size(details, Limits.of(context.settings), "signal")
    except InvalidTemplate as error:
        raise InvalidRequest(f"The signal cannot be taken: {error}") from error
    return details


def _clear(context: OperationContext, stack: StackRow, name: str, hook: str) -> list[Message]:
    with context.database.connect() as db, db.transaction():
        return [*store_hooks.clear(db, stack.id, name, hook)]


def _refuse_now(
    context: OperationContext, stack: StackRow, row: ResourceRow, kind: ResourceType | None
) -> None:
    """Refuse, with an event, what comes while the resource's action allows no signals.

    Raises:
        NotSupported: it does not.
    """
    if row.action not in signals.REFUSING or (kind is not None and kind.signals_always):
        return
    with context.database.connect() as db:
        signals.tell_refused(db, stack.id, row.id, row.action)
    raise NotSupported(f"Signal resource during {row.action}")


def _no_hook(stack: StackRow, row: ResourceRow, kind: ResourceType | None, hook: object) -> InvalidHook:
    """Return the refusal to clear a hook, its resource as Heat writes one."""
    physical = f" [{row.physical_id}]" if row.physical_id else ""
    shown = type(kind).__name__ if kind is not None else row.type
    which = f'{shown} "{row.name}"{physical} Stack "{stack.name}" [{stack.uuid}]'
    if hooks.is_hook(hook):
        return InvalidHook(f'The "{hook}" hook is not defined on {which}')
    return InvalidHook(f'Invalid hook type "{hook}" for {which}')
