"""OS::Neutron::Segment: a layer 2 segment of a network."""

from __future__ import annotations

from typing import Final

from orchestrator.clients.openstack.networking.network import SEGMENTS
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.neutron.base import NeutronType
from orchestrator.resources.openstack.property_rules import Refused, Required, among
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve

TYPES: Final = ("local", "vlan", "vxlan", "gre", "geneve", "flat")


def _required(name: str, *kinds: str) -> Required:
    message = f"{name} is required for {{network_type}} provider network."
    return Required(name, message, among("network_type", kinds))


class Segment(NeutronType):
    """A layer 2 segment of a network."""

    name = "OS::Neutron::Segment"
    support_version = "9.0.0"
    collection = SEGMENTS
    fields = {"network": "network_id"}
    rules = (
        Refused(
            "segmentation_id is prohibited for {network_type} provider network.",
            lambda p: p.get("segmentation_id") is not None and p.get("network_type") in ("local", "flat"),
        ),
        Refused(
            "physical_network is prohibited for {network_type} provider network.",
            lambda p: p.get("physical_network") and p.get("network_type") in ("vxlan", "gre", "geneve"),
        ),
        Refused(
            "Up to 4094 VLAN network segments can exist on each physical_network.",
            lambda p: p.get("network_type") == "vlan" and (p.get("segmentation_id") or 0) > 4094,
        ),
        _required("physical_network", "flat", "vlan"),
        _required("segmentation_id", "vlan"),
    )
    properties = {
        "network": Property(
            "string", "Name or id of the network.", required=True, constraints=(Custom("neutron.network"),)
        ),
        "network_type": Property(
            "string", "Type of the segment.", required=True, constraints=(AllowedValues(TYPES),)
        ),
        "physical_network": Property("string", "Name of the physical network."),
        "segmentation_id": Property("integer", "VLAN id or tunnel id.", constraints=(Range(min=1),)),
        "name": Property("string", "Name of the segment.", update_allowed=True),
        "description": Property("string", "Description of the segment.", update_allowed=True),
    }
    translation = (Resolve(("network",), "neutron.network"),)
