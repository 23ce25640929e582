"""OS::Keystone::Region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from orchestrator.clients.openstack.identity import TOKEN_ATTRIBUTE
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, Unique, Value
from orchestrator.resources.openstack.keystone.base import KeystoneType
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class Region(KeystoneType):
    """A region of the cloud."""

    name = "OS::Keystone::Region"
    support_version = "6.0.0"
    objects = "regions"
    has_name = False
    unique = Unique((("id",),), "delete")
    fields = {
        "id": "id",
        "parent_region": "parent_region_id",
        "description": "description",
        "enabled": "enabled",
    }
    translation = (Resolve(("parent_region",), "keystone.region"),)
    properties = {
        "id": Property(
            "string", "Id of the region, unique in the cloud; it is percent-encoded. Default: a new id."
        ),
        "parent_region": Property(
            "string",
            "Id of the region to which this region belongs.",
            update_allowed=True,
            constraints=(Custom("keystone.region"),),
        ),
        "description": Property("string", "Description of the region.", update_allowed=True),
        "enabled": Property("boolean", "Whether the region is enabled.", default=True, update_allowed=True),
    }

    def values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes; Keystone accepts no null description."""
        values = {"description": "", **super().values(ctx, props)}
        if props.get("id"):
            values["id"] = quote(props["id"])
        return values

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the region, and store the token by which a delete recognizes it."""
        return replace(super().create(ctx, props), data={"token": ctx.token})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the region, unless it belongs to another user."""
        if not self._is_foreign(ctx, physical_id):
            super().delete(ctx, physical_id)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the region; after a delete, a region of another user may have the id."""
        if ctx.action == "DELETE" and self._is_foreign(ctx, physical_id):
            return Observation(exists=False)
        return super().observe(ctx, physical_id)

    def _is_foreign(self, ctx: Context, physical_id: str) -> bool:
        found, own = self.objects_of(ctx).find(physical_id), ctx.data.get("token")
        return found is not None and own not in (None, found.get(TOKEN_ATTRIBUTE))

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the region with the token."""
        regions, region_id = self.objects_of(ctx), ctx.properties.get("id")
        if not region_id:
            return regions.with_token(token) or None
        found = regions.find(quote(region_id))
        return found["id"] if found is not None and found.get(TOKEN_ATTRIBUTE) == token else None
