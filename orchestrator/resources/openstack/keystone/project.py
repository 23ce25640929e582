"""OS::Keystone::Project."""

from __future__ import annotations

from orchestrator.clients.openstack.identity import PROJECTS
from orchestrator.resources.base import Attribute, Property, Unique
from orchestrator.resources.openstack.collection_type import Field, same_items
from orchestrator.resources.openstack.keystone.base import KeystoneType
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class Project(KeystoneType):
    """A project, the owner of resources of the cloud. Its name is unique in its domain."""

    name = "OS::Keystone::Project"
    support_version = "2015.1"
    collection = PROJECTS
    unique = Unique((("name", "domain"),), "rename")
    fields = {"domain": "domain_id", "parent": "parent_id", "tags": Field(satisfies=same_items)}
    translation = (Resolve(("domain",), "keystone.domain"), Resolve(("parent",), "keystone.project"))
    properties = {
        "name": Property("string", "Name of the project.", update_allowed=True),
        "domain": Property(
            "string",
            "Name or id of the domain.",
            default="default",
            update_allowed=True,
            constraints=(Custom("keystone.domain"),),
        ),
        "description": Property("string", "Description of the project.", default="", update_allowed=True),
        "enabled": Property("boolean", "Whether the project can be used.", default=True, update_allowed=True),
        "parent": Property(
            "string",
            "Name or id of the parent in the hierarchy of projects.",
            constraints=(Custom("keystone.project"),),
        ),
        "tags": Property("list", "Tags of the project.", default=[], update_allowed=True),
    }
    attributes = {
        "name": Attribute("Name of the project.", type="string"),
        "parent_id": Attribute("Id of the parent.", type="string"),
        "domain_id": Attribute("Id of the domain.", type="string"),
        "enabled": Attribute("Whether the project can be used.", type="boolean"),
        "is_domain": Attribute("Whether the project also acts as a domain.", type="boolean"),
    }
