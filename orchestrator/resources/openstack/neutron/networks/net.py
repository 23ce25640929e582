"""OS::Neutron::Net: a virtual layer 2 network."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.clients.openstack.networking.network import NETWORKS, SEGMENTS
from orchestrator.clients.openstack.networking.network_agents import DHCP_AGENTS
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Property, Value
from orchestrator.resources.openstack.collection_type import Field, or_none, same_items
from orchestrator.resources.openstack.neutron.agents import ScheduledType
from orchestrator.resources.openstack.neutron.base import (
    BUILT,
    TAGS,
    VALUE_SPECS,
    attributes,
    network,
)
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve, Rule


class Net(ScheduledType):
    """A virtual layer 2 network, to which ports and subnets belong."""

    name = "OS::Neutron::Net"
    support_version = "2014.1"
    collection = NETWORKS
    status = BUILT
    agents_property = "dhcp_agent_ids"
    agents = DHCP_AGENTS
    fields = {
        "qos_policy": Field("qos_policy_id", to_api=or_none),
        "dhcp_agent_ids": Field(equal=same_items, sent=False),
    }
    properties = {
        "name": Property("string", "Name of the network.", update_allowed=True),
        "value_specs": VALUE_SPECS,
        "admin_state_up": Property(
            "boolean", "Administrative state of the network.", default=True, update_allowed=True
        ),
        "tenant_id": Property("string", "Project that owns the network. Only administrators may set it."),
        "shared": Property(
            "boolean", "Whether all projects may use the network.", default=False, update_allowed=True
        ),
        "dhcp_agent_ids": Property(
            "list", "DHCP agents of the network. Only administrators may set them.", update_allowed=True
        ),
        "port_security_enabled": Property(
            "boolean", "Whether new ports of the network filter traffic.", update_allowed=True
        ),
        "qos_policy": Property(
            "string",
            "Name or id of the QoS policy.",
            update_allowed=True,
            constraints=(Custom("neutron.qos_policy"),),
        ),
        "dns_domain": Property(
            "string", "DNS domain of the network.", update_allowed=True, constraints=(Custom("dns_domain"),)
        ),
        "availability_zone_hints": Property("list", "Preferred availability zones of the agents."),
        "tags": TAGS,
    }
    attributes = {
        **attributes(
            name="Name of the network.",
            admin_state_up="Administrative state of the network.",
            tenant_id="Project that owns the network.",
            port_security_enabled="boolean: Whether new ports filter traffic.",
            mtu="integer: Maximum transmission unit.",
            qos_policy_id="QoS policy of the network.",
            l2_adjacency="boolean: Whether all ports are on one layer 2 segment.",
        ),
        "status": Attribute("Status of the network.", "string", live=True),
        "subnets": Attribute("Subnets of the network.", "list", live=True),
        "segments": Attribute("Segments of the network.", "list", live=True),
    }
    early_attributes = frozenset(name for name, attribute in attributes.items() if not attribute.live)
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("qos_policy",), "neutron.qos_policy"),)

    def live_attribute(self, ctx: Context, name: str, actual: JsonObject) -> Value:
        """Return segments with those without a name first, as Heat does."""
        if name != "segments":
            return super().live_attribute(ctx, name, actual)
        segments = network(ctx).search(SEGMENTS, network_id=actual["id"])
        return sorted(segments, key=lambda segment: bool(segment.get("name")))
