"""Relations between objects that a service ends when an object of them changes in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from orchestrator.clients.openstack.networking.network import FLOATING_IPS
from orchestrator.json_types import JsonObject
from tests.contract.conftest import all_types
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of, ref

DOCS = Path(__file__).parents[3] / "docs" / "openstack-types.md"
FIRST, SECOND = "10.30.0.21", "10.30.0.22"
ADDRESS: Final = of("OS::Neutron::FloatingIP", floating_network="public")
FIXED: Final = {"get_attr": ["port", "fixed_ips", 0, "ip_address"]}
# The resources that connect an address with the port, in place of `address`.
RELATIONS: Final[dict[str, dict[str, Any]]] = {
    "association": {
        "address": ADDRESS,
        "it": of("OS::Neutron::FloatingIPAssociation", floatingip_id=ref("address"), port_id=ref("port")),
    },
    "association-of-an-address": {
        "address": ADDRESS,
        "it": of(
            "OS::Neutron::FloatingIPAssociation",
            floatingip_id=ref("address"),
            port_id=ref("port"),
            fixed_ip_address=FIXED,
        ),
    },
    "floating-ip": {
        "address": of("OS::Neutron::FloatingIP", floating_network="public", port_id=ref("port")),
    },
    "ec2-association": {
        "address": ADDRESS,
        "it": of("AWS::EC2::EIPAssociation", AllocationId=ref("address"), NetworkInterfaceId=ref("port")),
    },
}
FORWARDING: Final = {
    "address": ADDRESS,
    "it": of(
        "OS::Neutron::FloatingIPPortForward",
        internal_ip_address=FIXED,
        internal_port_number=80,
        internal_port=ref("port"),
        external_port=8080,
        protocol="tcp",
        floating_ip=ref("address"),
    ),
}


def resources(relation: dict[str, Any], address: str) -> dict[str, Any]:
    """Return a port with an address on a network behind a router, and its relation."""
    return {
        "net": of("OS::Neutron::Net"),
        "subnet": of("OS::Neutron::Subnet", network=ref("net"), cidr="10.30.0.0/24"),
        "router": of("OS::Neutron::Router", external_gateway_info={"network": "public"}),
        "interface": of("OS::Neutron::RouterInterface", router=ref("router"), subnet=ref("subnet")),
        "port": of("OS::Neutron::Port", network=ref("net"), fixed_ips=[{"ip_address": address}]),
        **relation,
    }


def floating_ip(world: CloudWorld) -> JsonObject:
    """Return the floating IP of the stack."""
    found = world.openstack.network.find(FLOATING_IPS, world.ids()["address"])
    assert found is not None
    return found


def changed_in_place(world: CloudWorld, relation: dict[str, Any]) -> str:
    """Create a stack, and change the address of its port in place. Return the id of the stack."""
    uuid = world.create("s", resources(relation, FIRST))
    world.settle(uuid, "CREATE_COMPLETE")
    port = world.ids()["port"]
    world.update("s", resources(relation, SECOND))
    world.settle(uuid, "UPDATE_COMPLETE")
    assert world.ids()["port"] == port
    return uuid


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
def test_a_floating_ip_follows_the_address_of_its_port(world: CloudWorld, relation: dict[str, Any]) -> None:
    uuid = changed_in_place(world, relation)
    found = floating_ip(world)
    assert (found["port_id"], found["fixed_ip_address"]) == (world.ids()["port"], SECOND)
    world.act("s", "check")
    world.settle(uuid, "CHECK_COMPLETE")
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


def test_a_port_forwarding_follows_the_address_of_its_port(world: CloudWorld) -> None:
    uuid = changed_in_place(world, FORWARDING)
    [forwarding] = floating_ip(world)["port_forwardings"]
    assert forwarding["internal_ip_address"] == SECOND
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


def test_the_attributes_of_a_server_follow_the_address_of_its_port(world: CloudWorld) -> None:
    """The server itself does not change; resources that are built with its address do."""
    server = of(
        "OS::Nova::Server", flavor="m1.tiny", image="cirros", networks=[{"port": ref("port")}], name="server"
    )
    first = {"get_attr": ["server", "first_address"]}
    relation = {
        "server": server,
        "recorded": of("OS::Heat::Value", value=first),
        "live": of("OS::Heat::Value", value={"get_attr": ["server", "addresses"]}),
    }
    uuid = world.create("s", resources(relation, FIRST))
    world.settle(uuid, "CREATE_COMPLETE")
    before = world.ids()["server"]
    world.update("s", resources(relation, SECOND))
    world.settle(uuid, "UPDATE_COMPLETE")
    assert world.ids()["server"] == before
    recorded, live = (world.resource(name).attributes["value"] for name in ("recorded", "live"))
    assert (recorded, FIRST in str(live), SECOND in str(live)) == (SECOND, False, True)


def test_the_documentation_names_the_types_that_are_restored() -> None:
    text = DOCS.read_text()
    section = text[text.index("## Relations") :].split("\n## ")[0]
    restored = [name for name, type_ in all_types().items() if type_.undone_in_place]
    names = {name.removeprefix("OS::Neutron::") for name in restored}
    assert {name for name in names if f"`{name}`" not in section} == set()
    assert section.split("This applies to")[1].count("`") == 2 * len(names)
