"""Operations on webhooks: create, list, show, delete, test and reactivate.

`webhook_delivery.py` delivers.
"""

from __future__ import annotations

import uuid as uuid_
from typing import Final

from orchestrator.bodies.webhooks import Delivery, Rearm, Webhook, WebhookCreate
from orchestrator.clients import webhook_sender
from orchestrator.clients.webhook_sender import (
    NotDelivered,
    deliver,
    new_secret,
    shown_url,
)
from orchestrator.errors import InvalidRequest, NotFound
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

STATES: Final = ("active", "dead")


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
    requested = WebhookCreate.read(read_object(body.read()), context.settings)
    stack = _stack(context, requested.stack)
    secret = requested.secret or new_secret()
    position = _position(context, requested.after) or stream.end_position(context.database)
    uuid = uuid_.uuid4()
    values = {
        "uuid": uuid,
        "project_id": context.caller.project_id,
        "stack_id": stack.id if stack is not None else None,
        "nested_depth": min(requested.nested_depth or 0, context.settings.max_nested_stack_depth),
        "only_stacks": requested.events == "stack",
        "shown_url": shown_url(requested.url),
        "sealed": context.cipher.seal({"url": requested.url, "secret": secret}),
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
    return Webhook.shown(row) | {"secret": secret}


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
    return [Webhook.shown(row) for row in rows]


def show(context: OperationContext, id_: str) -> JsonObject:
    """Return a webhook.

    Raises:
        WebhookNotFound: it does not exist.
    """
    return Webhook.shown(_row(context, id_))


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
        InvalidTemplate: `after` is not a sequence.
    """
    after = Rearm.read(read_object(body.read())).after
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
            seconds=webhook_sender.TIMEOUT_SECONDS,
            private=context.settings.webhook_allow_private,
        )
    except NotDelivered as error:
        return Delivery(delivered=False, status=None, error=str(error)).model_dump()
    return Delivery(delivered=True, status=status, error=None).model_dump()


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
