"""Acme::Chest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from acme_shelf import shelf
from acme_shelf.box import Box, shelf_errors
from orchestrator.resources.base import Context, Created, Fault, Observation, Property, Value
from orchestrator.schema.translation import Delete, Replace
from orchestrator.template.definition import ResourceDefinition


class Chest(Box):
    """A box that is delivered in a crate, and unpacked before use."""

    name = "Acme::Chest"
    properties: ClassVar = {
        **Box.properties,
        "size": Property("integer", "Former name of litres."),
        "colour": Property("string", "Ignored: every chest is brown."),
    }
    translation = (Replace(("litres",), source=("size",)), Delete(("colour",)))

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """Require all boxes of the template: they stand below the chests."""
        return [name for name, other in resources.items() if other.type == "Acme::Box"]

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Refuse a second chest in a template."""
        chests = sorted(other.name for other in resources.values() if other.type == self.name)
        return [Fault(f"There is no space besides {chests[0]}.")] if name in chests[1:] else []

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Report a chest as unfinished until it is unpacked."""
        observation = super().observe(ctx, physical_id)
        with shelf_errors():
            chest = shelf.get(physical_id) or {}
        if observation.exists and ctx.action == "CREATE" and not chest.get("unpacked"):
            return replace(observation, step="unpack", reason="delivered")
        return observation

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Unpack the chest; a second time has no effect."""
        with shelf_errors():
            shelf.update(physical_id, unpacked=True)
        return None
