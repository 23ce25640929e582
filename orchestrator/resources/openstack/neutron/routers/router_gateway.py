"""OS::Neutron::RouterGateway: the connection of a router with an external network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.clients.openstack.networking.network import ROUTERS
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.neutron.relation import NeutronRelation
from orchestrator.resources.openstack.written_values import subnets_of, with_router, written
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Replace, Resolve
from orchestrator.template.definition import ResourceDefinition


class RouterGateway(NeutronRelation):
    """The gateway of a router; the property `external_gateway_info` of routers supersedes it."""

    name = "OS::Neutron::RouterGateway"
    hidden = True
    support_status = "HIDDEN"
    support_version = "5.0.0"
    support_message = "Use the property `external_gateway_info` of the router."
    properties = {
        "router_id": Property(
            "string", "Id of the router.", required=True, constraints=(Custom("neutron.router"),)
        ),
        "network_id": Property(
            "string", "Former name of `network`.", hidden=True, constraints=(Custom("neutron.network"),)
        ),
        "network": Property(
            "string", "Name or id of the external network.", constraints=(Custom("neutron.network"),)
        ),
    }
    translation = (
        Replace(("network",), source=("network_id",)),
        Resolve(("router_id",), "neutron.router"),
        Resolve(("network",), "neutron.network"),
    )

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """The interfaces of the router come first, and the subnets that give the gateway its address."""
        yield from with_router(written(definition, "router_id"), resources, "OS::Neutron::RouterInterface")
        yield from subnets_of(written(definition, "network", "network_id"), resources)

    def physical_id(self, props: Mapping[str, Value]) -> str:
        """Return the ids of the router and the network."""
        return f"{props['router_id']}:{props.get('network')}"

    def connect(self, ctx: Context, props: Mapping[str, Value]) -> None:
        """Set the gateway of the router."""
        network(ctx).set_gateway(props["router_id"], {"network_id": props.get("network")})

    def disconnect(self, ctx: Context, physical_id: str) -> None:
        """Clear the gateway, unless it has another network by now."""
        if self.connection(ctx, physical_id) is not None:
            network(ctx).set_gateway(physical_id.partition(":")[0], {})

    def connection(self, ctx: Context, physical_id: str) -> JsonMapping | None:
        """Return `{}` if the gateway of the router is the network."""
        router_id, _, network_id = physical_id.partition(":")
        router = network(ctx).find(ROUTERS, router_id) or {}
        gateway = router.get("external_gateway_info") or {}
        return {} if gateway.get("network_id") == network_id else None
