"""Event sinks of an environment that are webhooks: stored as webhooks of the stack, and masked.

Each sink is a row of `webhook` with its address and secret encrypted, which the environment refers to by id.
So a revision contains neither, and a rollback reactivates the sinks of the older revision
(`store/events/event_sinks.py`). Sinks of other types are ignored, as in Heat without a message queue.
"""

from __future__ import annotations

import uuid as uuid_
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.clients.webhook_sender import new_secret, secret_fault, shown_url, url_fault
from orchestrator.config import Settings
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import OperationContext
from orchestrator.operations.quotas.room import WEBHOOKS
from orchestrator.store.access.quotas import Limit
from orchestrator.store.events import event_sinks as store
from orchestrator.store.events.event_sinks import SinkRow
from orchestrator.template.environment import WEBHOOK
from orchestrator.template.parameters import MASK

MASKED: Final = "Only an event sink of this stack may be masked: write the plain value"


@dataclass(frozen=True, slots=True)
class Sinks:
    """The event sinks of a revision: as stored in its environment, and the webhooks to create with the limit
    that their transaction enforces.
    """

    kept: Sequence[JsonMapping]
    new: Sequence[JsonMapping]
    limit: Limit | None = None


def validate_sinks(settings: Settings, sinks: Sequence[JsonMapping]) -> None:
    """Check every webhook among the sinks.

    Raises:
        InvalidTemplate: with a diagnostic for each sink that is not valid.
    """
    if faults := list(_faults(settings, sinks)):
        raise InvalidTemplate(faults)


def read(context: OperationContext, stack: uuid_.UUID, requested: Sequence[JsonMapping]) -> Sinks:
    """Return the sinks of a new revision; sinks that the stack has already are matched.

    Raises:
        InvalidTemplate: a masked sink matches none of the stack's sinks.
    """
    if not any(sink["type"] == WEBHOOK for sink in requested):
        return Sinks(requested, ())
    with context.database.borrow(hot=False) as db:
        rows = store.of_stack(db, context.caller.project_id, stack)
    recorded = [(row, context.cipher.open(row.sealed)) for row in rows]
    kept: list[JsonMapping] = []
    new: list[JsonMapping] = []
    for index, sink in enumerate(requested):
        if sink["type"] != WEBHOOK:
            kept.append(sink)
            continue
        row = next((row for row, address in recorded if _matches(sink, row, address)), None)
        if row is None:
            made = _new(context, sink, index)
            new.append(made)
            id_ = made["uuid"]
        else:
            id_ = row.uuid
        masked = {"target": shown_url(sink["target"]), "id": str(id_)}
        kept.append({**sink, **masked, **({"secret": MASK} if sink.get("secret") else {})})
    if not new:
        return Sinks(kept, new)
    with context.database.borrow(hot=False) as db:
        return Sinks(kept, new, context.require_room(WEBHOOKS, len(new), at=db))


def _matches(sink: JsonMapping, row: SinkRow, address: JsonMapping) -> bool:
    """Whether a sink matches an existing sink of the stack, as written or as masked."""
    secret, only_stacks = sink.get("secret"), sink.get("events") == "stack"
    if only_stacks != row.only_stacks:
        return False
    if sink.get("id") == str(row.uuid):
        return sink["target"] in {row.shown_url, address["url"]} and secret in {None, MASK, address["secret"]}
    return sink["target"] == address["url"] and secret in {None, address["secret"]}


def _new(context: OperationContext, sink: JsonMapping, index: int) -> JsonObject:
    for key in ("target", "secret"):
        if MASK in (sink.get(key) or ""):
            raise InvalidTemplate([_fault(MASKED, f"event_sinks[{index}].{key}")])
    address = {"url": sink["target"], "secret": sink.get("secret") or new_secret()}
    return {
        "uuid": uuid_.uuid4(),
        "project_id": context.caller.project_id,
        "nested_depth": context.settings.max_nested_stack_depth,
        "only_stacks": sink.get("events") == "stack",
        "shown_url": shown_url(sink["target"]),
        "sealed": context.cipher.seal(address),
        "created_by": context.caller.user,
    }


def _faults(settings: Settings, sinks: Sequence[JsonMapping]) -> Iterator[Diagnostic]:
    for index, sink in enumerate(sinks):
        if sink["type"] != WEBHOOK:
            continue
        path, secret = f"event_sinks[{index}]", sink.get("secret")
        if fault := url_fault(sink["target"], private=settings.webhook_allow_private):
            yield _fault(fault, f"{path}.target")
        if secret is not None and secret != MASK and (fault := secret_fault(secret)):
            yield _fault(fault, f"{path}.secret")


def _fault(message: str, path: str) -> Diagnostic:
    return Diagnostic("invalid-event-sink", message, path, heat_type="HTTPBadRequest")
