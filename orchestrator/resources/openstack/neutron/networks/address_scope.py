"""OS::Neutron::AddressScope: a set of addresses without overlaps.

Address scopes have no description, so that a scope whose create request had no answer is found by its name.
The default name is unique; a name in the template should be unique as well.
"""

from __future__ import annotations

from orchestrator.clients.openstack.networking.network import ADDRESS_SCOPES
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.neutron.base import NeutronType
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.schema.translation import Resolve


class AddressScope(NeutronType):
    """A set of addresses without overlaps: routers forward traffic within it without translation."""

    name = "OS::Neutron::AddressScope"
    support_version = "6.0.0"
    collection = ADDRESS_SCOPES
    mark = EqualValues(("name", "ip_version"), in_project=True)
    properties = {
        "name": Property("string", "Name of the scope.", update_allowed=True),
        "shared": Property(
            "boolean", "Whether all projects may use the scope.", default=False, update_allowed=True
        ),
        "tenant_id": Property(
            "string",
            "Project that owns the scope. Only administrators may set it.",
            constraints=(Custom("keystone.project"),),
        ),
        "ip_version": Property("integer", "Version of IP.", default=4, constraints=(AllowedValues((4, 6)),)),
    }
    translation = (Resolve(("tenant_id",), "keystone.project"),)
