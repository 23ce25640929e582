"""A name and the id of the same object are equal: changing one to the other is no update."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, NETWORKS
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of, ref


def test_the_object_of_a_policy_by_name_and_id(world: CloudWorld) -> None:
    policy = {"object_type": "network", "action": "access_as_shared", "target_tenant": "t"}

    def resources(network: str) -> dict[str, object]:
        return {"policy": of("OS::Neutron::RBACPolicy", **policy, object_id=network)}

    uuid = world.create("s", resources("private"))
    world.settle(uuid, "CREATE_COMPLETE")
    before, network = world.ids(), world.openstack.network.id_of(NETWORKS, "private")
    assert world.resource("policy").properties["object_id"] == network
    world.update("s", resources(network))
    world.settle(uuid, "UPDATE_COMPLETE")
    assert (world.ids(), world.status("policy")) == (before, "CREATE_COMPLETE")
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


def test_the_floating_ip_of_a_port_forwarding_by_address_and_id(world: CloudWorld) -> None:
    network = world.openstack.network
    public = network.id_of(NETWORKS, "public")
    floating = network.create(FLOATING_IPS, {"floating_network_id": public})
    forward = {"internal_ip_address": "10.83.0.9", "internal_port_number": 22, "external_port": 22}

    def resources(floating_ip: str) -> dict[str, object]:
        return {
            "net": of("OS::Neutron::Net"),
            "subnet": of("OS::Neutron::Subnet", network=ref("net"), cidr="10.83.0.0/24"),
            "router": of("OS::Neutron::Router", external_gateway_info={"network": "public"}),
            "interface": of("OS::Neutron::RouterInterface", router=ref("router"), subnet=ref("subnet")),
            "port": of("OS::Neutron::Port", network=ref("net"), fixed_ips=[{"ip_address": "10.83.0.9"}]),
            "forward": of(
                "OS::Neutron::FloatingIPPortForward",
                **forward,
                internal_port=ref("port"),
                protocol="tcp",
                floating_ip=floating_ip,
            ),
        }

    uuid = world.create("s", resources(floating["floating_ip_address"]))
    world.settle(uuid, "CREATE_COMPLETE")
    before = world.ids()
    assert world.resource("forward").properties["floating_ip"] == floating["id"]
    world.update("s", resources(floating["id"]))
    world.settle(uuid, "UPDATE_COMPLETE")
    assert (world.ids(), world.status("forward")) == (before, "CREATE_COMPLETE")
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
    network.remove(FLOATING_IPS, floating["id"])
