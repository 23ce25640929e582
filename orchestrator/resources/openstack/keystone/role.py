"""OS::Keystone::Role."""

from __future__ import annotations

from orchestrator.clients.openstack.identity import ROLES
from orchestrator.resources.base import Property, Unique
from orchestrator.resources.openstack.keystone.base import KeystoneType
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class Role(KeystoneType):
    """A role, to be assigned to users and groups. Its name is unique in its domain."""

    name = "OS::Keystone::Role"
    support_version = "2015.1"
    collection = ROLES
    unique = Unique((("name", "domain"),), "rename")
    fields = {"domain": "domain_id"}
    translation = (Resolve(("domain",), "keystone.domain"),)
    properties = {
        "name": Property("string", "Name of the role.", update_allowed=True),
        "domain": Property(
            "string",
            "Name or id of the domain; by default the role belongs to none.",
            constraints=(Custom("keystone.domain"),),
        ),
    }
