"""Types of the provider in memory whose dock is a unique name."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.resources.base import Context, ResourceType, Unique
from tests.scenarios.provider import Docked, Provider, Rigid


class Titled(Rigid):
    """Any change makes another of it, and a thing with the same dock is removed first."""

    name = "Sim::Titled"
    properties: ClassVar = Docked.properties
    unique = Unique((("dock",),), "delete")


class Searched(Titled):
    """Its dock is searched in place of its token."""

    name = "Sim::Searched"
    unique = Unique((("dock",),), "delete", searched=True)

    def find(self, ctx: Context, token: str) -> str | None:
        docked = (it.id for it in self.provider.things.values() if it.dock == ctx.properties["dock"])
        found: str | None = self.provider.ask("find", ctx, lambda: next(docked, None))
        return found


class Renamed(Titled):
    """Any change makes another of it, and a thing with the same dock moves to another one first."""

    name = "Sim::Renamed"
    unique = Unique((("dock",),), "rename")

    def rename(self, ctx: Context, physical_id: str, name: str) -> None:
        self.provider.ask("rename", ctx, lambda: self.provider.rename(ctx, physical_id, name))


def named_types(provider: Provider) -> dict[str, ResourceType]:
    """Return the types of a provider."""
    return {kind.name: kind(provider) for kind in (Titled, Searched, Renamed)}
