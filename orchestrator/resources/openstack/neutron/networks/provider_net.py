"""OS::Neutron::ProviderNet: a network on a given physical network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.networking.network import NETWORKS
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Property, Value
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.neutron.base import TAGS
from orchestrator.resources.openstack.neutron.networks.net import Net
from orchestrator.schema.constraints import AllowedValues, Custom

TYPES: Final = ("local", "vlan", "vxlan", "gre", "geneve", "flat")


class ProviderNet(Net):
    """A network on a given physical network. Only administrators may create it."""

    name = "OS::Neutron::ProviderNet"
    support_version = "2014.1"
    collection = NETWORKS
    fields = {
        "network_type": "provider:network_type",
        "physical_network": "provider:physical_network",
        "segmentation_id": Field("provider:segmentation_id", from_api=lambda value: str(value or "")),
        "router_external": "router:external",
    }
    properties = {
        "name": Net.properties["name"],
        "network_type": Property(
            "string",
            "Type of the network.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(TYPES),),
        ),
        "physical_network": Property("string", "Name of the physical network.", update_allowed=True),
        "segmentation_id": Property("string", "VLAN id or tunnel id.", update_allowed=True),
        "admin_state_up": Net.properties["admin_state_up"],
        "shared": Property(
            "boolean", "Whether all projects may use the network.", default=True, update_allowed=True
        ),
        "port_security_enabled": Net.properties["port_security_enabled"],
        "router_external": Property(
            "boolean", "Whether the network is external.", default=False, update_allowed=True
        ),
        "tags": TAGS,
        "dns_domain": Property(
            "string", "DNS domain of the network.", update_allowed=True, constraints=(Custom("dns_domain"),)
        ),
        "availability_zone_hints": Property(
            "list", "Preferred availability zones of the agents.", update_allowed=True
        ),
        "tenant_id": Net.properties["tenant_id"],
    }
    attributes = {
        "status": Attribute("Status of the network.", "string", live=True),
        "subnets": Attribute("Subnets of the network.", "list", live=True),
        "segments": Attribute("Segments of the network.", "list", live=True),
    }
    early_attributes = frozenset()
    translation = ()

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Reject what the type of the network excludes, with Heat's messages."""
        kind, faults = properties.get("network_type"), []
        if properties.get("segmentation_id") and kind in ("local", "flat"):
            message = "segmentation_id not allowed for network types: local, flat"
            faults.append(Fault(message, alone=True))
        if properties.get("physical_network") and kind in ("vxlan", "gre", "geneve", "local"):
            message = "physical_network not allowed for network types: vxlan, gre, geneve, flat"
            faults.append(Fault(message, alone=True))
        return faults

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Omit empty identifications of the physical network."""
        values = super().request_values(ctx, props, names)
        return {
            name: value for name, value in values.items() if value != "" or not name.startswith("provider:")
        }
