"""Requests to a single resource: signals, and the release of a hook.

A refusal is answered at once and leaves no trace except Heat's event. An accepted signal is stored durably
before the answer; the resource processes it afterwards (`process.py`).
"""

from __future__ import annotations

import datetime as dt
from typing import Final, Protocol

import orjson

from orchestrator import backoff
from orchestrator.engine.check import hooks
from orchestrator.engine.messages import Message, SignalMessage
from orchestrator.errors import (
    ActionNotSupported,
    InvalidHook,
    InvalidRequest,
    InvalidTemplate,
    NotFound,
    NotSupported,
    ResourceNotAvailable,
    ResourceNotFound,
)
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.request_body import read_object
from orchestrator.rate_errors import TooManySignals
from orchestrator.resources.base import ResourceType
from orchestrator.resources.verbs.contexts import read_context
from orchestrator.security import policy
from orchestrator.security.resource_credentials import require
from orchestrator.store.nodes import hooks as store_hooks
from orchestrator.store.signals import ingest, queue
from orchestrator.store.signals.ingest import NewSignal, Receiver
from orchestrator.store.stacks.stacks import StackIdentity, StackRow
from orchestrator.template.parse import Limits, check_size

MAX_SHOWN_METADATA: Final = 64 * 1024  # bytes; of larger metadata, a response shows the changed entries
SIGNALS_RETRY_SECONDS: Final = 5  # for a sender whose signal was refused
MAX_BATCHED_BYTES: Final = 16 * 1024  # of a signal that is stored together with signals of other callers
UNSET_HOOK: Final = "unset_hook"


class SignalTarget(Protocol):
    """The stack of a signalled resource."""

    @property
    def id(self) -> int:
        """The id of its row."""

    @property
    def uuid(self) -> object:
        """The stack's id."""

    @property
    def name(self) -> str:
        """The stack's name."""

    @property
    def deleted_at(self) -> dt.datetime | None:
        """The time of its deletion."""


def signal(context: OperationContext, stack: SignalTarget, name: str, body: Body) -> list[Message]:
    """Accept a signal for a resource.

    Raises:
        Forbidden: the caller may not signal the resource, or not clear hooks.
        NotFound: the stack or the resource does not exist, or is not created yet.
        NotSupported: the type accepts no signals, or not in this state.
        InvalidHook: the hook to clear does not exist, or the resource does not wait at it.
        InvalidRequest: the details are not JSON, or nested too deep.
    """
    bearer = context.caller.bearer
    if bearer is not None:
        require(context.database, bearer, stack.id, name)
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    is_resource_credential = bearer is not None and bearer.user is None
    row = bearer.gave if bearer is not None and is_resource_credential else _receiver(context, stack, name)
    data = body.read()
    details = _details(context, data) if data.startswith(b"{") else None
    resource_type = context.types.get(row.effective_type)
    if details is not None and hooks.is_hook(details.get(UNSET_HOOK)):
        policy.require(policy.policy_of(context.settings), f"resource:{UNSET_HOOK}", context.caller)
        messages = _clear(context, stack, name, details[UNSET_HOOK])
        if messages:
            return messages
    _refuse_unsignallable_action(context, stack, row, resource_type)
    if details is not None and UNSET_HOOK in details:
        raise _no_hook(stack, row, resource_type, details[UNSET_HOOK])
    return _accept(context, stack, row, resource_type, details)


def signal_by_url(
    context: OperationContext, name: str, body: Body, *, shown: bool
) -> tuple[list[Message], JsonObject | None]:
    """Accept a signal sent to a signed URL; if `shown`, also return the resulting metadata.

    That metadata is computed before the signal is processed, from the signals processed so far.

    Raises:
        Forbidden: the key does not belong to the resource.
        NotFound: the resource does not exist, or is not created yet.
        NotSupported: the type accepts no signals, or not in this state.
        InvalidRequest: the type rejects the details; only checked if `shown`.
    """
    bearer = context.caller.bearer
    assert bearer is not None
    stack = StackIdentity(bearer.stack_id, bearer.stack_uuid, bearer.stack_name)
    require(context.database, bearer, stack.id, name)
    row = bearer.gave if bearer.user is None else _receiver(context, stack, name)
    data = body.read().lstrip()
    details = _details(context, data) if data else None
    resource_type = context.types.get(row.effective_type)
    _refuse_unsignallable_action(context, stack, row, resource_type)
    metadata = None
    if shown and resource_type is not None and resource_type.takes_signals and not resource_type.calls_out:
        metadata = _metadata_after(context, row, resource_type, details)
    return _accept(context, stack, row, resource_type, details), metadata


def signal_fast(
    context: OperationContext, address: ingest.SignalAddress, body: Body, *, by_url: bool, shown: bool
) -> tuple[list[Message], JsonObject | None] | None:
    """Accept a signal without special cases, like `signal` or, for a signed URL, `signal_by_url`.

    None for all other signals: nothing was changed, and those two functions report the reason.

    Raises:
        InvalidRequest: those two functions would raise it as well.
    """
    bearer = context.caller.bearer
    if bearer is None:
        target = context.database.batched(ingest.resolve_target, address)
        if target is None or target.deleted_at is not None:
            return None
        stack_id, row = target.stack_id, target.row
    else:
        where = (bearer.stack_uuid, bearer.stack_name, bearer.project_id, bearer.resource)
        if bearer.user is not None or where != address:
            return None
        stack_id, row = bearer.stack_id, bearer.gave
    data = body.read().lstrip() if by_url else body.read()
    details = _details(context, data) if data.startswith(b"{") or (by_url and data) else None
    resource_type = context.types.get(row.effective_type)
    if (
        resource_type is None
        or not resource_type.takes_signals
        or (details is not None and UNSET_HOOK in details)
    ):
        return None
    if row.action in ingest.REFUSING and not resource_type.signals_always:
        return None
    metadata = (
        _metadata_after(context, row, resource_type, details)
        if shown and not resource_type.calls_out
        else None
    )
    message = _stored(context, _new_signal(context, stack_id, row, resource_type, details))
    if message is None:
        return None
    return [SignalMessage(row.id, row.name, address.uuid)] if message else [], metadata


def _accept(
    context: OperationContext,
    stack: SignalTarget,
    row: Receiver,
    resource_type: ResourceType | None,
    details: JsonObject | None,
) -> list[Message]:
    if resource_type is None or not resource_type.takes_signals:
        raise ActionNotSupported("signal", row.name, row.type)
    accepted = _stored(context, _new_signal(context, stack.id, row, resource_type, details))
    if accepted is None:
        current = _receiver(context, stack, row.name)
        _refuse_unsignallable_action(context, stack, current, resource_type)
        with context.database.borrow() as db:
            if not ingest.has_room(db, current.id):
                raise TooManySignals(row.name, SIGNALS_RETRY_SECONDS)
        raise ResourceNotAvailable(row.name)
    return [SignalMessage(row.id, row.name, str(stack.uuid))] if accepted else []


def _stored(context: OperationContext, signal: NewSignal) -> bool | None:
    """Store a signal; see `ingest.accept`. A large signal delays no signals of other callers."""
    if len(signal.details) <= MAX_BATCHED_BYTES:
        return context.database.batched(ingest.accept, signal)
    with context.database.borrow() as db:
        return ingest.accept(db, [signal])[0]


def _new_signal(
    context: OperationContext,
    stack_id: int,
    row: Receiver,
    resource_type: ResourceType,
    details: JsonObject | None,
) -> NewSignal:
    sealed, seconds = context.cipher.seal(details), backoff.RE_ENQUEUE_SECONDS
    return NewSignal(stack_id, row.id, sealed, resource_type.signals_always, seconds)


def _metadata_after(
    context: OperationContext, row: Receiver, resource_type: ResourceType, details: JsonObject | None
) -> JsonObject:
    """Return the metadata after a signal.

    Of large metadata, only the entries that the signal changes.

    Raises:
        InvalidRequest: the type rejects the details.
    """
    values = context.database.batched(ingest.values, row.id)
    if values is None:
        raise ResourceNotAvailable(row.name)
    properties, data, metadata, sealed = values
    opened = context.cipher.open(sealed.encode()) if sealed else {}
    ctx = read_context(
        row.name,
        row.name,
        "",
        properties=opened.get("properties", properties) or {},
        data=opened.get("data", data) or {},
        metadata=opened.get("metadata", metadata) or {},
    )
    try:
        did = resource_type.signal(ctx, row.physical_id or "", details)
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
    after = ctx.metadata if did.metadata is None else did.metadata
    if len(orjson.dumps(after)) <= MAX_SHOWN_METADATA:
        return dict(after)
    return {name: value for name, value in after.items() if ctx.metadata.get(name) != value}


def waiting(
    context: OperationContext,
    stack: StackRow,
    after: tuple[dt.datetime, int] | None = None,
    limit: int | None = None,
) -> list[store_hooks.Paused]:
    """Return the resources of a stack that wait at hooks, starting after a given time and node."""
    with context.database.borrow() as db:
        return store_hooks.paused(db, stack.id, after, limit)


def _receiver(context: OperationContext, stack: SignalTarget, name: str) -> Receiver:
    with context.database.borrow() as db:
        row = ingest.receiver(db, stack.id, name)
        if row is not None:
            return row
        if queue.is_planning(db, stack.id):  # the plan may still write the resource
            raise ResourceNotAvailable(name)
    raise ResourceNotFound(name, stack.name)


def _details(context: OperationContext, data: bytes) -> JsonObject:
    """Return the details of a signal; their depth is limited like a template's, so that they can be encrypted
    and stored.
    """
    details = read_object(data)
    try:
        check_size(details, Limits.of(context.settings), "signal")
    except InvalidTemplate as error:
        raise InvalidRequest(f"The signal cannot be accepted: {error}") from error
    return details


def _clear(context: OperationContext, stack: SignalTarget, name: str, hook: str) -> list[Message]:
    with context.database.borrow() as db, db.transaction():
        return [*store_hooks.clear(db, stack.id, name, hook)]


def _refuse_unsignallable_action(
    context: OperationContext, stack: SignalTarget, row: Receiver, resource_type: ResourceType | None
) -> None:
    """Refuse a signal, with an event, if the resource's action allows no signals.

    Raises:
        NotSupported: the action allows none.
    """
    if row.action not in ingest.REFUSING or (resource_type is not None and resource_type.signals_always):
        return
    with context.database.borrow() as db:
        queue.record_refusal_event(db, stack.id, row.id, row.action)
    raise NotSupported(f"Signal resource during {row.action}")


def _no_hook(
    stack: SignalTarget, row: Receiver, resource_type: ResourceType | None, hook: object
) -> InvalidHook:
    """Return the refusal to clear a hook, with the resource written like in Heat."""
    physical = f" [{row.physical_id}]" if row.physical_id else ""
    shown = type(resource_type).__name__ if resource_type is not None else row.type
    which = f'{shown} "{row.name}"{physical} Stack "{stack.name}" [{stack.uuid}]'
    if hooks.is_hook(hook):
        return InvalidHook(f'The "{hook}" hook is not defined on {which}')
    return InvalidHook(f'Invalid hook type "{hook}" for {which}')
