"""Test::Bell: a resource that becomes ready after a number of signals, and records their senders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Signalled,
    Value,
)


class Bell(ResourceType):
    """A bell in our own row."""

    name = "Test::Bell"
    calls_out = False
    properties: ClassVar = {"rings": Property("integer", "How often it is to be rung.", default=1)}
    attributes: ClassVar = {"rung_by": Attribute("Who rang, in order.")}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Hang it up."""
        return Created(ctx.physical_name)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Count."""
        rung_by = ctx.data.get("rung_by", [])
        ready = ctx.action != "CREATE" or len(rung_by) >= ctx.properties["rings"]
        gone = ctx.action == "DELETE"
        return Observation(exists=not gone, ready=ready, retry_after=None, attributes={"rung_by": rung_by})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Take it down: it hangs in our own row."""

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Ring it."""
        rung_by = [*ctx.data.get("rung_by", []), (details or {}).get("by", "somebody")]
        return Signalled(data={"rung_by": rung_by}, metadata={**ctx.metadata, "last": rung_by[-1]})
