"""Operations on webhooks: create, list, show, delete, test and reactivate.

`webhook_delivery.py` delivers.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from typing import Any, Final

from orchestrator.clients.webhook_sender import (
    NotDelivered,
    deliver,
    new_secret,
    secret_fault,
    shown_url,
    url_fault,
)
from orchestrator.errors import Diagnostic, InvalidRequest, InvalidTemplate, NotFound
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.events.webhook_delivery import message
from orchestrator.operations.quotas.room import WEBHOOKS
from orchestrator.operations.request_body import read_object
from orchestrator.store.access import quotas
from orchestrator.store.events import stream, webhooks
from orchestrator.store.events.events import read_sequence
from orchestrator.store.events.stream import Position
from orchestrator.store.events.webhooks import WebhookRow
from orchestrator.store.maintenance import quarantine
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow

KEYS: Final = ("url", "secret", "stack", "nested_depth", "events", "after")
# of events; whether to deliver only events about stacks themselves
KINDS: Final = {"all": False, "stack": True}
STATES: Final = ("active", "dead")
MASK: Final = "******"


class WebhookNotFound(NotFound):
    """The project has no such webhook."""

    def __init__(self, id_: str) -> None:
        """Name it."""
        super().__init__("Webhook", id_)


def create(context: OperationContext, body: Body) -> JsonObject:
    """Create a webhook; return it with its secret, which is not shown again.

    Raises:
        InvalidTemplate: the request is not valid; every fault is listed.
        NotFound: the project has no such stack.
        LimitExceeded: it has the maximum number of webhooks.
    """
    requested = read_object(body.read())
    faults = list(_faults(context, requested))
    if faults:
        raise InvalidTemplate(faults)
    stack = _stack(context, requested.get("stack"))
    secret = requested.get("secret") or new_secret()
    position = _position(context, requested.get("after")) or stream.end_position(context.database)
    uuid = uuid_.uuid4()
    values = {
        "uuid": uuid,
        "project_id": context.caller.project_id,
        "stack_id": stack.id if stack is not None else None,
        "nested_depth": min(requested.get("nested_depth") or 0, context.settings.max_nested_stack_depth),
        "only_stacks": KINDS[requested.get("events") or "all"],
        "shown_url": shown_url(requested["url"]),
        "sealed": context.cipher.seal({"url": requested["url"], "secret": secret}),
        "xid": str(position.xid),
        "event_id": position.id,
        "created_by": context.caller.user,
    }
    with context.database.borrow(hot=False) as db:
        limit = context.require_room(WEBHOOKS, at=db)
        with db.transaction():
            webhooks.add(db, values)
            quotas.enforce(db, limit)
        row = webhooks.get(db, context.caller.project_id, uuid)
    assert row is not None
    return webhook_body(row) | {"secret": secret}


def listed(
    context: OperationContext, *, state: str | None, marker: str | None, limit: int | None
) -> list[JsonObject]:
    """Return the project's webhooks, oldest first; only those in `state`, if given.

    Raises:
        InvalidRequest: the state is unknown.
    """
    if state is not None and state not in STATES:
        raise InvalidRequest(f"Unknown state '{state}', must be one of: {', '.join(STATES)}.")
    with context.database.borrow(hot=False) as db:
        rows = webhooks.listed(db, context.caller.project_id, state=state, marker=marker, limit=limit)
    return [webhook_body(row) for row in rows]


def show(context: OperationContext, id_: str) -> JsonObject:
    """Return a webhook.

    Raises:
        WebhookNotFound: it does not exist.
    """
    return webhook_body(_row(context, id_))


def delete(context: OperationContext, id_: str) -> None:
    """Delete a webhook; a delivery in progress may still arrive.

    Raises:
        WebhookNotFound: it does not exist.
    """
    with context.database.borrow(hot=False) as db:
        if not webhooks.delete(db, context.caller.project_id, _uuid(id_)):
            raise WebhookNotFound(id_)


def reactivate(context: OperationContext, id_: str, body: Body) -> JsonObject:
    """Let a webhook retry at once, from its position or from `after`.

    Raises:
        WebhookNotFound: it does not exist.
        InvalidRequest: `after` is not a sequence.
    """
    after = read_object(body.read()).get("after")
    if after is not None and not _is_position(after):
        raise InvalidRequest(_NO_POSITION.format(after))
    with context.database.borrow(hot=False) as db:
        uuid = _uuid(id_)
        quarantine.release_webhook(db, context.caller.project_id, uuid)
        if not webhooks.reactivate(db, context.caller.project_id, uuid, _position(context, after)):
            raise WebhookNotFound(id_)
    return show(context, id_)


def test(context: OperationContext, id_: str) -> JsonObject:
    """Deliver a message without events now, and return the result; the webhook's position does not change.

    Raises:
        WebhookNotFound: it does not exist.
    """
    row = _row(context, id_)
    address = context.cipher.open(row.sealed)
    body = message("test", row.uuid, context.caller.project_id, [])
    try:
        status = deliver(
            address["url"],
            address["secret"],
            f"{row.uuid}.test.{uuid_.uuid4()}",
            body,
            seconds=context.settings.webhook_timeout,
            private=context.settings.webhook_allow_private,
        )
    except NotDelivered as error:
        return {"delivered": False, "status": None, "error": str(error)}
    return {"delivered": True, "status": status, "error": None}


def webhook_body(row: WebhookRow) -> JsonObject:
    """Return a webhook as shown to its project."""
    return {
        "id": str(row.uuid),
        "url": row.shown_url,
        "secret": MASK,
        "stack_id": str(row.stack_uuid) if row.stack_uuid is not None else None,
        "stack_name": row.stack_name,
        "nested_depth": row.nested_depth,
        "events": "stack" if row.only_stacks else "all",
        "state": row.state,
        "sequence": row.sequence,
        "tries": row.tries,
        "failing_since": _time(row.failing_since),
        "last_error": row.last_error,
        "next_attempt_at": _time(row.due_at) if row.tries and row.state == "active" else None,
        "delivered": row.delivered,
        "delivered_at": _time(row.delivered_at),
        "event_sink": row.of_environment,
        "created_by": row.created_by or None,
        "creation_time": _time(row.created_at),
    }


_NO_POSITION: Final = "Invalid sequence '{}' for 'after': must be the sequence of an event, 0.0 or now."


def _faults(context: OperationContext, requested: JsonObject) -> Any:
    url, secret, depth = requested.get("url"), requested.get("secret"), requested.get("nested_depth")
    for key in sorted(requested.keys() - set(KEYS)):
        yield _fault("unknown-key", f"Unknown key {key!r}, must be one of: {', '.join(KEYS)}", key)
    if not isinstance(url, str):
        yield _fault("missing-url", "url is required and must be a string", "url")
    elif fault := url_fault(url, private=context.settings.webhook_allow_private):
        yield _fault("invalid-url", fault, "url")
    if secret is not None:
        fault = secret_fault(secret) if isinstance(secret, str) else "secret must be a string"
        if fault:
            yield _fault("invalid-secret", fault, "secret")
    if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 0):
        yield _fault("invalid-depth", "nested_depth must be an integer of 0 or more", "nested_depth")
    if requested.get("stack") is not None and not isinstance(requested["stack"], str):
        yield _fault("invalid-stack", "stack must be the name or id of a stack", "stack")
    if requested.get("events") is not None and requested["events"] not in [*KINDS]:
        yield _fault("invalid-events", f"events must be one of: {', '.join(KINDS)}", "events")
    if requested.get("after") is not None and not _is_position(requested["after"]):
        yield _fault("invalid-sequence", _NO_POSITION.format(requested["after"]), "after")


def _fault(code: str, text: str, path: str) -> Diagnostic:
    return Diagnostic(code, text, path, heat_type="HTTPBadRequest")


def _is_position(after: object) -> bool:
    return isinstance(after, str) and (after == "now" or read_sequence(after) is not None)


def _position(context: OperationContext, after: str | None) -> Position | None:
    if after is None:
        return None
    position = read_sequence(after)
    return Position(*position) if position is not None else stream.end_position(context.database)


def _stack(context: OperationContext, name: str | None) -> StackRow | None:
    if name is None:
        return None
    stack = stacks.find(context.database, context.caller.project_id, name)
    if stack is None or stack.project_id != context.caller.project_id:
        raise NotFound("Stack", name)
    return stack


def _row(context: OperationContext, id_: str) -> WebhookRow:
    with context.database.borrow(hot=False) as db:
        row = webhooks.get(db, context.caller.project_id, _uuid(id_))
    if row is None:
        raise WebhookNotFound(id_)
    return row


def _uuid(id_: str) -> uuid_.UUID:
    try:
        return uuid_.UUID(id_)
    except ValueError:
        raise WebhookNotFound(id_) from None


def _time(value: dt.datetime | None) -> str | None:
    return value.astimezone(dt.UTC).isoformat()[:19] + "Z" if value is not None else None
