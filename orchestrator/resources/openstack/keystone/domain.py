"""OS::Keystone::Domain."""

from __future__ import annotations

from contextlib import suppress

from orchestrator.clients.openstack.identity import DOMAINS
from orchestrator.errors import ProviderNotFound
from orchestrator.resources.base import Context, Property, Unique
from orchestrator.resources.openstack.keystone.base import KeystoneType


class Domain(KeystoneType):
    """A domain of users, groups and projects."""

    name = "OS::Keystone::Domain"
    support_version = "8.0.0"
    collection = DOMAINS
    unique = Unique((("name",),), "rename")
    properties = {
        "name": Property("string", "Name of the domain.", update_allowed=True),
        "description": Property("string", "Description of the domain.", update_allowed=True),
        "enabled": Property("boolean", "Whether the domain can be used.", default=True, update_allowed=True),
    }

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Disable the domain, which Keystone requires, and delete it."""
        with suppress(ProviderNotFound):
            self.api(ctx).update(DOMAINS, physical_id, {"enabled": False})
            super().delete(ctx, physical_id)
