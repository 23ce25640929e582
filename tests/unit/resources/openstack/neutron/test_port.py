"""OS::Neutron::Port."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.clients.openstack.networking.network import NETWORKS, PORTS, SECURITY_GROUPS, SUBNETS
from orchestrator.clients.openstack.transport import Answer
from orchestrator.engine.observation.differences import Recorded, differences
from orchestrator.errors import ProviderError, ProviderInUse
from orchestrator.resources.openstack.neutron.networks.port import Port
from tests.unit.resources.openstack.neutron.operation import (
    MARK,
    NAME,
    TOKEN,
    Operation,
    definitions,
    implied,
    of,
)

ADDRESS = {"subnet_id": "s1", "ip_address": "10.0.0.5"}
PORT: dict[str, Any] = {
    "id": "x1",
    "name": NAME,
    "status": "DOWN",
    "network_id": "n1",
    "device_id": "server",
    "device_owner": "compute:nova",
    "fixed_ips": [ADDRESS],
    "mac_address": "fa:16:3e:00:00:01",
    "allowed_address_pairs": [{"ip_address": "10.0.0.9", "mac_address": "fa:16:3e:00:00:01"}],
    "security_groups": ["g2", "g1"],
    "description": MARK,
    "tags": [],
    "dns_name": "",
}


def posted(**given: Any) -> dict[str, Any]:
    """Return the attributes in the POST of a port."""
    port = Operation(Port, network="n1", **given)
    port.accepts("POST", PORTS)
    port.create()
    body: dict[str, Any] = port.bodies("POST")[0]["port"]
    return body


def put(*changed: str, **given: Any) -> dict[str, Any]:
    """Return the attributes in the PUT of a port."""
    port = Operation(Port, network="n1", **given)
    port.has(PORTS, {**PORT, "binding:profile": {"pci_slot": "1", "old": "2"}})
    port.accepts("PUT", PORTS)
    port.lists(SECURITY_GROUPS, {"id": "default-group"})
    port.update(*changed)
    body: dict[str, Any] = port.bodies("PUT")[0]["port"]
    return body


def test_a_new_port_leaves_the_defaults_to_neutron():
    assert posted() == {"network_id": "n1", "admin_state_up": True, "name": NAME, "description": MARK}


@pytest.mark.parametrize(
    ("given", "attributes"),
    [
        ({"fixed_ips": []}, {}),
        ({"no_fixed_ips": True}, {"fixed_ips": []}),
        ({"fixed_ips": [{"subnet": "s1"}]}, {"fixed_ips": [{"subnet_id": "s1"}]}),
        ({"fixed_ips": [{"subnet_id": "s1"}]}, {"fixed_ips": [{"subnet_id": "s1"}]}),
        ({"fixed_ips": [{"ip_address": "10.0.0.5"}]}, {"fixed_ips": [{"ip_address": "10.0.0.5"}]}),
        ({"security_groups": []}, {"security_groups": []}),
        ({"security_groups": ["g"]}, {"security_groups": ["g"]}),
        ({"qos_policy": "q"}, {"qos_policy_id": "q"}),
        ({"tags": ["t"]}, {"tags": ["t"]}),
        ({"binding:vnic_type": "direct"}, {"binding:vnic_type": "direct"}),
        (
            {"allowed_address_pairs": [{"ip_address": "10.0.0.0/24"}]},
            {"allowed_address_pairs": [{"ip_address": "10.0.0.0/24"}]},
        ),
        ({"replacement_policy": "AUTO"}, {}),
    ],
)
def test_the_properties_of_a_new_port(given: dict[str, Any], attributes: dict[str, Any]):
    base = {"network_id": "n1", "admin_state_up": True, "name": NAME, "description": MARK}
    assert posted(**given) == {**base, **attributes}


def test_the_former_name_of_the_network():
    port = Operation(Port, network_id="n1")
    assert port.ctx.properties["network"] == "n1"


@pytest.mark.parametrize(
    ("changed", "given", "attributes"),
    [
        ("security_groups", {}, {"security_groups": ["default-group"]}),
        ("security_groups", {"security_groups": []}, {"security_groups": []}),
        ("no_fixed_ips", {"no_fixed_ips": True}, {"fixed_ips": []}),
        ("qos_policy", {}, {"qos_policy_id": None}),
        ("allowed_address_pairs", {}, {"allowed_address_pairs": []}),
        ("device_id", {}, {"device_id": ""}),
        ("name", {}, {"name": NAME}),
        (
            "value_specs",
            {"value_specs": {"binding:profile": {"new": "3", "old": None}}},
            {"binding:profile": {"pci_slot": "1", "new": "3"}},
        ),
    ],
)
def test_the_update_of_a_port(changed: str, given: dict[str, Any], attributes: dict[str, Any]):
    assert put(changed, **given) == attributes


def created(**given: Any) -> Operation:
    """Return a port after its create, to which Neutron gives an address."""
    port = Operation(Port, network="n1", **given)
    port.script.answers("POST", port.root + PORTS.of(), {"port": PORT})
    port.ctx = replace(port.ctx, action="CHECK", data=port.create().data)
    return port


def drift(port: Operation, *addresses: dict[str, Any]) -> list[str]:
    """Return the differing properties of the port with these addresses."""
    port.has(PORTS, {**PORT, "fixed_ips": list(addresses), "allowed_address_pairs": []})
    recorded = Recorded(port.type, port.ctx.properties, port.type.chosen(port.ctx))
    return [item.property for item in differences(recorded, port.observe().properties or {})]


@pytest.mark.parametrize(
    ("given", "addresses", "found"),
    [
        ({}, [], ["fixed_ips"]),
        ({}, [{"subnet_id": "s1", "ip_address": "10.0.0.6"}], ["fixed_ips"]),
        ({}, [ADDRESS], []),
        ({}, [{"subnet_id": "s6", "ip_address": "fd00::5"}, ADDRESS], []),  # of a subnet that came later
        ({"no_fixed_ips": True}, [], []),
        ({"fixed_ips": [{"subnet": "s1"}]}, [], ["fixed_ips"]),
    ],
)
def test_a_lost_address_is_drift_though_the_template_leaves_addresses_to_neutron(
    given: dict[str, Any], addresses: list[dict[str, Any]], found: list[str]
):
    assert drift(created(**given), *addresses) == found


def test_a_repair_gives_the_lost_address_back():
    port = created()
    port.accepts("PUT", PORTS)
    port.update("fixed_ips")
    assert port.bodies("PUT")[0]["port"] == {"fixed_ips": [ADDRESS]}


def test_addresses_of_the_template_take_the_place_of_given_ones():
    port = created()
    port.accepts("PUT", PORTS)
    port.give(network="n1", fixed_ips=[{"ip_address": "10.0.0.9"}])
    data = port.update("fixed_ips").data
    port.give(network="n1")
    port.ctx = replace(port.ctx, data=data)
    assert drift(port) == []


def test_empty_addresses_are_left_as_they_are_in_an_update():
    port = Operation(Port, network="n1", fixed_ips=[])
    port.update("fixed_ips")
    assert port.script.requests == []


@pytest.mark.parametrize(
    ("given", "drifted"),
    [
        ({"fixed_ips": [{"subnet": "s1"}]}, False),
        ({"fixed_ips": [{"subnet": "s1", "ip_address": "10.0.0.6"}]}, True),
        ({"fixed_ips": []}, False),
        ({"no_fixed_ips": True}, True),
        ({"security_groups": ["g1", "g2"]}, False),
        ({"security_groups": ["g1"]}, True),
        ({"allowed_address_pairs": [{"ip_address": "10.0.0.9"}]}, False),
        ({"allowed_address_pairs": [{"ip_address": "10.0.0.8"}]}, True),
        ({"device_id": ""}, False),
        ({"device_id": "another"}, True),
        ({"dns_name": "d"}, False),
    ],
)
def test_drift_of_a_port(given: dict[str, Any], drifted: bool):
    port = Operation(Port, "CHECK", network="n1", **given)
    port.has(PORTS, PORT)
    actual = port.observe().properties or {}
    different = {name for name in given if actual[name] != port.ctx.properties[name]}
    assert bool(different) is drifted


def test_addresses_and_no_addresses_exclude_each_other():
    port = Operation(Port, network="n1", fixed_ips=[{"subnet": "s"}], no_fixed_ips=True)
    message = "Cannot define the following properties at the same time: fixed_ips, no_fixed_ips."
    assert port.faults() == [message]


@pytest.mark.parametrize(("policy", "step"), [("AUTO", "update"), ("REPLACE_ALWAYS", "replace")])
def test_a_policy_replaces_the_port_in_each_update(policy: str, step: str):
    after = {"network": "n1", "replacement_policy": policy, "name": "b"}
    assert Port().change({"network": "n1"}, after, frozenset({"name"})) == step
    assert Port().change(after, after, frozenset()) == "keep"


def test_a_replaced_port_releases_its_addresses_once():
    port = Operation(Port, network="n1")
    port.has(PORTS, PORT)
    port.accepts("PUT", PORTS)
    port.type.release(port.ctx, "x1")
    description = f"(stack-orchestrator:{TOKEN}; addresses 10.0.0.5)"
    assert port.bodies("PUT") == [{"port": {"fixed_ips": [], "description": description}}]
    port.has(PORTS, {**PORT, "fixed_ips": [], "description": description})
    port.type.release(port.ctx, "x1")
    assert len(port.bodies("PUT")) == 1
    port.type.reclaim(port.ctx, "x1", port.ctx.properties)
    assert port.bodies("PUT")[1] == {"port": {"fixed_ips": [{"ip_address": "10.0.0.5"}], "description": MARK}}


def test_a_rollback_waits_for_the_addresses_of_the_replacement():
    port = Operation(Port, network="n1")
    port.has(PORTS, {**PORT, "fixed_ips": [], "description": "(stack-orchestrator:t; addresses 10.0.0.5)"})
    port.script.answers("PUT", "/ports/x1", {"NeutronError": {"message": "in use"}}, status=409)
    with pytest.raises(ProviderInUse):
        port.type.reclaim(port.ctx, "x1", port.ctx.properties)


def test_release_and_reclaim_of_a_missing_port():
    port = Operation(Port, network="n1")
    port.script.answers("GET", "/ports/x1", {}, status=404)
    port.type.release(port.ctx, "x1")
    port.type.reclaim(port.ctx, "x1", port.ctx.properties)


def test_the_network_and_the_subnets_of_a_port():
    port = Operation(Port, network="n1")
    port.has(PORTS, PORT)
    port.has(NETWORKS, {"id": "n1"})
    port.has(SUBNETS, {"id": "s1"})
    values = port.type.read_attributes(port.ctx, "x1", frozenset({"network", "subnets", "status"}))
    assert values == {"network": {"id": "n1"}, "subnets": [{"id": "s1"}], "status": "DOWN"}


@pytest.mark.parametrize(
    ("written", "required"),
    [
        (of("n"), {"same", "former", "computed"}),
        ("literal", {"literal", "computed", "parameter"}),
        ({"get_param": "net"}, {"parameter", "computed", "literal"}),
        ({"get_attr": ["x", "net"]}, {"same", "former", "other", "literal", "computed", "parameter"}),
    ],
)
def test_a_port_requires_the_subnets_of_its_network(written: Any, required: set[str]):
    resources = definitions(
        port=("Port", {"network": written}),
        same=("Subnet", {"network": of("n")}),
        former=("Subnet", {"network_id": {"Ref": "n"}}),
        other=("Subnet", {"network": of("m")}),
        literal=("Subnet", {"network": "literal"}),
        computed=("Subnet", {"network": {"get_attr": ["y", "net"]}}),
        parameter=("Subnet", {"network": {"get_param": "net"}}),
        unset=("Subnet", {}),
    )
    assert implied(Port, "port", resources) == required


def test_only_a_port_of_a_deleted_server_is_unbound_and_deleted():
    """Neutron gave nova no answer: members may not delete the port as long as it is bound."""
    refused = Answer(403, {}, b'{"NeutronError": {"message": "rule:delete_port is disallowed by policy"}}')
    port = Operation(Port, network="n1")
    port.has(PORTS, PORT)
    port.script.answers("GET", "/servers/server", {"server": {"id": "server", "status": "ACTIVE"}})
    path = port.root + PORTS.of("x1")
    port.script.answers("DELETE", path, lambda _: Answer(204, {}, b"") if port.bodies("PUT") else refused)
    port.accepts("PUT", PORTS)
    with pytest.raises(ProviderError, match="disallowed by policy"):
        port.delete()
    assert port.bodies("PUT") == []
    port.script.answers("GET", "/servers/server", {"itemNotFound": {"message": "no server"}}, status=404)
    port.delete()
    assert port.bodies("PUT") == [{"port": {"device_id": "", "device_owner": ""}}]
