"""OS::Neutron::MeteringRule: traffic that a metering label measures.

Neutron accepts no two rules of a label with overlapping addresses, so that a rule is found by its properties.
"""

from __future__ import annotations

from orchestrator.clients.openstack.networking.network import METERING_RULES
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.neutron.base import NeutronType, attributes
from orchestrator.schema.constraints import AllowedValues


class MeteringRule(NeutronType):
    """Traffic that a metering label measures, or does not measure."""

    name = "OS::Neutron::MeteringRule"
    support_version = "2014.1"
    collection = METERING_RULES
    mark = EqualValues(("metering_label_id", "remote_ip_prefix", "direction"))
    properties = {
        "metering_label_id": Property("string", "Id of the label.", required=True),
        "remote_ip_prefix": Property("string", "Addresses of the peers.", required=True),
        "direction": Property(
            "string",
            "Direction of the traffic.",
            default="ingress",
            constraints=(AllowedValues(("ingress", "egress")),),
        ),
        "excluded": Property("boolean", "Whether the traffic is not measured.", default=False),
    }
    attributes = attributes(
        direction="Direction of the traffic.",
        excluded="Whether the traffic is not measured.",
        metering_label_id="Label of the rule.",
        remote_ip_prefix="Addresses of the peers.",
    )
