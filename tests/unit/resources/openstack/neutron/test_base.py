"""The verbs that Neutron's types have in common."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.openstack.networking.network import NETWORKS, PORTS, SECURITY_GROUPS
from orchestrator.errors import ProviderError, ProviderInUse, ProviderQuotaExceeded
from orchestrator.resources.base import Observation
from orchestrator.resources.openstack.neutron.networks.net import Net
from orchestrator.resources.openstack.neutron.networks.port import Port
from orchestrator.resources.openstack.neutron.policies.security_group import SecurityGroup
from tests.unit.resources.openstack.neutron.operation import MARK, NAME, TOKEN, Operation

NET = {"id": "x1", "name": NAME, "status": "ACTIVE", "admin_state_up": True, "tags": [], "shared": False}


def test_a_create_sends_the_token_and_the_default_name():
    net = Operation(Net, value_specs={"mtu": 1400})
    net.accepts("POST", NETWORKS)
    assert net.create().physical_id == "x1"
    (body,) = net.bodies("POST")
    assert body["network"] == {
        "name": NAME,
        "description": MARK,
        "admin_state_up": True,
        "shared": False,
        "mtu": 1400,
    }


def test_a_description_without_room_for_the_token_is_sent_as_it_is():
    group = Operation(SecurityGroup, description="d" * 250)
    group.accepts("POST", SECURITY_GROUPS)
    group.create()
    assert group.bodies("POST")[0]["security_group"]["description"] == "d" * 250


def test_the_objects_of_a_token_are_found():
    net = Operation(Net)
    net.lists(NETWORKS, {"id": "x1"}, {"id": "x2"})
    assert net.type.find(net.ctx, TOKEN) == ["x1", "x2"]
    assert net.script.requests[0].query["description"] == MARK


def test_an_object_is_found_after_a_change_of_its_description():
    group = Operation(SecurityGroup, description="later")
    group.lists(
        SECURITY_GROUPS, {"id": "x1", "description": f"first {MARK}"}, {"id": "x2", "description": None}
    )
    group.script.answers("GET", r"/security-groups\?.*description=later.*", {"security_groups": []})
    assert group.type.find(group.ctx, TOKEN) == ["x1"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("ACTIVE", {"ready": True, "error": ""}),
        ("DOWN", {"ready": True, "error": ""}),
        ("BUILD", {"ready": False, "error": ""}),
        ("ERROR", {"error": 'Went to status ERROR due to "Unknown"', "replaceable": True}),
        ("DEGRADED", {"error": 'Went to status DEGRADED due to "Unknown"', "replaceable": True}),
        (
            "ODD",
            {
                "error": 'Resource is not built - Unknown status ODD due to "Unknown"',
                "error_kind": "ResourceUnknownStatus",
            },
        ),
    ],
)
def test_the_status_of_an_object(status: str, expected: dict[str, Any]):
    net = Operation(Net)
    net.has(NETWORKS, {**NET, "status": status})
    observation = net.observe()
    assert {name: getattr(observation, name) for name in expected} == expected


def test_a_missing_object_is_absent_and_its_delete_no_error():
    net = Operation(Net)
    net.script.answers("GET", "/networks/x1", {"NeutronError": {"message": "no"}}, status=404)
    net.script.answers("DELETE", "/networks/x1", {"NeutronError": {"message": "no"}}, status=404)
    assert net.observe() == Observation(exists=False)
    net.delete()


def test_an_object_in_use_is_deleted_later():
    net = Operation(Net)
    net.script.answers("DELETE", "/networks/x1", {"NeutronError": {"message": "in use"}}, status=409)
    with pytest.raises(ProviderInUse, match="in use"):
        net.delete()


def test_a_quota_is_no_conflict():
    net = Operation(Net)
    answer = {"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['network']."}}
    net.script.answers("POST", "/networks", answer, status=409)
    with pytest.raises(ProviderQuotaExceeded):
        net.create()


def test_tags_of_a_new_network_are_a_step():
    net = Operation(Net, tags=["b", "a"])
    net.has(NETWORKS, NET)
    assert net.observe().step == "set_tags"
    net.script.answers("PUT", "/networks/x1/tags", {"tags": []})
    net.advance("set_tags")
    assert net.bodies("PUT") == [{"tags": ["b", "a"]}]
    net.has(NETWORKS, {**NET, "tags": ["a", "b"]})
    assert net.observe().ready
    assert not net.observe().step


def test_agents_of_a_new_network_are_a_step():
    net = Operation(Net, dhcp_agent_ids=["g1", "g2"])
    net.has(NETWORKS, NET)
    net.script.answers("GET", "/networks/x1/dhcp-agents", {"agents": [{"id": "g2"}, {"id": "g3"}]})
    assert net.observe().step == "set_agents"
    net.script.answers("POST", "/agents/g1/dhcp-networks", {"NeutronError": {"message": "is"}}, status=409)
    net.script.answers("DELETE", "/agents/g3/dhcp-networks/x1", None, status=204)
    net.advance("set_agents")
    assert len(net.script.sent("POST")) == len(net.script.sent("DELETE")) == 1


def test_an_update_sends_changed_attributes_only():
    net = Operation(Net, admin_state_up=False, dns_domain="a.test.")
    net.accepts("PUT", NETWORKS)
    net.update("admin_state_up")
    assert net.bodies("PUT") == [{"network": {"admin_state_up": False}}]


def forbid_shared(net: Operation, times: int) -> None:
    refusal = {"NeutronError": {"message": "(rule:update_network:shared) is disallowed by policy"}}
    net.accepts("PUT", NETWORKS)
    net.script.answers("PUT", "/networks/x1", refusal, status=403, times=times)


def test_a_forbidden_update_leaves_out_what_the_object_has_already():
    net = Operation(Net, admin_state_up=False)
    forbid_shared(net, 1)
    net.has(NETWORKS, NET)
    net.update("admin_state_up", "shared")  # an update that is repeated sends all
    assert net.bodies("PUT")[-1] == {"network": {"admin_state_up": False}}


def test_an_update_of_which_nothing_is_permitted_or_left_out():
    net = Operation(Net, shared=True)
    forbid_shared(net, 2)
    net.has(NETWORKS, NET)
    with pytest.raises(ProviderError, match="disallowed by policy"):
        net.update("shared")
    net = Operation(Net)
    forbid_shared(net, 1)
    net.has(NETWORKS, NET)
    net.update("shared")
    assert len(net.bodies("PUT")) == 1


def test_a_removed_property_gets_its_empty_value():
    net = Operation(Net)
    net.accepts("PUT", NETWORKS)
    net.update("dns_domain", "qos_policy", "port_security_enabled", "name")
    assert net.bodies("PUT") == [{"network": {"dns_domain": "", "qos_policy_id": None, "name": NAME}}]


def test_an_update_sends_further_attributes_that_differ():
    net = Operation(Net, value_specs={"mtu": 1400, "vlan_transparent": True})
    net.accepts("PUT", NETWORKS)
    net.has(NETWORKS, {**NET, "mtu": 1400, "vlan_transparent": False})
    net.update("value_specs")
    assert net.bodies("PUT") == [{"network": {"vlan_transparent": True}}]


def test_a_new_description_keeps_the_token():
    group = Operation(SecurityGroup, description="new")
    group.has(SECURITY_GROUPS, {"id": "x1", "description": f"old {MARK}"})
    group.accepts("PUT", SECURITY_GROUPS)
    group.update("description")
    assert group.bodies("PUT") == [{"security_group": {"description": f"new {MARK}"}}]


def test_a_description_among_further_attributes_has_the_token():
    net = Operation(Net, value_specs={"description": "d"})
    net.accepts("POST", NETWORKS)
    net.create()
    assert net.bodies("POST")[0]["network"]["description"] == f"d {MARK}"
    net.lists(NETWORKS, {"id": "x1"})
    assert net.type.find(net.ctx, TOKEN) == ["x1"]
    assert net.script.sent("GET")[0].query["description"] == f"d {MARK}"
    net.has(NETWORKS, {**NET, "description": f"d {MARK}"})
    assert (net.observe().properties or {})["value_specs"] == {"description": "d"}
    net.update("value_specs")
    assert not net.script.sent("PUT")
    net.give(value_specs={"description": "e"})
    net.accepts("PUT", NETWORKS)
    net.update("value_specs")
    assert net.bodies("PUT") == [{"network": {"description": f"e {MARK}"}}]


def test_the_token_is_not_shown():
    net = Operation(Net)
    net.has(NETWORKS, {**NET, "description": MARK})
    shown = net.type.read_attributes(net.ctx, "x1", frozenset({"show"}))["show"]
    assert shown["description"] == ""


@pytest.mark.parametrize(("given", "reported"), [({}, None), ({"name": "n"}, NAME)])
def test_a_default_name_is_no_drift(given: dict[str, str], reported: str | None):
    net = Operation(Net, "CHECK", **given)
    net.has(NETWORKS, NET)
    assert (net.observe().properties or {})["name"] == reported


@pytest.mark.parametrize("name", ["shared", "tenant_id", "admin_state_up", "tags"])
def test_further_attributes_cannot_be_properties(name: str):
    assert Operation(Net, value_specs={name: 1, "mtu": 1400}).faults() == [
        f"{name} not allowed in value_specs"
    ]


def test_the_order_of_tags_has_no_meaning():
    assert Net().equal("tags", ["a", "b"], ["b", "a"])
    assert not Port().equal("fixed_ips", [{"ip_address": "1"}, {}], [{}, {"ip_address": "1"}])


def test_segments_without_a_name_are_first():
    net = Operation(Net)
    net.has(NETWORKS, NET)
    net.script.answers("GET", r"/segments\?.*", {"segments": [{"name": "s"}, {"name": None}]})
    values = net.type.read_attributes(net.ctx, "x1", frozenset({"segments"}))
    assert [segment["name"] for segment in values["segments"]] == [None, "s"]


def test_an_object_that_is_being_deleted_is_not_ready():
    port = Operation(Port, network="n")
    port.has(PORTS, {"id": "x1", "status": "ERROR"})
    assert port.observe("DELETE") == Observation(exists=True, ready=False, retry_after=2.0)
