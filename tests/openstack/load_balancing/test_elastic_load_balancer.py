"""AWS::ElasticLoadBalancing::LoadBalancer on a cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.clients.openstack.networking.load_balancing import LISTENERS, LOAD_BALANCERS, MEMBERS, POOLS
from tests.openstack.driver import Driver

CHECK = {
    "Target": "HTTP:8080/up",
    "Interval": 30,
    "Timeout": 5,
    "HealthyThreshold": 3,
    "UnhealthyThreshold": 5,
}
LISTENERS_GIVEN = [
    {"LoadBalancerPort": "80", "InstancePort": "8080", "Protocol": "HTTP"},
    {"LoadBalancerPort": "22", "InstancePort": "22", "Protocol": "TCP"},
]


def test_a_load_balancer_of_instances(driver: Driver, offers: Mapping[str, Any], octavia: None) -> None:
    server = {
        "image": offers["image"],
        "flavor": offers["small"],
        "networks": [{"network": offers["network"]}],
    }
    first, second = (driver.create("OS::Nova::Server", server) for _ in range(2))
    given = {"AvailabilityZones": ["nova"], "Listeners": LISTENERS_GIVEN, "HealthCheck": CHECK}
    made = driver.create("AWS::ElasticLoadBalancing::LoadBalancer", {**given, "Instances": [first, second]})
    assert driver.find(made) == [made]
    assert members(driver, made) == {80: {address(driver, first, 8080), address(driver, second, 8080)}} | {
        22: {address(driver, first, 22), address(driver, second, 22)}
    }
    driver.update(made, Instances=[second])
    assert members(driver, made) == {80: {address(driver, second, 8080)}, 22: {address(driver, second, 22)}}
    balancer = driver.openstack.load_balancing.find(LOAD_BALANCERS, made) or {}
    assert driver.attributes(made)["DNSName"] == balancer["vip_address"]
    driver.delete(made)
    assert not list(driver.openstack.load_balancing.search(LISTENERS, name="80"))


def address(driver: Driver, server_id: str, port: int) -> tuple[str, int]:
    """Return the address of a server with a port."""
    (addresses,) = driver.attributes(server_id)["networks"].values()
    return str(addresses[0]), port


def members(driver: Driver, balancer_id: str) -> dict[int, set[tuple[str, int]]]:
    """Return the members of the pools, by the port of their listener."""
    octavia = driver.openstack.load_balancing
    balancer = octavia.find(LOAD_BALANCERS, balancer_id) or {}
    found = {}
    for item in balancer["listeners"]:
        listener = octavia.find(LISTENERS, item["id"]) or {}
        pool = octavia.find(POOLS, listener["default_pool_id"]) or {}
        listed = octavia.search(MEMBERS, parent=pool["id"])
        found[listener["protocol_port"]] = {(member["address"], member["protocol_port"]) for member in listed}
    return found
