"""OS::Keystone::Service."""

from __future__ import annotations

from orchestrator.resources.base import Context, Property
from orchestrator.resources.openstack.keystone.base import KeystoneType


class CatalogService(KeystoneType):
    """A service of the catalog. Several services may have the same name."""

    name = "OS::Keystone::Service"
    support_version = "5.0.0"
    objects = "services"
    fields = {
        "name": "name",
        "description": "description",
        "type": "type",
        "enabled": "enabled",
    }
    properties = {
        "name": Property("string", "Name of the service.", update_allowed=True),
        "description": Property("string", "Description of the service.", update_allowed=True),
        "type": Property("string", "Type of the service.", required=True, update_allowed=True),
        "enabled": Property(
            "boolean", "Whether the catalog shows the service.", default=True, update_allowed=True
        ),
    }

    def search(self, ctx: Context) -> dict[str, str]:
        """Search by type."""
        return {"type": ctx.properties["type"]}
