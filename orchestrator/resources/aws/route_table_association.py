"""AWS::EC2::SubnetRouteTableAssociation: the router of a subnet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestrator.clients.openstack.networking.network import SUBNETS, Network
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws.neutron_objects import is_routed, router_of_vpc
from orchestrator.resources.base import Context, Observation, Property, Value
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.neutron.relation import NeutronRelation
from orchestrator.resources.openstack.neutron.routers.router_interface import RouterInterface
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve

_INTERFACE: Final = RouterInterface()


class SubnetRouteTableAssociation(NeutronRelation):
    """Connects a subnet with a route table in place of the default router of the VPC."""

    name = "AWS::EC2::SubnetRouteTableAssociation"
    properties = {
        "RouteTableId": Property("string", "Id of the route table.", required=True),
        "SubnetId": Property(
            "string", "Id of the subnet.", required=True, constraints=(Custom("neutron.subnet"),)
        ),
    }
    translation = (Resolve(("SubnetId",), "neutron.subnet"),)

    def physical_id(self, props: Mapping[str, Value]) -> str:
        """Return the ids of the router and the subnet."""
        return f"{props['RouteTableId']}:subnet_id={props['SubnetId']}"

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the connection."""
        return replace(super().observe(ctx, physical_id), reference_id=ctx.name)

    def connect(self, ctx: Context, props: Mapping[str, Value]) -> None:
        """Disconnect the subnet from the default router, and connect it with the route table."""
        neutron, router_id, target = network(ctx), props["RouteTableId"], {"subnet_id": props["SubnetId"]}
        default = _default_router(neutron, props["SubnetId"])
        if default is not None and default["id"] != router_id:
            neutron.remove_router_interface(default["id"], target)
        neutron.add_router_interface(router_id, target)

    def disconnect(self, ctx: Context, physical_id: str) -> None:
        """Connect the subnet with the default router again."""
        neutron, (router_id, _, target) = network(ctx), physical_id.partition(":subnet_id=")
        neutron.remove_router_interface(router_id, {"subnet_id": target})
        default = _default_router(neutron, target)
        if default is not None and default["id"] != router_id and not is_routed(neutron, target):
            neutron.add_router_interface(default["id"], {"subnet_id": target})

    def connection(self, ctx: Context, physical_id: str) -> JsonMapping | None:
        """Return `{}` if the router has a port on the subnet."""
        return _INTERFACE.connection(ctx, physical_id)


def _default_router(neutron: Network, subnet_id: str) -> JsonObject | None:
    subnet = neutron.find(SUBNETS, subnet_id)
    return None if subnet is None else router_of_vpc(neutron, subnet["network_id"])
