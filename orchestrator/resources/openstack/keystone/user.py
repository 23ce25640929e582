"""OS::Keystone::User."""

from __future__ import annotations

from orchestrator.clients.openstack.identity import USERS
from orchestrator.resources.base import Attribute, Property, Unique
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.keystone.links import ROLE_LOOKUPS, ROLES, LinkedType
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class User(LinkedType):
    """A user, with roles and memberships in groups. Its name is unique in its domain."""

    name = "OS::Keystone::User"
    support_version = "2015.1"
    collection = USERS
    unique = Unique((("name", "domain"),), "rename")
    subject = "user"
    fields = {
        "domain": "domain_id",
        "password": Field(reported=False),
        "default_project": "default_project_id",
    }
    translation = (
        Resolve(("domain",), "keystone.domain"),
        Resolve(("default_project",), "keystone.project"),
        Resolve(("groups",), "keystone.group"),
        *ROLE_LOOKUPS,
    )
    properties = {
        "name": Property("string", "Name of the user.", update_allowed=True),
        "domain": Property(
            "string",
            "Name or id of the domain.",
            default="default",
            update_allowed=True,
            constraints=(Custom("keystone.domain"),),
        ),
        "description": Property("string", "Description of the user.", default="", update_allowed=True),
        "enabled": Property(
            "boolean", "Whether the user can authenticate.", default=True, update_allowed=True
        ),
        "email": Property("string", "Email address of the user.", update_allowed=True),
        "password": Property("string", "Password of the user.", update_allowed=True),
        "default_project": Property(
            "string",
            "Name or id of the default project.",
            update_allowed=True,
            constraints=(Custom("keystone.project"),),
        ),
        "groups": Property(
            "list",
            "Groups of the user.",
            update_allowed=True,
            schema=Property("string", "Name or id of the group.", constraints=(Custom("keystone.group"),)),
        ),
        "roles": ROLES,
    }
    attributes = {
        "name": Attribute("Name of the user.", type="string"),
        "default_project_id": Attribute("Id of the default project.", type="string"),
        "domain_id": Attribute("Id of the domain.", type="string"),
        "enabled": Attribute("Whether the user can authenticate.", type="boolean"),
        "password_expires_at": Attribute("Time at which the password expires.", type="string"),
    }
