"""The members of a scaling group are members of its load balancers (`LoadBalancerNames`)."""

from __future__ import annotations

from typing import Any

from orchestrator.clients.openstack.networking.load_balancing import LISTENERS, LOAD_BALANCERS, MEMBERS
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of, ref

SERVER = of("OS::Nova::Server", image="cirros", flavor="m1.tiny", networks=[{"network": "private"}])


def resources(size: int, *instances: str) -> dict[str, Any]:
    return {
        **dict.fromkeys(("first", "second"), SERVER),
        "balancer": of(
            "AWS::ElasticLoadBalancing::LoadBalancer",
            AvailabilityZones=["nova"],
            Listeners=[{"LoadBalancerPort": "80", "InstancePort": "8080", "Protocol": "HTTP"}],
            HealthCheck={
                "Target": "HTTP:9090/up",
                "Interval": "30",
                "Timeout": "5",
                "HealthyThreshold": "3",
                "UnhealthyThreshold": "5",
            },
            Subnets=["private-subnet"],
            Instances=[ref(name) for name in instances],
        ),
        "config": of("AWS::AutoScaling::LaunchConfiguration", ImageId="cirros", InstanceType="m1.tiny"),
        "group": of(
            "AWS::AutoScaling::AutoScalingGroup",
            AvailabilityZones=["nova"],
            LaunchConfigurationName=ref("config"),
            MinSize=size,
            MaxSize=size,
            VPCZoneIdentifier=["private-subnet"],  # other tests of this process may have networks
            LoadBalancerNames=[ref("balancer")],
        ),
        "out": of("OS::Heat::Value", value={"get_attr": ["group", "InstanceList"]}),
    }


def members(world: CloudWorld) -> list[tuple[str, int]]:
    """Return address and monitored port of the members of the only pool."""
    octavia = world.openstack.load_balancing
    balancer = octavia.find(LOAD_BALANCERS, world.resource("balancer").physical_id) or {}
    (item,) = balancer["listeners"]
    pool = (octavia.find(LISTENERS, item["id"]) or {})["default_pool_id"]
    return sorted((one["address"], one["monitor_port"]) for one in octavia.search(MEMBERS, parent=pool))


def addresses(world: CloudWorld, *servers: str) -> list[tuple[str, int]]:
    """Return the addresses of the group's instances and of servers."""
    instances = world.resource("out").attributes["value"].split(",")
    found = [world.resource(name).attributes["first_address"] for name in servers]
    return sorted((address, 9090) for address in (*instances, *found))


def test_the_instances_of_a_group_join_and_leave_its_load_balancer(world: CloudWorld) -> None:
    before = world.objects()
    uuid = world.create("s", resources(2, "first"))
    world.settle(uuid, "CREATE_COMPLETE")
    assert members(world) == addresses(world, "first")
    for size, servers in ((3, ("first",)), (3, ("second",)), (1, ("second",))):
        world.update("s", resources(size, *servers))
        world.settle(uuid, "UPDATE_COMPLETE")
        assert (len(members(world)), members(world)) == (size + 1, addresses(world, *servers))
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
    world.tidy()
    assert world.objects() == before
