"""OS::Heat::SwiftSignal: waits for signals at the temporary URL of a handle
(docs/internals/resource-types.md §A8).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.resources.builtin.temporary_urls import MAX_SIGNAL_BYTES, TOO_LARGE, place_of, poll_seconds
from orchestrator.resources.builtin.wait_condition import MAX_TIMEOUT_SECONDS
from orchestrator.resources.builtin.wait_handle_base import FAILURE, SUCCESS
from orchestrator.resources.openstack.swift.container_type import swift
from orchestrator.resources.openstack.swift.signal_handle import INITIAL
from orchestrator.schema.constraints import Range

MAX_SIGNALS: Final = 1_000
INVALID: Final = '"{path}" is not a valid SwiftSignalHandle.  The {part} is invalid'


class SwiftSignal(ResourceType):
    """Waits for signals to its handle before its dependents start."""

    name = "OS::Heat::SwiftSignal"
    service = "swift"
    endpoint_type = "object-store"
    support_version = "2014.2"
    can_check = False  # received signals stay received
    preemptible = frozenset({"CREATE"})  # the signals may never come
    properties = {
        "handle": Property("string", "The URL of the handle that receives the signals.", required=True),
        "timeout": Property(
            "number",
            "Seconds to wait for the signals.",
            required=True,
            constraints=(Range(min=1, max=MAX_TIMEOUT_SECONDS),),
        ),
        "count": Property(
            "integer",
            "Number of success signals to wait for.",
            default=1,
            constraints=(Range(min=1, max=MAX_SIGNALS),),
        ),
    }
    attributes = {"data": Attribute("The data of all signals, as JSON: an object by id.", type="string")}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Examine the URL.

        Raises:
            ProviderError: it is not the URL of a handle.
        """
        url = str(props["handle"])
        account, container, name = place_of(url)
        path = urlsplit(url).path
        if account != urlsplit(swift(ctx).url()).path or not name:
            raise ProviderError(INVALID.format(path=path, part="Swift TempURL path"), "ValueError")
        if container != name or swift(ctx).container(container) is None:
            raise ProviderError(INVALID.format(path=path, part="container name"), "ValueError")
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the signals."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        try:
            signals = received(ctx)
        except ValueError as error:
            return Observation(exists=True, error=str(error), error_kind="Error")
        if ctx.action == "CREATE" and (unfinished := _unfinished(ctx, signals)):
            return unfinished
        data = {signal["id"]: signal["data"] for signal in signals}
        return Observation(exists=True, attributes={"data": json.dumps(data or None)})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete: the signals belong to the handle."""


def received(ctx: Context) -> list[JsonObject]:
    """Return the signals in their order. A later signal with the same id replaces an earlier one.

    Raises:
        ValueError: a signal is not a JSON object, or the signals are too large.
    """
    _, container, name = place_of(str(ctx.properties["handle"]))
    store = swift(ctx)
    signals: list[JsonObject] = []
    number = size = 0
    for object_name in store.objects(container, MAX_SIGNALS + 1):
        content = store.object_content(container, object_name) if name in object_name else None
        if content is None or content == INITIAL:
            continue
        number, size = number + 1, size + len(content)
        if size > MAX_SIGNAL_BYTES:
            raise ValueError(TOO_LARGE)
        signal = _parsed(content)
        id_ = signal.get("id", number)
        id_ = id_ if isinstance(id_, str | int) else json.dumps(id_)
        signals = [earlier for earlier in signals if earlier["id"] != id_]
        filled = {"status": SUCCESS, "reason": f"Signal {id_} received", "data": None, "id": id_}
        signals.append({**filled, **signal, "id": id_})
    return signals


def _parsed(content: bytes) -> JsonObject:
    text = content.decode(errors="replace")
    try:
        signal = json.loads(text) if text else {}
    except ValueError:
        signal = None
    if not isinstance(signal, dict):
        raise ValueError(f"Failed to parse JSON data: {text[:200]}")
    return signal


def _unfinished(ctx: Context, signals: Sequence[JsonObject]) -> Observation | None:
    """Return the waiting or failed state, None when the wait is over."""
    reasons = {
        status: [str(s["reason"]) for s in signals if s["status"] == status] for status in (FAILURE, SUCCESS)
    }
    if reasons[FAILURE]:
        return Observation(True, error=";".join(reasons[FAILURE]), error_kind="SwiftSignalFailure")
    for signal in signals:
        if signal["status"] != SUCCESS:
            return Observation(True, error=f"Unknown status: {signal['status']}", error_kind="Error")
    count = ctx.properties.get("count", 1)
    if len(signals) >= count:
        return None
    text = f"{len(signals)} of {count} received"
    remaining = float(ctx.properties["timeout"]) - ctx.elapsed_seconds
    if remaining > 0:
        return Observation(True, ready=False, retry_after=min(poll_seconds(ctx), remaining), reason=text)
    why = f"{text} - {';'.join(reasons[SUCCESS])}" if signals else text
    return Observation(True, error=why, error_kind="SwiftSignalTimeout")
