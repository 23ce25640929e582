"""Load balancers and their parts on a cloud."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from orchestrator.clients.openstack.networking.load_balancing import LISTENERS, LOAD_BALANCERS, MEMBERS, POOLS
from orchestrator.clients.openstack.networking.network import PORTS
from orchestrator.errors import ProviderError, ProviderInUse
from tests.openstack.driver import Driver
from tests.openstack.network.ground import lives

OCTAVIA = "OS::Octavia::"
pytestmark = pytest.mark.usefixtures("octavia")


@pytest.fixture
def balancer(driver: Driver, octavia: None) -> str:
    """Return the id of a load balancer on its own network."""
    net = driver.create("OS::Neutron::Net")
    subnet = driver.create("OS::Neutron::Subnet", {"network": net, "cidr": "10.85.0.0/24"})
    return driver.create(f"{OCTAVIA}LoadBalancer", {"vip_subnet": subnet})


def test_a_load_balancer(driver: Driver) -> None:
    net = driver.create("OS::Neutron::Net")
    subnet = driver.create("OS::Neutron::Subnet", {"network": net, "cidr": "10.86.0.0/24"})
    made = lives(
        driver,
        f"{OCTAVIA}LoadBalancer",
        {"vip_subnet": subnet, "vip_address": "10.86.0.77", "description": "a"},
        {"name": driver.name(), "description": "b"},
        {"admin_state_up": False, "name": None},
    )
    seen = driver.attributes(made, "show", "pools")
    assert (seen["vip_address"], seen["vip_subnet_id"], seen["pools"]) == ("10.86.0.77", subnet, [])
    assert seen["show"]["tags"] == []
    port = seen["vip_port_id"]
    driver.delete(made)
    assert driver.openstack.network.find(PORTS, port) is None


def test_the_parts(driver: Driver, balancer: str) -> None:
    pool = lives(
        driver,
        f"{OCTAVIA}Pool",
        {
            "loadbalancer": balancer,
            "protocol": "HTTP",
            "lb_algorithm": "ROUND_ROBIN",
            "session_persistence": {"type": "APP_COOKIE", "cookie_name": "c"},
        },
        {"lb_algorithm": "SOURCE_IP", "session_persistence": {"type": "SOURCE_IP"}},
        {"name": driver.name(), "session_persistence": None},
    )
    listener = lives(
        driver,
        f"{OCTAVIA}Listener",
        {"loadbalancer": balancer, "protocol": "HTTP", "protocol_port": 80},
        {"default_pool": pool, "allowed_cidrs": ["10.0.0.0/8", "192.0.2.0/24"], "connection_limit": 9},
        {"default_pool": None, "allowed_cidrs": None, "description": "d"},
        {"default_pool": pool},
    )
    member = lives(
        driver,
        f"{OCTAVIA}PoolMember",
        {"pool": pool, "address": "10.85.0.20", "protocol_port": 8080, "tags": ["a"]},
        {"weight": 0, "tags": ["b", "c"]},
        {"monitor_port": 9000, "tags": None, "admin_state_up": False},
    )
    monitor = lives(
        driver,
        f"{OCTAVIA}HealthMonitor",
        {"pool": pool, "type": "HTTP", "delay": 5, "timeout": 3, "max_retries": 2, "url_path": "/up"},
        {"delay": 7, "expected_codes": "200-204", "http_method": "HEAD"},
    )
    policy = lives(
        driver,
        f"{OCTAVIA}L7Policy",
        {"listener": listener, "action": "REDIRECT_TO_POOL", "redirect_pool": pool, "position": 1},
        {"action": "REDIRECT_TO_URL", "redirect_pool": None, "redirect_url": "https://example.org/"},
        {"action": "REJECT", "redirect_url": None},
    )
    rule = lives(
        driver,
        f"{OCTAVIA}L7Rule",
        {"l7policy": policy, "type": "PATH", "compare_type": "STARTS_WITH", "value": "/a"},
        {"type": "HEADER", "key": "X-A", "invert": True},
    )
    live = driver.attributes(pool, "healthmonitor_id", "members", "listeners")
    assert live["healthmonitor_id"] == monitor
    assert [live["members"], live["listeners"]] == [[{"id": member}], [{"id": listener}]]
    assert driver.attributes(policy, "rules")["rules"] == [{"id": rule}]
    assert driver.attributes(listener)["loadbalancers"] == [{"id": balancer}]


def test_a_pool_of_a_listener_is_its_default_pool(driver: Driver, balancer: str) -> None:
    listener = driver.create(
        f"{OCTAVIA}Listener", {"loadbalancer": balancer, "protocol": "TCP", "protocol_port": 22}
    )
    pool = driver.create(
        f"{OCTAVIA}Pool", {"listener": listener, "protocol": "TCP", "lb_algorithm": "SOURCE_IP"}
    )
    assert driver.attributes(listener, "default_pool_id")["default_pool_id"] == pool
    driver.delete(pool)
    assert driver.attributes(listener, "default_pool_id")["default_pool_id"] is None


def test_parts_that_change_at_the_same_time_wait_for_each_other(driver: Driver, balancer: str) -> None:
    pool = driver.create(
        f"{OCTAVIA}Pool", {"loadbalancer": balancer, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    )

    def create(number: int) -> str:
        member = {"pool": pool, "address": f"10.85.0.{number}", "protocol_port": 80}
        return driver.create(f"{OCTAVIA}PoolMember", member)

    with ThreadPoolExecutor(6) as threads:
        members = set(threads.map(create, range(20, 26)))
        actual = {item["id"] for item in driver.openstack.load_balancing.search(MEMBERS, parent=pool)}
        assert actual == members
        list(threads.map(driver.delete, members))
    assert list(driver.openstack.load_balancing.search(MEMBERS, parent=pool)) == []


def test_names_are_looked_up(driver: Driver, balancer: str) -> None:
    name = driver.openstack.load_balancing.find(LOAD_BALANCERS, balancer)["name"]  # type: ignore[index]
    pool = driver.create(
        f"{OCTAVIA}Pool", {"loadbalancer": name, "protocol": "UDP", "lb_algorithm": "SOURCE_IP"}
    )
    assert driver.resources[pool].ctx.properties["loadbalancer"] == balancer


def test_conflicts(driver: Driver, balancer: str) -> None:
    given: dict[str, Any] = {"loadbalancer": balancer, "protocol": "HTTP", "protocol_port": 80}
    driver.create(f"{OCTAVIA}Listener", given)
    again = driver.prepare(f"{OCTAVIA}Listener", given)
    again.start("CREATE")
    with pytest.raises(ProviderInUse, match="Another Listener on this Load Balancer"):
        again.type.create(again.now, again.now.properties)
    with pytest.raises(ProviderError, match="it has children"):
        driver.resources[balancer].type.delete(driver.context("DELETE"), balancer)
    assert len(list(driver.openstack.load_balancing.search(LISTENERS, tags="absent"))) == 0
    assert driver.openstack.load_balancing.find(POOLS, balancer) is None


def test_flavors_zones_and_quotas(driver: Driver) -> None:
    provider = driver.openstack.load_balancing.get("/providers")["providers"][0]["name"]
    profile = lives(
        driver,
        f"{OCTAVIA}FlavorProfile",
        {"flavor_data": '{"loadbalancer_topology": "SINGLE"}', "provider_name": provider},
        {"name": driver.name(), "flavor_data": '{"loadbalancer_topology":  "ACTIVE_STANDBY"}'},
    )
    flavor = lives(
        driver,
        f"{OCTAVIA}Flavor",
        {"flavor_profile": profile},
        {"name": driver.name(), "description": "d", "enabled": False},
    )
    assert driver.attributes(flavor)["flavor_profile_id"] == profile
    zone_profile = lives(
        driver,
        f"{OCTAVIA}AvailabilityZoneProfile",
        {"availability_zone_data": '{"compute_zone": "nova"}', "provider_name": provider},
        {"name": driver.name()},
    )
    zone = lives(
        driver,
        f"{OCTAVIA}AvailabilityZone",
        {"availability_zone_profile": zone_profile},
        {"description": "d", "enabled": False},
    )
    assert driver.attributes(zone)["availability_zone_profile_id"] == zone_profile
    quotas = {"project": driver.project_id, "pool": 50}
    lives(driver, f"{OCTAVIA}Quota", quotas, {"pool": 60, "listener": 70})
