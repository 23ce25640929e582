"""AWS::EC2::VPC: a network, and a router of the same name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import NETWORKS, ROUTERS
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws.neutron_objects import Ec2NetworkType, router_of_vpc
from orchestrator.resources.aws.tags import UNUSED_TAGS
from orchestrator.resources.base import Context, Created, Property, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.creation_marks import marked
from orchestrator.resources.openstack.neutron.base import BUILT, network
from orchestrator.schema.constraints import AllowedValues

CREATE_ROUTER: Final = "create_router"


class Vpc(Ec2NetworkType):
    """A virtual private cloud: a network and its default router."""

    name = "AWS::EC2::VPC"
    collection = NETWORKS
    status = BUILT
    properties = {
        "CidrBlock": Property("string", "Addresses of the VPC; those of its subnets are used."),
        "InstanceTenancy": Property(
            "string",
            "Not implemented.",
            constraints=(AllowedValues(("default", "dedicated")),),
            implemented=False,
        ),
        "Tags": UNUSED_TAGS,
    }

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of the network."""
        return {"name": ctx.physical_name}

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Create the router of a new network."""
        if ctx.action != "CREATE" or router_of_vpc(network(ctx), actual["id"]) is not None:
            return ""
        return CREATE_ROUTER

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Create the router, unless an earlier attempt has created it."""
        neutron = network(ctx)
        if router_of_vpc(neutron, physical_id) is None:
            found = neutron.find(NETWORKS, physical_id) or {}
            description = marked("", ctx.token)
            neutron.create(ROUTERS, {"name": found["name"], "description": description})
        return None

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the router, then the network. While one is in use, the requests are repeated."""
        neutron = network(ctx)
        try:
            router = router_of_vpc(neutron, physical_id)
        except ProviderError as error:
            if error.kind != "Error":
                raise
            router = None  # ambiguous: the routers are left alone
        if router is not None:
            with temporary_conflicts():
                neutron.remove(ROUTERS, router["id"])
        super().delete(ctx, physical_id)
