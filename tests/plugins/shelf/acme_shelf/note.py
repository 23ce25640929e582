"""Acme::Note: a local type that becomes ready after a number of signals."""

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


class Note(ResourceType):
    """A note in the resource's own row."""

    name = "Acme::Note"
    calls_out = False
    claimed_first = True
    adjustable = frozenset({"CREATE"})
    properties: ClassVar = {
        "text": Property("string", "Text of the note.", default="", update_allowed=True),
        "readers": Property(
            "integer", "Number of signals until it is ready.", default=0, update_allowed=True
        ),
    }
    attributes: ClassVar = {
        "text": Attribute("Text of the note.", type="string"),
        "read_by": Attribute("Names of the readers."),
    }

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Write the note; its id is the physical name."""
        return Created(ctx.physical_name)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Compare the number of readers."""
        read_by = list(ctx.data.get("read_by", []))
        ready = ctx.action != "CREATE" or len(read_by) >= ctx.properties.get("readers", 0)
        return Observation(
            exists=ctx.action != "DELETE",
            ready=ready,
            retry_after=None,
            reason="" if ready else f"{len(read_by)} readers",
            attributes={"text": ctx.properties.get("text", ""), "read_by": read_by},
        )

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Keep the note; the row has the new properties."""
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete: the note is in the row."""

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Add a reader."""
        return Signalled(data={"read_by": [*ctx.data.get("read_by", []), (details or {}).get("by", "")]})
