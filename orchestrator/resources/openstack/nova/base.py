"""Declarations that nova's types share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.clients.openstack.compute import Compute
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, ResourceType, Value
from orchestrator.resources.openstack.connection import openstack


class NovaType(ResourceType):
    """A type of nova; its attribute `show` is nova's own view of the object."""

    service: ClassVar[str] = "nova"
    endpoint_type: ClassVar[str] = "compute"
    live_show: ClassVar[bool] = True

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return nova's view of the object, None if it does not exist."""
        raise NotImplementedError(self.name)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return `show`, the only live attribute of most types."""
        return {"show": self.raw(ctx, physical_id)} if "show" in names else {}


def compute(ctx: Context) -> Compute:
    """Return nova, called with the stack's credential."""
    return openstack(ctx).compute
