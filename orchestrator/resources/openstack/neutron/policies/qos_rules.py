"""Rules of QoS policies. Neutron accepts a rule of a type once per policy and direction, so that it is found
by its properties.
"""

from __future__ import annotations

from typing import ClassVar, Final

from orchestrator.clients.openstack.networking.network import (
    BANDWIDTH_LIMIT_RULES,
    DSCP_MARKING_RULES,
    MINIMUM_BANDWIDTH_RULES,
    MINIMUM_PACKET_RATE_RULES,
)
from orchestrator.clients.openstack.object_collections import Collection
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.collection_type import APART, CreationMark
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.neutron.base import NeutronType
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve

MARKS: Final = (0, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 46, 48, 56)
_AMOUNT = (Range(min=0),)
_POLICY: Final = {
    "policy": Property(
        "string", "Name or id of the policy.", required=True, constraints=(Custom("neutron.qos_policy"),)
    ),
    "tenant_id": Property("string", "Project that owns the rule. Only administrators may set it."),
}


def _direction(*values: str) -> Property:
    return Property(
        "string",
        "Direction of the traffic, as seen from the port.",
        default="egress",
        update_allowed=True,
        constraints=(AllowedValues(values),),
    )


class QoSRule(NeutronType):
    """A rule of a policy. Its physical id is the rule's; the stored data contain the policy."""

    mark: ClassVar[CreationMark] = EqualValues((), ("direction",))
    parent_property = "policy"
    fields = {"tenant_id": APART}
    translation = (Resolve(("policy",), "neutron.qos_policy"),)


class QoSBandwidthLimitRule(QoSRule):
    """The largest bandwidth of a port."""

    name = "OS::Neutron::QoSBandwidthLimitRule"
    support_version = "6.0.0"
    collection: ClassVar[Collection] = BANDWIDTH_LIMIT_RULES
    properties = {
        **_POLICY,
        "max_kbps": Property(
            "integer", "Bandwidth in kbit/s.", required=True, update_allowed=True, constraints=_AMOUNT
        ),
        "max_burst_kbps": Property(
            "integer", "Size of bursts in kbit.", default=0, update_allowed=True, constraints=_AMOUNT
        ),
        "direction": _direction("egress", "ingress"),
    }


class QoSDscpMarkingRule(QoSRule):
    """The DSCP mark of packets."""

    name = "OS::Neutron::QoSDscpMarkingRule"
    support_version = "7.0.0"
    collection: ClassVar[Collection] = DSCP_MARKING_RULES
    mark = EqualValues(())  # a policy has one
    properties = {
        **_POLICY,
        "dscp_mark": Property(
            "integer", "The mark.", required=True, update_allowed=True, constraints=(AllowedValues(MARKS),)
        ),
    }


class QoSMinimumBandwidthRule(QoSRule):
    """The guaranteed bandwidth of a port."""

    name = "OS::Neutron::QoSMinimumBandwidthRule"
    support_version = "14.0.0"
    collection: ClassVar[Collection] = MINIMUM_BANDWIDTH_RULES
    properties = {
        **_POLICY,
        "min_kbps": Property(
            "integer", "Bandwidth in kbit/s.", required=True, update_allowed=True, constraints=_AMOUNT
        ),
        "direction": _direction("egress", "ingress"),
    }


class QoSMinimumPacketRateRule(QoSRule):
    """The guaranteed packet rate of a port."""

    name = "OS::Neutron::QoSMinimumPacketRateRule"
    support_version = "19.0.0"
    collection: ClassVar[Collection] = MINIMUM_PACKET_RATE_RULES
    properties = {
        **_POLICY,
        "min_kpps": Property(
            "integer", "Rate in 1,000 packets/s.", required=True, update_allowed=True, constraints=_AMOUNT
        ),
        "direction": _direction("any", "egress", "ingress"),
    }
