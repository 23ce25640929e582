"""OS::Keystone::Service."""

from __future__ import annotations

from orchestrator.clients.openstack.identity import SERVICES, TOKEN_ATTRIBUTE
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.creation_marks import TokenInAttribute
from orchestrator.resources.openstack.keystone.base import KeystoneType


class CatalogService(KeystoneType):
    """A service of the catalog. Several services may have the same name."""

    name = "OS::Keystone::Service"
    support_version = "5.0.0"
    collection = SERVICES
    mark = TokenInAttribute(TOKEN_ATTRIBUTE, ("type",))
    properties = {
        "name": Property("string", "Name of the service.", update_allowed=True),
        "description": Property("string", "Description of the service.", update_allowed=True),
        "type": Property("string", "Type of the service.", required=True, update_allowed=True),
        "enabled": Property(
            "boolean", "Whether the catalog shows the service.", default=True, update_allowed=True
        ),
    }
