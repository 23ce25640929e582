"""OS::Keystone::Region."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from orchestrator.clients.openstack.identity import REGIONS, TOKEN_ATTRIBUTE
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Property, Unique, Value
from orchestrator.resources.openstack.collection_type import Field, or_empty
from orchestrator.resources.openstack.creation_marks import TokenInAttribute
from orchestrator.resources.openstack.keystone.base import KeystoneType
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class Region(KeystoneType):
    """A region of the cloud."""

    name = "OS::Keystone::Region"
    support_version = "6.0.0"
    collection = REGIONS
    unique = Unique((("id",),), "delete")
    checks_owner = True
    mark = TokenInAttribute(TOKEN_ATTRIBUTE)
    fields = {
        "id": Field(to_api=quote),
        "parent_region": "parent_region_id",
        "description": Field(to_api=or_empty),  # Keystone accepts no null description
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

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes, with a description."""
        return {"description": "", **super().new_values(ctx, props)}
