"""AWS::EC2::InternetGateway, and AWS::EC2::VPCGatewayAttachment: the gateway of a VPC's route tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.resources.aws.neutron_objects import external_network_id, has_gateway, route_tables
from orchestrator.resources.aws.tags import UNUSED_TAGS
from orchestrator.resources.base import Context, Created, Observation, Property, ResourceType, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.written_values import may_equal, of_type, written
from orchestrator.template.definition import ResourceDefinition

ATTACH: Final = "attach"


class InternetGateway(ResourceType):
    """The external network of the cloud; it has no object."""

    name = "AWS::EC2::InternetGateway"
    calls_out = False
    properties = {"Tags": UNUSED_TAGS}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Return the physical name as the id."""
        return Created(ctx.physical_name)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It exists until it is deleted."""
        return Observation(exists=ctx.action != "DELETE")

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete."""


class VpcGatewayAttachment(ResourceType):
    """Connects the route tables of a VPC with the external network. Its physical id is the VPC's."""

    name = "AWS::EC2::VPCGatewayAttachment"
    service = "neutron"
    endpoint_type = "network"
    properties = {
        "VpcId": Property("string", "Id of the VPC.", required=True),
        "InternetGatewayId": Property("string", "Id of the internet gateway."),
        "VpnGatewayId": Property("string", "Not implemented.", implemented=False),
    }

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """The route tables of the VPC have to exist before they are connected."""
        vpc = written(definition, "VpcId")
        for table in of_type(resources, "AWS::EC2::RouteTable"):
            if may_equal(vpc, written(table, "VpcId")):
                yield table.name

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request nothing yet: each route table is connected in a step."""
        return Created(props["VpcId"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: `create` sends no request."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the route tables of the VPC."""
        tables = list(route_tables(network(ctx), physical_id))
        if ctx.action == "DELETE":
            return Observation(exists=any(has_gateway(table) for table in tables))
        is_complete = all(has_gateway(table) for table in tables)
        step = ATTACH if ctx.action == "CREATE" and not is_complete else ""
        return Observation(exists=True, ready=not step, step=step, reference_id=ctx.name)

    def advance(self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str) -> None:
        """Connect the route tables that are not connected."""
        neutron = network(ctx)
        for table in route_tables(neutron, physical_id):
            if not has_gateway(table):
                neutron.set_gateway(table["id"], {"network_id": external_network_id(neutron)})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Disconnect the route tables; while floating IPs use a gateway, the request is repeated."""
        neutron = network(ctx)
        for table in route_tables(neutron, physical_id):
            if has_gateway(table):
                with temporary_conflicts():
                    neutron.set_gateway(table["id"], {})
