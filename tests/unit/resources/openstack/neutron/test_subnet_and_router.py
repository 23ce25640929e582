"""Subnets, their pools, routers and provider networks."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.openstack.networking.network import ADDRESS_SCOPES, ROUTERS, SUBNETS
from orchestrator.errors import ProviderError
from orchestrator.resources.base import ResourceType
from orchestrator.resources.openstack.neutron.networks.address_scope import AddressScope
from orchestrator.resources.openstack.neutron.networks.provider_net import ProviderNet
from orchestrator.resources.openstack.neutron.networks.segment import Segment
from orchestrator.resources.openstack.neutron.networks.subnet import Subnet
from orchestrator.resources.openstack.neutron.networks.subnet_pool import SubnetPool
from orchestrator.resources.openstack.neutron.routers.router import Router
from orchestrator.resources.openstack.neutron.routers.router_interface import RouterInterface
from tests.unit.resources.openstack.neutron.operation import NAME, Operation, definitions, implied, of

SUBNET = {"network": "n1", "cidr": "10.0.0.0/24"}


@pytest.mark.parametrize(
    ("given", "attributes"),
    [
        ({}, {}),
        ({"gateway_ip": ""}, {"gateway_ip": None}),
        ({"gateway_ip": None}, {"gateway_ip": None}),
        ({"gateway_ip": "auto"}, {}),
        ({"gateway_ip": "10.0.0.9"}, {"gateway_ip": "10.0.0.9"}),
        ({"segment": "g1"}, {"segment_id": "g1"}),
    ],
)
def test_the_properties_of_a_new_subnet(given: dict[str, Any], attributes: dict[str, Any]):
    subnet = Operation(Subnet, **SUBNET, **given)
    subnet.accepts("POST", SUBNETS)
    subnet.create()
    body = subnet.bodies("POST")[0]["subnet"]
    body.pop("description")
    base = {"network_id": "n1", "cidr": "10.0.0.0/24", "ip_version": 4, "enable_dhcp": True, "name": NAME}
    assert body == {**base, "dns_nameservers": [], **attributes}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {**SUBNET, "subnetpool": "p"},
            "Cannot define the following properties at the same time: subnetpool, cidr.",
        ),
        (
            {**SUBNET, "prefixlen": 24},
            "Cannot define the following properties at the same time: prefixlen, cidr.",
        ),
        (
            {**SUBNET, "ipv6_ra_mode": "slaac"},
            "ipv6_ra_mode and ipv6_address_mode are not supported for ipv4.",
        ),
        (
            {
                "network": "n",
                "ip_version": 6,
                "ipv6_ra_mode": "slaac",
                "ipv6_address_mode": "dhcpv6-stateful",
            },
            "When both ipv6_ra_mode and ipv6_address_mode are set, they must be equal.",
        ),
        ({**SUBNET, "gateway_ip": "10.0.0"}, 'Gateway IP address "10.0.0" is in invalid format.'),
    ],
)
def test_faults_of_a_subnet(given: dict[str, Any], message: str):
    assert Operation(Subnet, **given).faults() == [message]


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Subnet, {}, "At least one of the following properties must be specified: subnetpool, cidr."),
        (Subnet, {"cidr": {"get_param": "c"}}, ""),
        (RouterInterface, {}, "At least one of the following properties must be specified: subnet, port."),
        (RouterInterface, {"port_id": "p"}, ""),
        (Segment, {"network_type": "vlan", "physical_network": "p"}, "segmentation_id is required for vlan"),
        (Segment, {"network_type": "flat"}, "physical_network is required for flat provider network."),
    ],
)
def test_properties_that_are_required_together(kind: type[ResourceType], given: dict[str, Any], message: str):
    resources = definitions(a=(kind.name.removeprefix("OS::Neutron::"), given))
    faults = [fault.message for fault in kind().validate_among("a", given, resources)]
    assert bool(faults) is bool(message)
    assert all(fault.startswith(message) for fault in faults)


def test_neutron_chooses_a_gateway_only_for_a_new_subnet():
    subnet = Operation(Subnet, **SUBNET, gateway_ip="auto")
    with pytest.raises(ProviderError, match="only supported during subnet creation"):
        subnet.update("gateway_ip")


@pytest.mark.parametrize(("current", "sent"), [(None, True), ("g1", False), ("g2", None)])
def test_a_segment_is_set_once(current: str | None, sent: bool | None):
    subnet = Operation(Subnet, **SUBNET, segment="g1")
    subnet.has(SUBNETS, {"id": "x1", "segment_id": current})
    subnet.accepts("PUT", SUBNETS)
    if sent is None:
        with pytest.raises(ProviderError, match="belongs to the segment g2"):
            subnet.update("segment")
    else:
        subnet.update("segment")
    assert bool(subnet.bodies("PUT")) is bool(sent)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_prefixlen": 28, "max_prefixlen": 24}, "max_prefixlen=24, min_prefixlen=28"),
        ({"default_prefixlen": 28, "max_prefixlen": 24}, "max_prefixlen=24, default_prefixlen=28"),
        ({"min_prefixlen": 28, "default_prefixlen": 24}, "min_prefixlen=28, default_prefixlen=24"),
    ],
)
def test_the_lengths_of_a_pool_are_in_order(given: dict[str, int], message: str):
    pool = Operation(SubnetPool, prefixes=["10.0.0.0/8"], **given)
    assert pool.faults() == [f"Illegal prefix bounds: {message}."]


def test_an_address_scope_is_found_by_its_name():
    scope = Operation(AddressScope)
    scope.lists(ADDRESS_SCOPES, {"id": "x1"}, {"id": "x2"})
    assert scope.type.find(scope.ctx, "t") == ["x1"]
    assert (
        dict(scope.script.requests[0].query).items()
        >= {"name": NAME, "ip_version": 4, "project_id": "p"}.items()
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"network_type": "flat", "segmentation_id": "3"},
            "segmentation_id not allowed for network types: local, flat",
        ),
        (
            {"network_type": "vxlan", "physical_network": "p"},
            "physical_network not allowed for network types: vxlan, gre, geneve, flat",
        ),
        ({"network_type": "vlan", "physical_network": "p", "segmentation_id": "3"}, ""),
    ],
)
def test_faults_of_a_provider_network(given: dict[str, Any], message: str):
    assert Operation(ProviderNet, **given).faults() == ([message] if message else [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"network_type": "flat", "segmentation_id": 3},
            "segmentation_id is prohibited for flat provider network.",
        ),
        (
            {"network_type": "gre", "physical_network": "p"},
            "physical_network is prohibited for gre provider network.",
        ),
        (
            {"network_type": "vlan", "segmentation_id": 5000},
            "Up to 4094 VLAN network segments can exist on each physical_network.",
        ),
    ],
)
def test_faults_of_a_segment(given: dict[str, Any], message: str):
    assert Operation(Segment, network="n", **given).faults() == [message]


@pytest.mark.parametrize(
    ("gateway", "sent"),
    [
        ({"network": "e"}, {"network_id": "e"}),
        ({"network": "e", "enable_snat": False}, {"network_id": "e", "enable_snat": False}),
        (
            {"network": "e", "external_fixed_ips": [{"subnet": "s", "ip_address": "1.2.3.4"}]},
            {"network_id": "e", "external_fixed_ips": [{"subnet_id": "s", "ip_address": "1.2.3.4"}]},
        ),
    ],
)
def test_the_gateway_of_a_router(gateway: dict[str, Any], sent: dict[str, Any]):
    router = Operation(Router, external_gateway_info=gateway)
    router.accepts("POST", ROUTERS)
    router.create()
    assert router.bodies("POST")[0]["router"]["external_gateway_info"] == sent
    addresses = [{"subnet_id": "s", "ip_address": "1.2.3.4"}]
    actual = {"network_id": "e", "enable_snat": False, "external_fixed_ips": addresses}
    router.has(ROUTERS, {"id": "x1", "name": NAME, "status": "ACTIVE", "external_gateway_info": actual})
    assert (router.observe().properties or {})["external_gateway_info"] == router.ctx.properties[
        "external_gateway_info"
    ]


def test_a_removed_gateway_is_cleared():
    router = Operation(Router)
    router.accepts("PUT", ROUTERS)
    router.update("external_gateway_info")
    assert router.bodies("PUT") == [{"router": {"external_gateway_info": {}}}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"distributed": True, "l3_agent_ids": ["g"]},
            "Cannot define the following properties at the same time: distributed, l3_agent_id/l3_agent_ids.",
        ),
        (
            {"distributed": True, "l3_agent_id": "g"},
            "Cannot define the following properties at the same time: distributed, l3_agent_id/l3_agent_ids.",
        ),
        (
            {"distributed": True, "ha": True},
            "Cannot define the following properties at the same time: distributed, ha.",
        ),
        ({"l3_agent_ids": ["g", "h"]}, "Non HA routers can only have one L3 agent."),
    ],
)
def test_faults_of_a_router(given: dict[str, Any], message: str):
    assert Operation(Router, **given).faults() == [message]


def test_the_agents_of_a_router():
    router = Operation(Router, l3_agent_id="g1")
    router.has(ROUTERS, {"id": "x1", "name": NAME, "status": "ACTIVE", "tags": []})
    router.script.answers("GET", "/routers/x1/l3-agents", {"agents": [{"id": "g2"}]})
    assert router.observe().step == "set_agents"
    router.script.answers("DELETE", "/agents/g2/l3-routers/x1", None, status=204)
    router.script.answers("POST", "/agents/g1/l3-routers", {})
    router.advance("set_agents")
    assert router.bodies("POST") == [{"router_id": "x1"}]


def test_a_router_requires_the_subnets_of_its_external_network():
    resources = definitions(
        router=("Router", {"external_gateway_info": {"network": of("n")}}),
        inside=("Router", {}),
        subnet=("Subnet", {"network": of("n")}),
        other=("Subnet", {"network": of("m")}),
    )
    assert implied(Router, "router", resources) == {"subnet"}
    assert implied(Router, "inside", resources) == set()
