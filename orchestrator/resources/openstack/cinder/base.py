"""Declarations that cinder's types share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.clients.openstack.block_storage import BlockStorage
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, ResourceType, Value
from orchestrator.resources.openstack.connection import openstack


class CinderType(ResourceType):
    """A type of cinder; its attribute `show` is cinder's own view of the object."""

    service: ClassVar[str] = "cinder"
    endpoint_type: ClassVar[str] = "volumev3"
    live_show: ClassVar[bool] = True

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return cinder's view of the object, None if it does not exist."""
        raise NotImplementedError(self.name)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return `show`, the only live attribute."""
        return {"show": self.raw(ctx, physical_id)} if "show" in names else {}


def block_storage(ctx: Context) -> BlockStorage:
    """Return cinder, called with the stack's credential."""
    return openstack(ctx).block_storage
