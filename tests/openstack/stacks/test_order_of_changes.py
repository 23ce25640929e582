"""An update of a list adds members before it removes others: traffic that both versions permit flows on."""

from __future__ import annotations

from typing import Any

from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.requests import Requests
from tests.openstack.stacks.templates import of, ref

RULES = "/security-group-rules"


def group(*ports: int) -> dict[str, Any]:
    """Return a group that permits TCP up to some ports."""
    rules = [{"protocol": "tcp", "port_range_min": 20, "port_range_max": port} for port in ports]
    return {"it": of("OS::Neutron::SecurityGroup", rules=rules)}


def ec2_group(port: int) -> dict[str, Any]:
    """Return a group that permits TCP up to a port."""
    rule = {"IpProtocol": "tcp", "FromPort": "20", "ToPort": str(port), "CidrIp": "0.0.0.0/0"}
    return {"it": of("AWS::EC2::SecurityGroup", GroupDescription="x", SecurityGroupIngress=[rule])}


def updated(
    world: CloudWorld, requests: Requests, before: dict[str, Any], after: dict[str, Any], path: str
) -> list[str]:
    """Create and update a stack. Return the changing requests of the update for a path, in their order."""
    uuid = world.create("s", before)
    world.settle(uuid, "CREATE_COMPLETE")
    requests.sent.clear()
    world.update("s", after)
    world.settle(uuid, "UPDATE_COMPLETE")
    sent = [line for line in requests.sent if path in line and not line.startswith("GET")]
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
    return [f"{line.split()[0]} {line.rpartition('/')[2]}" for line in sent]


def test_rules_are_added_before_others_are_removed(world: CloudWorld, requests: Requests) -> None:
    sent = updated(world, requests, group(22), group(25), RULES)
    assert [line.split()[0] for line in sent] == ["POST", "DELETE"]


def test_rules_of_ec2_groups_are_added_before_others_are_removed(
    world: CloudWorld, requests: Requests
) -> None:
    sent = updated(world, requests, ec2_group(22), ec2_group(25), RULES)
    assert [line.split()[0] for line in sent] == ["POST", "DELETE"]


def test_rules_are_removed_first_if_the_quota_demands_it(world: CloudWorld, requests: Requests) -> None:
    project = str(world.caller.project_id)
    quotas, table = world.cloud.neutron.quotas, world.cloud.state.table("neutron.security_group_rule")
    limit = quotas.of(project)["security_group_rule"]
    try:
        uuid = world.create("s", group(22, 23))
        world.settle(uuid, "CREATE_COMPLETE")
        used = table.count("project_id", project)
        quotas.set(project, {"security_group_rule": used})
        world.update("s", group(24, 25))
        world.settle(uuid, "UPDATE_COMPLETE")
        assert table.count("project_id", project) == used
    finally:
        quotas.set(project, {"security_group_rule": limit})
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


def test_routes_are_added_before_others_are_removed(world: CloudWorld, requests: Requests) -> None:
    def resources(nexthop: str) -> dict[str, Any]:
        routes = [{"destination": "192.0.2.0/24", "nexthop": nexthop}]
        return {
            "net": of("OS::Neutron::Net"),
            "subnet": of("OS::Neutron::Subnet", network=ref("net"), cidr="10.30.0.0/24"),
            "router": of("OS::Neutron::Router"),
            "interface": of("OS::Neutron::RouterInterface", router=ref("router"), subnet=ref("subnet")),
            "it": {
                **of("OS::Neutron::ExtraRouteSet", router=ref("router"), routes=routes),
                "depends_on": ["interface"],
            },
        }

    sent = updated(world, requests, resources("10.30.0.11"), resources("10.30.0.12"), "extraroutes")
    assert sent == ["PUT add_extraroutes", "PUT remove_extraroutes"]
