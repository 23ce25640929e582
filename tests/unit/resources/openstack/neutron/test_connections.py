"""Interfaces, gateways and routes of routers, and floating IPs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, PORT_FORWARDINGS, PORTS, ROUTERS
from orchestrator.errors import ProviderError, ProviderInUse
from orchestrator.resources.base import Created, Observation
from orchestrator.resources.openstack.neutron.routers.extra_route import ExtraRoute
from orchestrator.resources.openstack.neutron.routers.extra_route_set import ExtraRouteSet
from orchestrator.resources.openstack.neutron.routers.floating_ip import FloatingIP
from orchestrator.resources.openstack.neutron.routers.floating_ip_association import FloatingIPAssociation
from orchestrator.resources.openstack.neutron.routers.floating_ip_port_forward import FloatingIPPortForward
from orchestrator.resources.openstack.neutron.routers.router_gateway import RouterGateway
from orchestrator.resources.openstack.neutron.routers.router_interface import RouterInterface
from orchestrator.template.definition import ResourceDefinition
from tests.unit.resources.openstack.neutron.operation import MARK, Operation, definitions, implied, of


@pytest.mark.parametrize(
    ("given", "physical_id", "target"),
    [
        ({"router": "r", "subnet": "s"}, "r:subnet_id=s", {"subnet_id": "s"}),
        ({"router_id": "r", "subnet_id": "s"}, "r:subnet_id=s", {"subnet_id": "s"}),
        ({"router": "r", "port_id": "p"}, "r:port_id=p", {"port_id": "p"}),
    ],
)
def test_an_interface(given: dict[str, str], physical_id: str, target: dict[str, str]):
    interface = Operation(RouterInterface, **given)
    interface.script.answers("PUT", "/routers/r/(add|remove)_router_interface", {})
    assert interface.create().physical_id == physical_id
    interface.delete(physical_id)
    assert interface.bodies("PUT") == [target, target]


def test_an_interface_is_observed_by_its_port():
    interface = Operation(RouterInterface, router="r", subnet="s")
    interface.lists(PORTS, {"id": "p", "device_owner": "network:router_interface_distributed"})
    assert interface.type.find(interface.ctx, "t") == "r:subnet_id=s"
    assert interface.script.requests[0].query["fixed_ips"] == "subnet_id=s"
    interface.lists(PORTS, {"id": "p", "device_owner": "network:dhcp"})
    assert interface.type.find(interface.ctx, "t") is None
    assert interface.observe(id_="r:subnet_id=s") == Observation(exists=False)


def test_an_interface_of_a_port_is_observed_by_the_device():
    interface = Operation(RouterInterface, router="r", port="p")
    interface.has(PORTS, {"id": "p", "device_id": "r"})
    assert interface.observe(id_="r:port_id=p").ready
    interface.has(PORTS, {"id": "p", "device_id": ""})
    assert not interface.observe(id_="r:port_id=p").exists


def test_the_id_of_an_interface_of_early_versions():
    interface = Operation(RouterInterface, router="r", subnet="s")
    interface.script.answers("PUT", "/routers/r/remove_router_interface", {}, status=404)
    interface.delete("r:s")
    assert interface.bodies("PUT") == [{"subnet_id": "s"}]


def test_an_interface_in_use_is_removed_later():
    interface = Operation(RouterInterface, router="r", subnet="s")
    answer = {"NeutronError": {"message": "required by one or more floating IPs"}}
    interface.script.answers("PUT", "/routers/r/remove_router_interface", answer, status=409)
    with pytest.raises(ProviderInUse, match="required by"):
        interface.delete("r:subnet_id=s")


def test_an_interface_has_a_subnet_or_a_port():
    interface = Operation(RouterInterface, router="r", subnet="s", port="p")
    message = "Cannot define the following properties at the same time: subnet, port."
    assert interface.faults() == [message]


def test_a_gateway_is_cleared_unless_it_has_another_network():
    gateway = Operation(RouterGateway, router_id="r", network_id="n")
    gateway.accepts("PUT", ROUTERS, "r")
    assert gateway.create().physical_id == "r:n"
    gateway.has(ROUTERS, {"id": "r", "external_gateway_info": {"network_id": "m"}})
    gateway.delete("r:n")
    gateway.has(ROUTERS, {"id": "r", "external_gateway_info": {"network_id": "n"}})
    gateway.delete("r:n")
    sent = [body["router"]["external_gateway_info"] for body in gateway.bodies("PUT")]
    assert sent == [{"network_id": "n"}, {}]


def test_a_gateway_requires_interfaces_and_subnets():
    resources = definitions(
        gateway=("RouterGateway", {"router_id": of("r"), "network": of("n")}),
        interface=("RouterInterface", {"router_id": of("r"), "subnet": of("s")}),
        other=("RouterInterface", {"router": of("q"), "subnet": of("s")}),
        subnet=("Subnet", {"network_id": of("n")}),
    )
    assert implied(RouterGateway, "gateway", resources) == {"interface", "subnet"}


@pytest.mark.parametrize(
    ("route", "physical_id"),
    [
        ({"destination": "10.0.0.0/8", "nexthop": "10.1.0.1"}, "r:10.0.0.0/8:10.1.0.1"),
        ({"destination": "2001:db8::/32", "nexthop": "fe80::1"}, "r:2001:db8::/32:fe80::1"),
    ],
)
def test_an_extra_route(route: dict[str, str], physical_id: str):
    extra = Operation(ExtraRoute, router_id="r", **route)
    extra.has(ROUTERS, {"id": "r", "routes": []})
    extra.script.answers("PUT", "/routers/r/(add|remove)_extraroutes", {})
    assert extra.create().physical_id == physical_id
    extra.delete(physical_id)
    assert extra.bodies("PUT") == [{"router": {"routes": [route]}}] * 2
    extra.has(ROUTERS, {"id": "r", "routes": [route]})
    assert extra.type.find(extra.ctx, "t") == physical_id
    with pytest.raises(ProviderError, match="Route duplicates an existing route"):
        extra.create()


def test_routes_require_the_connections_of_their_router():
    resources = definitions(
        route=("ExtraRoute", {"router_id": of("r")}),
        routes=("ExtraRouteSet", {"router": of("r")}),
        interface=("RouterInterface", {"router": of("r"), "subnet": of("s")}),
        gateway=("RouterGateway", {"router_id": of("r"), "network": "n"}),
        other=("RouterInterface", {"router": of("q"), "subnet": of("s")}),
    )
    assert implied(ExtraRoute, "route", resources) == {"interface", "gateway"}
    assert implied(ExtraRouteSet, "routes", resources) == {"interface"}


def routes(*numbers: int) -> list[dict[str, str]]:
    """Return routes."""
    return [{"destination": f"10.{number}.0.0/16", "nexthop": "10.0.0.1"} for number in numbers]


def test_a_set_of_routes_changes_by_its_difference():
    extra = Operation(ExtraRouteSet, router="r", routes=routes(1, 2))
    extra.has(ROUTERS, {"id": "r", "routes": routes(9)})
    extra.script.answers("PUT", "/routers/r/(add|remove)_extraroutes", {})
    take(extra, extra.create())
    extra.give(router="r", routes=routes(2, 3))
    take(extra, extra.update("routes", id_="r"))
    sent = [
        (request.path.rpartition("/")[2], request.body["router"]["routes"])
        for request in extra.script.sent("PUT")
    ]
    assert sent == [
        ("add_extraroutes", routes(1, 2)),
        ("add_extraroutes", routes(2, 3)),
        ("remove_extraroutes", routes(1)),
    ]
    assert extra.ctx.data == {"routes": routes(2, 3)}


def take(extra: Operation, stored: Created) -> None:
    """Store the data of a create or an update, and carry out its step."""
    extra.ctx = replace(extra.ctx, data=stored.data)
    assert extra.observe(id_="r").step == "apply"
    applied = extra.type.advance(extra.ctx, "r", extra.ctx.properties, "apply")
    assert applied is not None
    extra.ctx = replace(extra.ctx, data=applied.data)


def test_a_delete_removes_the_routes_of_an_interrupted_update():
    extra = Operation(ExtraRouteSet, router="r", routes=routes(2))
    extra.script.answers("PUT", "/routers/r/remove_extraroutes", {})
    extra.ctx = replace(extra.ctx, data={"routes": routes(2), "stale": routes(1), "pending": True})
    extra.delete("r")
    assert extra.bodies("PUT") == [{"router": {"routes": routes(1, 2)}}]
    extra.has(ROUTERS, {"id": "r", "routes": routes(1)})
    assert extra.observe("DELETE", "r").exists
    extra.has(ROUTERS, {"id": "r", "routes": routes(3)})
    assert not extra.observe("DELETE", "r").exists


def test_a_set_of_routes_refuses_the_routes_of_others():
    extra = Operation(ExtraRouteSet, router="r", routes=routes(1))
    extra.has(ROUTERS, {"id": "r", "routes": routes(1)})
    with pytest.raises(ProviderError, match=r"\(r,10.1.0.0/16=10.0.0.1\) exists"):
        extra.create()


def test_the_order_of_routes_has_no_meaning():
    assert ExtraRouteSet().equal("routes", routes(1, 2), routes(2, 1))


def test_a_floating_ip_requires_its_way_to_the_port():
    resources = definitions(
        floating=("FloatingIP", {"floating_network": "ext", "port_id": of("port")}),
        port=("Port", {"network": of("n"), "fixed_ips": [{"subnet": of("s")}]}),
        anywhere=("Port", {"network": of("n")}),
        association=("FloatingIPAssociation", {"floatingip_id": of("floating"), "port_id": of("anywhere")}),
        forward=("FloatingIPPortForward", {"floating_ip": of("floating"), "internal_port": of("port")}),
        interface=("RouterInterface", {"router": of("r"), "subnet_id": of("s")}),
        second=("RouterInterface", {"router": of("r"), "subnet": of("t")}),
        s=("Subnet", {"network": of("n")}),
        t=("Subnet", {"network": of("n")}),
        r=("Router", {"external_gateway_info": {"network": "ext"}}),
        inside=("Router", {}),
        gateway=("RouterGateway", {"router_id": of("inside"), "network_id": "ext"}),
    )
    assert implied(FloatingIP, "floating", resources) == {"r", "gateway", "interface"}
    assert implied(FloatingIPAssociation, "association", resources) == {"interface", "second"}
    assert implied(FloatingIPPortForward, "forward", resources) == {"interface"}


def test_a_floating_ip_requires_its_way_to_a_load_balancer():
    resources = definitions(
        floating=("FloatingIP", {"floating_network": "ext", "port_id": {"get_attr": ["lb", "vip_port_id"]}}),
        interface=("RouterInterface", {"router": "r", "subnet": of("s")}),
        other=("RouterInterface", {"router": "r", "subnet": of("t")}),
        s=("Subnet", {"network": "n"}),
        t=("Subnet", {"network": "m"}),
    )
    balancer = {"properties": {"vip_subnet": of("s")}}
    resources["lb"] = ResourceDefinition(
        "lb", "OS::Octavia::LoadBalancer", balancer, frozenset({"s"}), {}, frozenset()
    )
    resources["floating"] = replace(resources["floating"], requires=frozenset({"lb"}))
    assert implied(FloatingIP, "floating", resources) == {"interface"}


def test_a_new_floating_ip():
    floating = Operation(FloatingIP, floating_network_id="ext", floating_subnet="s")
    floating.accepts("POST", FLOATING_IPS)
    floating.create()
    sent = {"floating_network_id": "ext", "subnet_id": "s", "description": MARK}
    assert floating.bodies("POST") == [{"floatingip": sent}]


@pytest.mark.parametrize(
    ("changed", "given", "sent"),
    [
        ("port_id", {"port_id": "p"}, [{"port_id": "p", "fixed_ip_address": None}]),
        ("port_id", {}, [{"port_id": None, "fixed_ip_address": None}]),
        (
            "fixed_ip_address",
            {"port_id": "p", "fixed_ip_address": "10.0.0.5"},
            [{"port_id": "p", "fixed_ip_address": "10.0.0.5"}],
        ),
        ("dns_name", {"dns_name": "d"}, []),
    ],
)
def test_the_update_of_a_floating_ip(changed: str, given: dict[str, str], sent: list[Any]):
    floating = Operation(FloatingIP, floating_network="ext", **given)
    floating.accepts("PUT", FLOATING_IPS)
    floating.update(changed)
    assert floating.bodies("PUT") == [{"floatingip": values} for values in sent]


def test_an_address_of_a_port_needs_the_port():
    resources = definitions(a=("FloatingIP", {"fixed_ip_address": "10.0.0.5"}))
    (fault,) = FloatingIP().validate_among("a", {}, resources)
    assert fault.message == "fixed_ip_address cannot be specified without port_id."


def test_an_association_moves_to_another_floating_ip():
    association = Operation(FloatingIPAssociation, floatingip_id="f2", port_id="p")
    association.script.answers("PUT", "/floatingips/f.", {})
    assert association.update("floatingip_id", id_="f1").physical_id == "f2"
    assert [
        (request.path, request.body["floatingip"]["port_id"]) for request in association.script.requests
    ] == [
        ("/floatingips/f1", None),
        ("/floatingips/f2", "p"),
    ]


def test_an_association_of_another_port_is_left_as_it_is():
    association = Operation(FloatingIPAssociation, floatingip_id="f", port_id="p")
    association.has(FLOATING_IPS, {"id": "f", "port_id": "another"})
    observation = association.observe(id_="f")
    assert not observation.exists
    assert observation.reason.endswith("is associated with another port, another.")
    association.delete("f")
    assert not association.script.sent("PUT")


def test_a_port_forwarding_by_the_address_of_its_floating_ip():
    forward = Operation(
        FloatingIPPortForward,
        floating_ip="1.2.3.4",
        internal_ip_address="10.0.0.5",
        internal_port="p",
        internal_port_number=22,
        external_port=2222,
        protocol="tcp",
    )
    forward.script.answers("GET", "/floatingips/1.2.3.4", {}, status=404)
    forward.lists(FLOATING_IPS, {"id": "f"})
    forward.accepts("POST", PORT_FORWARDINGS, parent="f")
    assert forward.create().data == {"floating_ip": "f"}
    assert forward.bodies("POST")[0]["port_forwarding"] == {
        "internal_ip_address": "10.0.0.5",
        "internal_port_id": "p",
        "internal_port": 22,
        "external_port": 2222,
        "protocol": "tcp",
    }
    forward.lists(PORT_FORWARDINGS, {"id": "x1"}, parent="f")
    assert forward.type.find(forward.ctx, "t") == ["x1"]
    forward.lists(FLOATING_IPS)
    assert not forward.observe().exists
    forward.delete()
