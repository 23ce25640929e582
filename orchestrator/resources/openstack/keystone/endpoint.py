"""OS::Keystone::Endpoint."""

from __future__ import annotations

from orchestrator.clients.openstack.identity import ENDPOINTS, TOKEN_ATTRIBUTE
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.creation_marks import TokenInAttribute
from orchestrator.resources.openstack.keystone.base import KeystoneType
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.schema.translation import Resolve


class Endpoint(KeystoneType):
    """An endpoint of a service: its URL for users, other services or administrators."""

    name = "OS::Keystone::Endpoint"
    support_version = "5.0.0"
    collection = ENDPOINTS
    fields = {"region": "region_id", "service": "service_id"}
    mark = TokenInAttribute(TOKEN_ATTRIBUTE, ("service", "interface"))
    translation = (Resolve(("service",), "keystone.service"), Resolve(("region",), "keystone.region"))
    properties = {
        "name": Property("string", "Name of the endpoint.", update_allowed=True),
        "region": Property(
            "string", "Id of the region.", update_allowed=True, constraints=(Custom("keystone.region"),)
        ),
        "service": Property(
            "string",
            "Name or id of the service.",
            required=True,
            update_allowed=True,
            constraints=(Custom("keystone.service"),),
        ),
        "interface": Property(
            "string",
            "Interface of the endpoint.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(("public", "internal", "admin")),),
        ),
        "url": Property("string", "URL of the service.", required=True, update_allowed=True),
        "enabled": Property(
            "boolean", "Whether the catalog shows the endpoint.", default=True, update_allowed=True
        ),
    }
