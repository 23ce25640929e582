"""Routers and floating IPs on a cloud."""

from __future__ import annotations

import pytest

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, ROUTERS
from orchestrator.errors import ProviderError
from tests.openstack.driver import Driver
from tests.openstack.network.ground import Ground, lives


def test_a_router_with_gateway_interfaces_and_routes(
    driver: Driver, links: Driver, ground: Ground, public: str
) -> None:
    router = lives(
        driver,
        "OS::Neutron::Router",
        {"external_gateway_info": {"network": public, "enable_snat": False}, "tags": ["r"]},
        {"name": driver.name(), "tags": None, "external_gateway_info": {"network": public}},
        {"admin_state_up": False},
        {"admin_state_up": True},
    )
    interface = driver.create("OS::Neutron::RouterInterface", {"router": router, "subnet": ground.subnet})
    assert interface == f"{router}:subnet_id={ground.subnet}"
    assert driver.find(interface) == [interface]
    other = driver.create("OS::Neutron::Subnet", {"network": ground.net, "cidr": "10.85.0.0/24"})
    port = driver.create("OS::Neutron::Port", {"network": ground.net, "fixed_ips": [{"subnet": other}]})
    by_port = driver.create("OS::Neutron::RouterInterface", {"router": router, "port": port})
    assert driver.find(by_port) == [by_port]
    route = driver.create(
        "OS::Neutron::ExtraRoute",
        {"router_id": router, "destination": "10.70.0.0/16", "nexthop": "10.81.0.3"},
    )
    assert driver.find(route) == [route]
    routes = links.create(
        "OS::Neutron::ExtraRouteSet",
        {"router": router, "routes": [{"destination": "10.71.0.0/16", "nexthop": "10.81.0.4"}]},
    )
    assert links.find(routes) == []  # the create stores the routes, a step adds them
    links.update(
        routes,
        routes=[
            {"destination": "10.72.0.0/16", "nexthop": "10.81.0.4"},
            {"destination": "10.73.0.0/16", "nexthop": "10.81.0.4"},
        ],
    )
    current = driver.openstack.network.find(ROUTERS, router) or {}
    assert sorted(entry["destination"] for entry in current["routes"]) == [
        "10.70.0.0/16",
        "10.72.0.0/16",
        "10.73.0.0/16",
    ]
    with pytest.raises(ProviderError, match="Route duplicates an existing route"):
        driver.create(
            "OS::Neutron::ExtraRoute",
            {"router_id": router, "destination": "10.72.0.0/16", "nexthop": "10.81.0.4"},
        )
    links.delete(routes)
    driver.delete(route)
    driver.delete(by_port)
    del driver.resources[port]  # Neutron deletes the port with the interface
    driver.delete(interface)
    driver.update(router, external_gateway_info=None)
    assert driver.attributes(router, "external_gateway_info")["external_gateway_info"] is None


def test_a_router_gateway(driver: Driver, public: str) -> None:
    router = driver.create("OS::Neutron::Router")
    gateway = driver.create("OS::Neutron::RouterGateway", {"router_id": router, "network_id": public})
    assert gateway == f"{router}:{public}"
    assert driver.find(gateway) == [gateway]
    driver.delete(gateway)


def test_a_floating_ip_and_its_association(
    driver: Driver, links: Driver, ground: Ground, public: str
) -> None:
    router = driver.create("OS::Neutron::Router", {"external_gateway_info": {"network": public}})
    driver.create("OS::Neutron::RouterInterface", {"router": router, "subnet": ground.subnet})
    first, second = (driver.create("OS::Neutron::Port", {"network": ground.net}) for _ in range(2))
    floating = lives(
        driver,
        "OS::Neutron::FloatingIP",
        {"floating_network": public, "port_id": first},
        {"port_id": second},
        {"port_id": None},
    )
    assert driver.attributes(floating, "port_id")["port_id"] is None
    association = lives(
        links,
        "OS::Neutron::FloatingIPAssociation",
        {"floatingip_id": floating, "port_id": first},
        {"port_id": second},
    )
    other = driver.create("OS::Neutron::FloatingIP", {"floating_network": public})
    assert links.update(association, floatingip_id=other, port_id=first) == other
    assert driver.attributes(floating, "port_id")["port_id"] is None
    driver.openstack.network.update(FLOATING_IPS, other, {"port_id": second})
    assert not links.observe(other).exists
    links.delete(other)
    assert driver.attributes(other, "port_id")["port_id"] == second


def test_a_forwarded_port(driver: Driver, ground: Ground, public: str) -> None:
    router = driver.create("OS::Neutron::Router", {"external_gateway_info": {"network": public}})
    driver.create("OS::Neutron::RouterInterface", {"router": router, "subnet": ground.subnet})
    port = driver.create(
        "OS::Neutron::Port", {"network": ground.net, "fixed_ips": [{"ip_address": "10.81.0.70"}]}
    )
    floating = driver.create("OS::Neutron::FloatingIP", {"floating_network": public})
    address = driver.attributes(floating)["floating_ip_address"]
    forward = lives(
        driver,
        "OS::Neutron::FloatingIPPortForward",
        {
            "floating_ip": address,
            "internal_port": port,
            "internal_ip_address": "10.81.0.70",
            "internal_port_number": 22,
            "external_port": 2222,
            "protocol": "tcp",
        },
        {"external_port": 2223, "internal_port_number": 23},
        {"protocol": "udp"},
    )
    driver.delete(forward)
