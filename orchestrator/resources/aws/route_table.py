"""AWS::EC2::RouteTable: a router of a VPC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import ROUTERS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws.neutron_objects import (
    Ec2NetworkType,
    has_gateway,
    route_table_description,
    router_of_vpc,
)
from orchestrator.resources.aws.tags import UNUSED_TAGS
from orchestrator.resources.base import Context, Created, Property, Value
from orchestrator.resources.openstack.neutron.base import BUILT, network

SET_GATEWAY: Final = "set_gateway"


class RouteTable(Ec2NetworkType):
    """A router. It is connected with the external network if the default router of the VPC is."""

    name = "AWS::EC2::RouteTable"
    support_version = "2014.1"
    collection = ROUTERS
    status = BUILT
    properties = {"VpcId": Property("string", "Id of the VPC.", required=True), "Tags": UNUSED_TAGS}

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of the router."""
        return {"name": ctx.physical_name, "description": route_table_description(props["VpcId"])}

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Connect a new router as the default router of the VPC is."""
        if ctx.action != "CREATE" or has_gateway(dict(actual)):
            return ""
        default = router_of_vpc(network(ctx), ctx.properties["VpcId"])
        return SET_GATEWAY if default is not None and has_gateway(default) else ""

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the gateway of the default router."""
        neutron = network(ctx)
        default = router_of_vpc(neutron, props["VpcId"])
        if default is not None and has_gateway(default):
            gateway = {"network_id": default["external_gateway_info"]["network_id"]}
            neutron.set_gateway(physical_id, gateway)
        return None
