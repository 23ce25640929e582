"""OS::Neutron::ProviderNet: a network on a given physical network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import NETWORKS
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Property, Value
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.neutron.base import TAGS
from orchestrator.resources.openstack.neutron.networks.net import Net
from orchestrator.resources.openstack.property_rules import Refused
from orchestrator.schema.constraints import AllowedValues, Custom

WITHOUT_PHYSICAL: Final = ("vxlan", "gre", "geneve", "local")
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
    rules = (
        Refused(
            "segmentation_id not allowed for network types: local, flat",
            lambda p: p.get("segmentation_id") and p.get("network_type") in ("local", "flat"),
        ),
        Refused(
            "physical_network not allowed for network types: vxlan, gre, geneve, flat",
            lambda p: p.get("physical_network") and p.get("network_type") in WITHOUT_PHYSICAL,
        ),
    )
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

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Omit empty identifications of the physical network."""
        values = super().request_values(ctx, props, names)
        return {
            name: value for name, value in values.items() if value != "" or not name.startswith("provider:")
        }
