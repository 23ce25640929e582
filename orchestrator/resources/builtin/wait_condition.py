"""OS::Heat::WaitCondition: ready when its handle was signalled often enough
(docs/internals/resource-types.md §A8).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Final

from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.resources.builtin.wait_handle_base import AWS, FAILURE, HEAT, SUCCESS, SignalKeys
from orchestrator.resources.stack_context import RequiredResource
from orchestrator.schema.constraints import Range

HANDLES: Final[Mapping[str, SignalKeys]] = {
    "OS::Heat::WaitConditionHandle": HEAT,
    "AWS::CloudFormation::WaitConditionHandle": AWS,
    "OS::Heat::UpdateWaitConditionHandle": AWS,
}
MAX_TIMEOUT_SECONDS: Final = 43_200  # seconds
_TIMEOUT_DOC: Final = "Seconds to wait for the signals."


class WaitCondition(ResourceType):
    """Waits for signals to its handle before its dependents start."""

    name = "OS::Heat::WaitCondition"
    calls_out = False
    claimed_first = True
    support_version = "2014.2"
    adjustable = frozenset({"CREATE", "UPDATE"})  # a newer template may require fewer signals
    property_names: ClassVar[tuple[str, str, str, str]] = ("handle", "timeout", "count", "data")
    properties = {
        "handle": Property("string", "A reference to the handle that receives the signals.", required=True),
        "timeout": Property(
            "number", _TIMEOUT_DOC, required=True, constraints=(Range(min=1, max=MAX_TIMEOUT_SECONDS),)
        ),
        "count": Property(
            "integer",
            "Number of success signals to wait for.",
            default=1,
            update_allowed=True,
            constraints=(Range(min=1),),
        ),
    }
    attributes = {"data": Attribute("The data of all signals, as JSON: an object by id.", type="string")}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Find the handle."""
        self.handle(ctx)
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Count the handle's signals; the next signal, or the timeout, triggers the next observation."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        peer = self.handle(ctx)
        keys = HANDLES[peer.type]
        signals = [
            body for body in peer.metadata.values() if isinstance(body, Mapping) and keys.status in body
        ]
        data = {
            id_: body[keys.data]
            for id_, body in peer.metadata.items()
            if isinstance(body, Mapping) and keys.data in body
        }
        if ctx.action in ("CREATE", "UPDATE"):
            remaining = self._unfinished(ctx, peer, keys, signals)
            if remaining is not None:
                return remaining
        return Observation(exists=True, attributes={self.property_names[3]: json.dumps(data)})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Wait again, from now on."""
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Clear the handle's signals, so that the next wait condition requires new signals."""
        ctx.required_resources.forget()

    def handle(self, ctx: Context) -> RequiredResource:
        """Return the handle.

        Raises:
            ValueError: the resource is not a handle.
        """
        peer = ctx.required_resources.find(str(ctx.properties[self.property_names[0]]), watch=True)
        if peer is None or peer.type not in HANDLES:
            name = f"The {self.property_names[0]} of {ctx.name}" if peer is None else peer.name
            raise ValueError(f"{name} is not a valid wait condition handle.")
        return peer

    def _unfinished(
        self, ctx: Context, peer: RequiredResource, keys: SignalKeys, signals: list[JsonMapping]
    ) -> Observation | None:
        """Return the waiting or failed state, None when the wait is over."""
        failures = [str(body[keys.reason]) for body in signals if body[keys.status] == FAILURE]
        if failures:
            why = ";".join(failures) or "a signal said so"
            return Observation(exists=True, error=why, error_kind="WaitConditionFailure")
        if peer.properties.get("signal_transport") == "NO_SIGNAL":
            return None
        _, timeout, count, _ = (ctx.properties.get(name, 0) for name in self.property_names)
        reasons = [str(body[keys.reason]) for body in signals if body[keys.status] == SUCCESS]
        if len(reasons) >= count:
            return None
        received = f"{len(reasons)} of {count} received"
        remaining = float(timeout) - ctx.elapsed_seconds
        if remaining > 0:
            return Observation(exists=True, ready=False, retry_after=remaining, reason=received)
        why = f"{received} - {';'.join(reasons)}" if reasons else received
        return Observation(exists=True, error=why, error_kind="WaitConditionTimeout")
