"""OS::Neutron::Net: a virtual layer 2 network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from orchestrator.clients.openstack.networking.network import NETWORKS, SEGMENTS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Attribute, Context, Created, Property, Value
from orchestrator.resources.openstack.collection_type import Field, or_none, same_items
from orchestrator.resources.openstack.neutron.base import (
    BUILT,
    TAGS,
    VALUE_SPECS,
    NeutronType,
    attributes,
    network,
)
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve, Rule


class Net(NeutronType):
    """A virtual layer 2 network, to which ports and subnets belong."""

    name = "OS::Neutron::Net"
    support_version = "2014.1"
    collection = NETWORKS
    status = BUILT
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

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Schedule a new network to its DHCP agents."""
        step = super().next_step(ctx, actual)
        if step or ctx.action != "CREATE" or not ctx.properties.get("dhcp_agent_ids"):
            return step
        current = set(network(ctx).dhcp_agents(actual["id"]))
        return "" if current == set(ctx.properties["dhcp_agent_ids"]) else "set_agents"

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the tags or the agents of a new network."""
        if step == "set_agents":
            self._set_agents(ctx, physical_id, props.get("dhcp_agent_ids") or ())
            return None
        return super().advance(ctx, physical_id, props, step)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the network, and its agents."""
        if "dhcp_agent_ids" in changed:
            self._set_agents(ctx, physical_id, props.get("dhcp_agent_ids") or ())
        return super().update(ctx, physical_id, props, changed)

    def live_attribute(self, ctx: Context, name: str, actual: JsonObject) -> Value:
        """Return segments with those without a name first, as Heat does."""
        if name != "segments":
            return super().live_attribute(ctx, name, actual)
        segments = network(ctx).search(SEGMENTS, network_id=actual["id"])
        return sorted(segments, key=lambda segment: bool(segment.get("name")))

    def _set_agents(self, ctx: Context, network_id: str, wanted: Sequence[str]) -> None:
        neutron = network(ctx)
        current = set(neutron.dhcp_agents(network_id))
        for agent_id in sorted(set(wanted) - current):
            neutron.add_dhcp_agent(agent_id, network_id)
        for agent_id in sorted(current - set(wanted)):
            neutron.remove_dhcp_agent(agent_id, network_id)
