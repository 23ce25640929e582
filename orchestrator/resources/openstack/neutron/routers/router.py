"""OS::Neutron::Router: a router between networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import ROUTERS
from orchestrator.clients.openstack.networking.network_agents import L3_AGENTS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Attribute, Property
from orchestrator.resources.openstack.collection_type import APART, Field, same_items
from orchestrator.resources.openstack.neutron.agents import ScheduledType
from orchestrator.resources.openstack.neutron.base import (
    BUILT,
    TAGS,
    VALUE_SPECS,
    attributes,
)
from orchestrator.resources.openstack.property_rules import Exclusive, Refused
from orchestrator.resources.openstack.written_values import member, subnets_of, written
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Add, Delete, Resolve
from orchestrator.template.definition import ResourceDefinition

_ADDRESS: Final = Property(
    "map",
    "An address of the gateway.",
    schema={
        "ip_address": Property("string", "The address.", constraints=(Custom("ip_addr"),)),
        "subnet": Property("string", "Name or id of the subnet.", constraints=(Custom("neutron.subnet"),)),
    },
)
_GATEWAY: Final = {
    "network": Property("string", "Name or id of the external network.", required=True, update_allowed=True),
    "enable_snat": Property("boolean", "Whether source addresses are translated.", update_allowed=True),
    "external_fixed_ips": Property(
        "list", "Addresses on the external network.", update_allowed=True, schema=_ADDRESS
    ),
}


class Router(ScheduledType):
    """A router: it connects subnets with each other and with an external network."""

    name = "OS::Neutron::Router"
    support_version = "2013.1"
    collection = ROUTERS
    status = BUILT
    agents_property = "l3_agent_ids"
    agents = L3_AGENTS
    fields = {
        "external_gateway_info": Field(
            to_api=lambda value: _gateway_request(value) if value else value,
            from_api=lambda gateway: _written_gateway(gateway) if gateway else {},
            satisfies=lambda desired, actual: _is_gateway(desired or {}, actual or {}),
        ),
        "l3_agent_id": APART,
        "l3_agent_ids": Field(equal=same_items, sent=False),
    }
    rules = (
        Exclusive("distributed", "l3_agent_ids", ("distributed", "l3_agent_id/l3_agent_ids")),
        Exclusive("distributed", "ha"),
        Refused(
            "Non HA routers can only have one L3 agent.",
            lambda p: not p.get("ha") and len(p.get("l3_agent_ids") or ()) > 1,
        ),
    )
    properties = {
        "name": Property("string", "Name of the router.", update_allowed=True),
        "external_gateway_info": Property(
            "map", "Connection with an external network.", update_allowed=True, schema=_GATEWAY
        ),
        "value_specs": VALUE_SPECS,
        "admin_state_up": Property(
            "boolean", "Administrative state of the router.", default=True, update_allowed=True
        ),
        "l3_agent_id": Property(
            "string", "Former way to name an L3 agent.", hidden=True, update_allowed=True
        ),
        "l3_agent_ids": Property(
            "list",
            "L3 agents of the router. Only administrators may set them.",
            update_allowed=True,
            schema=Property("string", "Id of an agent."),
        ),
        "distributed": Property("boolean", "Whether the router is distributed."),
        "ha": Property("boolean", "Whether the router is highly available."),
        "availability_zone_hints": Property(
            "list", "Preferred availability zones of the router.", update_allowed=True
        ),
        "tags": TAGS,
        "tenant_id": Property("string", "Project that owns the router. Only administrators may set it."),
    }
    attributes = {
        **attributes(
            name="Name of the router.",
            admin_state_up="Administrative state of the router.",
            tenant_id="Project that owns the router.",
        ),
        "status": Attribute("Status of the router.", "string", live=True),
        "external_gateway_info": Attribute("Connection with an external network.", "map", live=True),
    }
    translation = (
        Resolve(("external_gateway_info", "network"), "neutron.network"),
        Resolve(("external_gateway_info", "external_fixed_ips", "subnet"), "neutron.subnet"),
        Add(("l3_agent_ids",), source=("l3_agent_id",)),
        Delete(("l3_agent_id",)),
    )

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """The gateway needs an address of the external network's subnets."""
        external = member(written(definition, "external_gateway_info"), "network")
        return subnets_of(external, resources)


def _gateway_request(value: JsonMapping) -> JsonObject:
    """Return a gateway with ids, without values that are not given."""
    gateway = {"network_id": value["network"]}
    if value.get("enable_snat") is not None:
        gateway["enable_snat"] = value["enable_snat"]
    if value.get("external_fixed_ips") is not None:
        gateway["external_fixed_ips"] = [
            {{"subnet": "subnet_id"}.get(key, key): item for key, item in address.items() if item}
            for address in value["external_fixed_ips"]
        ]
    return gateway


def _written_gateway(gateway: JsonMapping) -> JsonObject:
    """Return a gateway with the names in templates."""
    return {
        "network": gateway.get("network_id"),
        "enable_snat": gateway.get("enable_snat"),
        "external_fixed_ips": [
            {"ip_address": address.get("ip_address"), "subnet": address.get("subnet_id")}
            for address in gateway.get("external_fixed_ips") or ()
        ],
    }


def _is_gateway(desired: JsonMapping, actual: JsonMapping) -> bool:
    """Return whether a gateway is as desired; Neutron chooses what is not given."""
    if not desired or not actual:
        return desired == actual
    return (
        desired["network"] == actual["network"]
        and desired.get("enable_snat") in (None, actual["enable_snat"])
        and all(
            any(
                all(address.get(key) == value for key, value in item.items() if value)
                for address in actual["external_fixed_ips"]
            )
            for item in desired.get("external_fixed_ips") or ()
        )
    )
