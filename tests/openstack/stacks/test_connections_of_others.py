"""A refused create of a connection does not take over the equal connection of another stack."""

from __future__ import annotations

import pytest

from orchestrator.clients.openstack.networking.network import ROUTERS
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of, ref

OWNER = {
    "net": of("OS::Neutron::Net"),
    "subnet": of("OS::Neutron::Subnet", network=ref("net"), cidr="10.84.0.0/24"),
    "router": of("OS::Neutron::Router"),
    "interface": of("OS::Neutron::RouterInterface", router=ref("router"), subnet=ref("subnet")),
    "route": of(
        "OS::Neutron::ExtraRoute", router_id=ref("router"), destination="10.85.0.0/24", nexthop="10.84.0.9"
    ),
}


@pytest.mark.parametrize("kind", ["interface", "route"])
def test_the_connection_of_another_stack_remains(world: CloudWorld, kind: str) -> None:
    owner = world.create("owner", OWNER)
    world.settle(owner, "CREATE_COMPLETE")
    ids, before = world.ids(), world.objects()
    same = {
        "interface": of("OS::Neutron::RouterInterface", router=ids["router"], subnet=ids["subnet"]),
        "route": of(
            "OS::Neutron::ExtraRoute",
            router_id=ids["router"],
            destination="10.85.0.0/24",
            nexthop="10.84.0.9",
        ),
    }[kind]
    other = world.create("other", {"same": same})
    world.settle(other, "CREATE_FAILED")
    world.update("other", {"same": same})
    world.settle(other, "UPDATE_FAILED")
    world.delete("other")
    world.settle(other, "DELETE_COMPLETE")
    world.tidy()
    assert world.objects() == before
    router = world.openstack.network.find(ROUTERS, ids["router"])
    assert router is not None
    assert [route["destination"] for route in router["routes"]] == ["10.85.0.0/24"]
    world.delete("owner")
    world.settle(owner, "DELETE_COMPLETE")
