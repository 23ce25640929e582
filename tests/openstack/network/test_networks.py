"""Networks, subnets, ports and trunks on a cloud."""

from __future__ import annotations

import uuid

import pytest

from orchestrator.clients.openstack.networking.network import NETWORKS, PORTS, SECURITY_GROUPS, TRUNKS
from orchestrator.errors import ProviderError
from orchestrator.resources.base import Observation
from tests.openstack.driver import Driver
from tests.openstack.network.ground import Ground, lives


def test_a_subnet(driver: Driver, ground: Ground) -> None:
    subnet = lives(
        driver,
        "OS::Neutron::Subnet",
        {
            "network": ground.net,
            "cidr": "10.82.0.0/24",
            "gateway_ip": "10.82.0.9",
            "allocation_pools": [{"start": "10.82.0.20", "end": "10.82.0.90"}],
            "tags": ["t"],
        },
        {"name": driver.name(), "tags": ["u"], "dns_nameservers": ["10.0.0.2", "10.0.0.1"]},
        {"host_routes": [{"destination": "10.9.0.0/16", "nexthop": "10.82.0.3"}], "enable_dhcp": False},
        {"gateway_ip": ""},
        {"gateway_ip": "10.82.0.5", "host_routes": None, "dns_nameservers": None},
        {"allocation_pools": [{"start": "10.82.0.20", "end": "10.82.0.99"}]},
        {"name": None, "tags": None},
    )
    assert driver.attributes(subnet)["cidr"] == "10.82.0.0/24"
    driver.delete(subnet)


def test_a_subnet_without_a_gateway_and_with_an_automatic_one(driver: Driver, ground: Ground) -> None:
    none = driver.create(
        "OS::Neutron::Subnet", {"network": ground.net, "cidr": "10.83.0.0/24", "gateway_ip": ""}
    )
    assert driver.attributes(none)["gateway_ip"] is None
    assert driver.drift(none) == {}
    auto = driver.create(
        "OS::Neutron::Subnet", {"network": ground.net, "cidr": "10.84.0.0/24", "gateway_ip": "auto"}
    )
    assert driver.attributes(auto)["gateway_ip"] == "10.84.0.1"
    assert driver.drift(auto) == {}
    with pytest.raises(ProviderError, match="only supported during subnet creation"):
        driver.update(none, gateway_ip="auto")


def test_a_subnet_of_a_pool_in_a_scope(driver: Driver, ground: Ground) -> None:
    scope = lives(driver, "OS::Neutron::AddressScope", {}, {"name": driver.name()}, {"shared": True})
    pool = lives(
        driver,
        "OS::Neutron::SubnetPool",
        {
            "prefixes": ["10.96.0.0/16"],
            "address_scope": scope,
            "default_prefixlen": 26,
            "min_prefixlen": 20,
            "max_prefixlen": 28,
            "tags": ["a"],
        },
        {"name": driver.name(), "prefixes": ["10.96.0.0/16", "10.98.0.0/16"], "tags": ["b"]},
        {"default_quota": 1000, "default_prefixlen": 27},
    )
    net = driver.create("OS::Neutron::Net")
    subnet = driver.create("OS::Neutron::Subnet", {"network": net, "subnetpool": pool})
    assert driver.attributes(subnet)["cidr"].endswith("/27")


def test_a_port(driver: Driver, ground: Ground) -> None:
    group = driver.create("OS::Neutron::SecurityGroup", {})
    policy = driver.create("OS::Neutron::QoSPolicy", {})
    port = lives(
        driver,
        "OS::Neutron::Port",
        {
            "network": ground.net,
            "fixed_ips": [{"subnet": ground.subnet, "ip_address": "10.81.0.44"}],
            "security_groups": [group],
            "allowed_address_pairs": [{"ip_address": "10.81.0.200"}],
            "tags": ["x", "y"],
        },
        {"name": driver.name(), "tags": ["z"], "admin_state_up": False},
        {"fixed_ips": [{"ip_address": "10.81.0.45"}], "qos_policy": policy},
        {"security_groups": [], "allowed_address_pairs": None, "qos_policy": None},
        {"port_security_enabled": False},
        {"port_security_enabled": True, "binding:vnic_type": "direct"},
        {"value_specs": {"binding:host_id": "h2"}, "dns_name": "a"},
        {"no_fixed_ips": True, "fixed_ips": None},
        {"no_fixed_ips": None, "fixed_ips": [{"subnet": ground.subnet}], "dns_name": None},
    )
    attributes = driver.attributes(port, "show", "network", "subnets", "status", "dns_assignment")
    assert attributes["show"]["binding:host_id"] == "h2"
    assert attributes["network"]["id"] == ground.net
    assert [subnet["id"] for subnet in attributes["subnets"]] == [ground.subnet]
    driver.update(port, security_groups=None)
    (default,) = driver.attributes(port)["security_groups"]
    assert driver.openstack.network.find(SECURITY_GROUPS, default)["name"] == "default"
    device = {"device_id": "d", "device_owner": "test:owner"}
    lives(driver, "OS::Neutron::Port", {"network": ground.net}, device, dict.fromkeys(device))


def test_a_replaced_port_gives_its_addresses_to_its_replacement(driver: Driver, ground: Ground) -> None:
    given = {"network": ground.net, "fixed_ips": [{"ip_address": "10.81.0.60"}]}
    port = driver.create("OS::Neutron::Port", given)
    row = driver.resources[port]
    for _ in range(2):
        row.type.release(row.ctx, port)
    replacement = driver.create("OS::Neutron::Port", given)
    assert driver.observe(port).attributes["fixed_ips"] == []
    driver.delete(replacement)
    for _ in range(2):
        row.type.reclaim(row.ctx, port, row.ctx.properties)
    assert driver.drift(port) == {}
    assert driver.find(port) == [port]


def test_a_port_that_a_deleted_server_has_left_is_deleted(driver: Driver, member: Driver) -> None:
    (network,) = member.openstack.network.search(NETWORKS, name="private")
    port = member.create("OS::Neutron::Port", {"network": network["id"]})
    left = {"device_owner": "compute:nova", "device_id": str(uuid.uuid4())}
    driver.openstack.network.update(PORTS, port, left)
    with pytest.raises(ProviderError, match="disallowed by policy"):
        member.openstack.network.remove(PORTS, port)
    member.delete(port)
    assert driver.openstack.network.find(PORTS, port) is None


def test_a_trunk(driver: Driver, ground: Ground) -> None:
    parent, one, two = (driver.create("OS::Neutron::Port", {"network": ground.net}) for _ in range(3))
    first = {"port": one, "segmentation_type": "vlan", "segmentation_id": 10}
    second = {"port": two, "segmentation_type": "vlan", "segmentation_id": 11}
    trunk = lives(
        driver,
        "OS::Neutron::Trunk",
        {"port": parent, "sub_ports": [first], "description": "D"},
        {"name": driver.name(), "sub_ports": [second, first]},
        {"sub_ports": [{**first, "segmentation_id": 12}], "description": "E"},
        {"admin_state_up": False},
        {"admin_state_up": True},
        {"sub_ports": None},
    )
    assert driver.attributes(trunk)["port_id"] == parent
    driver.delete(trunk)
    assert driver.openstack.network.find(TRUNKS, trunk) is None
    assert driver.openstack.network.find(PORTS, parent) is not None


def test_a_provider_network_and_a_segment(driver: Driver) -> None:
    net = lives(
        driver,
        "OS::Neutron::ProviderNet",
        {
            "network_type": "vlan",
            "physical_network": "physnet1",
            "segmentation_id": "771",
            "shared": False,
            "tags": ["p"],
        },
        {"name": driver.name(), "router_external": True, "tags": None},
        {"router_external": None},
    )
    segment = lives(
        driver,
        "OS::Neutron::Segment",
        {
            "network": net,
            "network_type": "vlan",
            "physical_network": "physnet1",
            "segmentation_id": 772,
            "description": "D",
        },
        {"name": driver.name(), "description": "E"},
    )
    assert segment in [item["id"] for item in driver.attributes(net, "segments")["segments"]]


def test_a_missing_object_is_absent(driver: Driver, ground: Ground) -> None:
    port = driver.create("OS::Neutron::Port", {"network": ground.net})
    driver.openstack.network.remove(PORTS, port)
    assert driver.observe(port) == Observation(exists=False)
    driver.delete(port)
