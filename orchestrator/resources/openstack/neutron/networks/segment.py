"""OS::Neutron::Segment: a layer 2 segment of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.networking.network import SEGMENTS
from orchestrator.resources.base import Fault, Property, Value
from orchestrator.resources.openstack.neutron.base import NeutronType
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve
from orchestrator.template.definition import ResourceDefinition

TYPES: Final = ("local", "vlan", "vxlan", "gre", "geneve", "flat")


class Segment(NeutronType):
    """A layer 2 segment of a network."""

    name = "OS::Neutron::Segment"
    support_version = "9.0.0"
    collection = SEGMENTS
    fields = {"network": "network_id"}
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

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Reject what the type of the segment excludes, with Heat's messages."""
        kind, faults = properties.get("network_type"), []
        segmentation_id = properties.get("segmentation_id")
        if segmentation_id is not None and kind in ("local", "flat"):
            faults.append(_fault("segmentation_id", "prohibited", kind))
        if properties.get("physical_network") and kind in ("vxlan", "gre", "geneve"):
            faults.append(_fault("physical_network", "prohibited", kind))
        if kind == "vlan" and segmentation_id is not None and segmentation_id > 4094:
            message = "Up to 4094 VLAN network segments can exist on each physical_network."
            faults.append(Fault(message, alone=True))
        return faults

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require what the type of the segment needs."""
        kind = properties.get("network_type")
        needed = {"flat": ("physical_network",), "vlan": ("physical_network", "segmentation_id")}
        definition = resources.get(name)
        given = {} if definition is None else definition.body.get("properties")
        if not isinstance(given, Mapping):
            return ()
        return [
            _fault(prop, "required", kind) for prop in needed.get(str(kind), ()) if given.get(prop) is None
        ]


def _fault(prop: str, rule: str, kind: object) -> Fault:
    return Fault(f"{prop} is {rule} for {kind} provider network.", alone=True)
