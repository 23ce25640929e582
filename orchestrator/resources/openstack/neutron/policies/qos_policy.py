"""OS::Neutron::QoSPolicy: limits and guarantees for the traffic of ports and networks."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.network import QOS_POLICIES
from orchestrator.resources.base import Attribute, Property
from orchestrator.resources.openstack.neutron.base import NeutronType


class QoSPolicy(NeutronType):
    """A set of rules for the quality of service of ports, networks and floating IPs."""

    name = "OS::Neutron::QoSPolicy"
    support_version = "6.0.0"
    collection = QOS_POLICIES
    properties = {
        "name": Property("string", "Name of the policy.", update_allowed=True),
        "description": Property("string", "Description of the policy.", update_allowed=True),
        "shared": Property(
            "boolean", "Whether all projects may use the policy.", default=False, update_allowed=True
        ),
        "tenant_id": Property("string", "Project that owns the policy. Only administrators may set it."),
    }
    attributes = {"rules": Attribute("Rules of the policy.", "list", live=True)}
