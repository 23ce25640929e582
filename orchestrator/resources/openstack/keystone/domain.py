"""OS::Keystone::Domain."""

from __future__ import annotations

from orchestrator.errors import ProviderNotFound
from orchestrator.resources.base import Context, Property, Unique
from orchestrator.resources.openstack.keystone.base import KeystoneType


class Domain(KeystoneType):
    """A domain of users, groups and projects."""

    name = "OS::Keystone::Domain"
    support_version = "8.0.0"
    objects = "domains"
    unique = Unique((("name",),), "rename")
    fields = {"name": "name", "description": "description", "enabled": "enabled"}
    properties = {
        "name": Property("string", "Name of the domain.", update_allowed=True),
        "description": Property("string", "Description of the domain.", update_allowed=True),
        "enabled": Property("boolean", "Whether the domain can be used.", default=True, update_allowed=True),
    }

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Disable the domain, which Keystone requires, and delete it."""
        domains = self.objects_of(ctx)
        try:
            domains.update(physical_id, {"enabled": False})
        except ProviderNotFound:
            return
        domains.remove(physical_id)
