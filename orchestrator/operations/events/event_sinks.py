"""Event sinks of an environment that are webhooks: written down as webhooks of the stack, and masked.

Each is a row of `webhook` that the environment names by its id, with address and secret sealed in it. So a
revision holds neither, and bringing a stack back to an earlier one is telling again whom that one names
(`store/events/event_sinks.py`). A sink of any other type has no service here and is told nothing, as Heat
without its queues tells nobody.
"""

from __future__ import annotations

import uuid as uuid_
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.clients.webhook_sender import new_secret, secret_fault, shown_url, url_fault
from orchestrator.config import Settings
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.operations.context import OperationContext
from orchestrator.store.events import event_sinks as store
from orchestrator.store.events.event_sinks import SinkRow
from orchestrator.template.environment import WEBHOOK
from orchestrator.template.parameters import MASK

MASKED: Final = "An event sink of this stack only may be masked: write it in clear"


@dataclass(frozen=True, slots=True)
class Sinks:
    """The event sinks of a revision: as its environment keeps them, and the webhooks that are new."""

    kept: Sequence[Mapping[str, Any]]
    new: Sequence[Mapping[str, Any]]


def validate_sinks(settings: Settings, sinks: Sequence[Mapping[str, Any]]) -> None:
    """Return when every webhook among the sinks could be told.

    Raises:
        InvalidTemplate: with what is wrong with the others.
    """
    if faults := list(_faults(settings, sinks)):
        raise InvalidTemplate(faults)


def read(context: OperationContext, stack: uuid_.UUID, given: Sequence[Mapping[str, Any]]) -> Sinks:
    """Return the sinks that a stack is to have; those that it has already are known again.

    Raises:
        InvalidTemplate: one is masked that the stack never had.
    """
    if not any(sink["type"] == WEBHOOK for sink in given):
        return Sinks(given, ())
    with context.database.connect() as db:
        rows = store.of_stack(db, context.caller.project_id, stack)
    known = [(row, context.cipher.open(row.sealed)) for row in rows]
    kept: list[Mapping[str, Any]] = []
    new: list[Mapping[str, Any]] = []
    for index, sink in enumerate(given):
        if sink["type"] != WEBHOOK:
            kept.append(sink)
            continue
        row = next((row for row, address in known if _matches(sink, row, address)), None)
        if row is None:
            made = _new(context, sink, index)
            new.append(made)
            id_ = made["uuid"]
        else:
            id_ = row.uuid
        masked = {"target": shown_url(sink["target"]), "id": str(id_)}
        kept.append({**sink, **masked, **({"secret": MASK} if sink.get("secret") else {})})
    return Sinks(kept, new)


def _matches(sink: Mapping[str, Any], row: SinkRow, address: Mapping[str, Any]) -> bool:
    """Whether a sink is one that the stack has: as it was written, or as it is shown."""
    secret, only_stacks = sink.get("secret"), sink.get("events") == "stack"
    if only_stacks != row.only_stacks:
        return False
    if sink.get("id") == str(row.uuid):
        return sink["target"] in {row.shown_url, address["url"]} and secret in {None, MASK, address["secret"]}
    return sink["target"] == address["url"] and secret in {None, address["secret"]}


def _new(context: OperationContext, sink: Mapping[str, Any], index: int) -> dict[str, Any]:
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
        "most": context.settings.max_webhooks_per_tenant,
    }


def _faults(settings: Settings, sinks: Sequence[Mapping[str, Any]]) -> Iterator[Diagnostic]:
    for index, sink in enumerate(sinks):
        if sink["type"] != WEBHOOK:
            continue
        path, secret = f"event_sinks[{index}]", sink.get("secret")
        if wrong := url_fault(sink["target"], private=settings.webhook_private):
            yield _fault(wrong, f"{path}.target")
        if secret is not None and secret != MASK and (wrong := secret_fault(secret)):
            yield _fault(wrong, f"{path}.secret")


def _fault(message: str, path: str) -> Diagnostic:
    return Diagnostic("invalid-event-sink", message, path, heat_type="HTTPBadRequest")
