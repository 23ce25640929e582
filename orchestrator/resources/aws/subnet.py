"""AWS::EC2::Subnet: a subnet, connected with the router of its VPC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import SUBNETS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws.neutron_objects import Ec2NetworkType, is_routed, router_of_vpc
from orchestrator.resources.aws.tags import UNUSED_TAGS
from orchestrator.resources.base import Attribute, Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.neutron.base import network

ADD_INTERFACE: Final = "add_interface"


class Ec2Subnet(Ec2NetworkType):
    """A subnet of a VPC."""

    name = "AWS::EC2::Subnet"
    collection = SUBNETS
    properties = {
        "AvailabilityZone": Property("string", "Availability zone; it has no effect."),
        "CidrBlock": Property("string", "Addresses of the subnet.", required=True),
        "VpcId": Property("string", "Id of the VPC.", required=True),
        "Tags": UNUSED_TAGS,
    }
    attributes = {"AvailabilityZone": Attribute("The property AvailabilityZone.", type="string")}

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of the subnet."""
        return {
            "network_id": props["VpcId"],
            "cidr": props["CidrBlock"],
            "name": ctx.physical_name,
            "ip_version": 4,
        }

    def observation(self, ctx: Context, actual: JsonObject) -> Observation:
        """Return the observation with the zone of the template."""
        zone = {"AvailabilityZone": ctx.properties.get("AvailabilityZone")}
        return super().observation(ctx, {**actual, **zone})

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Connect a new subnet with the router of the VPC, if it has one."""
        neutron = network(ctx)
        if ctx.action != "CREATE" or is_routed(neutron, actual["id"]):
            return ""
        return ADD_INTERFACE if router_of_vpc(neutron, actual["network_id"]) is not None else ""

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Connect the subnet, unless an earlier attempt has done so."""
        neutron = network(ctx)
        router = router_of_vpc(neutron, props["VpcId"])
        if router is not None and not is_routed(neutron, physical_id):
            neutron.add_router_interface(router["id"], {"subnet_id": physical_id})
        return None

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Disconnect the subnet from the router of the VPC, and delete it."""
        neutron = network(ctx)
        subnet = neutron.find(SUBNETS, physical_id)
        if subnet is None:
            return
        router = router_of_vpc(neutron, subnet["network_id"])
        with temporary_conflicts():
            if router is not None:
                neutron.remove_router_interface(router["id"], {"subnet_id": physical_id})
        super().delete(ctx, physical_id)
