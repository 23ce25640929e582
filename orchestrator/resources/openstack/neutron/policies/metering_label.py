"""OS::Neutron::MeteringLabel: a name for measured traffic."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.network import METERING_LABELS
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.neutron.base import NeutronType, attributes


class MeteringLabel(NeutronType):
    """A name for measured traffic. Its rules select the traffic."""

    name = "OS::Neutron::MeteringLabel"
    support_version = "2014.1"
    collection = METERING_LABELS
    properties = {
        "name": Property("string", "Name of the label."),
        "description": Property("string", "Description of the label."),
        "shared": Property("boolean", "Whether the label is that of all projects.", default=False),
    }
    attributes = attributes(
        name="Name of the label.",
        description="Description of the label.",
        shared="Whether the label is that of all projects.",
    )
