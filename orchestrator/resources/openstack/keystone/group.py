"""OS::Keystone::Group."""

from __future__ import annotations

from orchestrator.clients.openstack.identity import GROUPS
from orchestrator.resources.base import Property, Unique
from orchestrator.resources.openstack.keystone.links import ROLE_LOOKUPS, ROLES, LinkedType
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class Group(LinkedType):
    """A group of users, with the roles of its members. Its name is unique in its domain."""

    name = "OS::Keystone::Group"
    support_version = "2015.1"
    collection = GROUPS
    unique = Unique((("name", "domain"),), "rename")
    subject = "group"
    fields = {"domain": "domain_id"}
    translation = (Resolve(("domain",), "keystone.domain"), *ROLE_LOOKUPS)
    properties = {
        "name": Property("string", "Name of the group.", update_allowed=True),
        "domain": Property(
            "string",
            "Name or id of the domain.",
            default="default",
            update_allowed=True,
            constraints=(Custom("keystone.domain"),),
        ),
        "description": Property("string", "Description of the group.", default="", update_allowed=True),
        "roles": ROLES,
    }
