"""Security groups, trunks, QoS, metering, access of other projects, quotas."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.openstack.networking.network import (
    BANDWIDTH_LIMIT_RULES,
    NETWORKS,
    RBAC_POLICIES,
    SECURITY_GROUP_RULES,
    SECURITY_GROUPS,
    TRUNKS,
)
from orchestrator.resources.openstack.neutron.networks.trunk import Trunk
from orchestrator.resources.openstack.neutron.policies.qos_rules import QoSBandwidthLimitRule
from orchestrator.resources.openstack.neutron.policies.quota import Quota
from orchestrator.resources.openstack.neutron.policies.rbac_policy import RBACPolicy
from orchestrator.resources.openstack.neutron.policies.security_group import SecurityGroup
from orchestrator.resources.openstack.neutron.policies.security_group_rule import SecurityGroupRule
from tests.unit.resources.openstack.neutron.operation import MARK, NAME, TOKEN, Operation, definitions

EGRESS = [
    {"id": "e4", "direction": "egress", "ethertype": "IPv4", "description": None},
    {"id": "e6", "direction": "egress", "ethertype": "IPv6", "description": None},
]
SSH = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "10.0.0.1/8"}
SSH_RULE = {
    "id": "r1",
    "direction": "ingress",
    "ethertype": "IPv4",
    "protocol": "tcp",
    "port_range_min": 22,
    "port_range_max": 22,
    "remote_ip_prefix": "10.0.0.0/8",
    "description": "",
}
OUT = {"direction": "egress", "protocol": "udp"}


def group_of(*rules: dict[str, Any]) -> dict[str, Any]:
    """Return a group with rules."""
    return {"id": "x1", "name": NAME, "description": MARK, "security_group_rules": list(rules)}


def rules_set(given: list[dict[str, Any]], *current: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """Return the deleted and the created rules of a step from current rules to those of a template."""
    group = Operation(SecurityGroup, rules=given)
    group.has(SECURITY_GROUPS, group_of(*current))
    group.accepts("DELETE", SECURITY_GROUP_RULES, ".*")
    group.script.answers("POST", "/security-group-rules", {})
    step = group.observe().step
    if step:
        group.advance(step)
    deleted = [request.path.rpartition("/")[2] for request in group.script.sent("DELETE")]
    return deleted, [rule for body in group.bodies("POST") for rule in body["security_group_rules"]]


def test_a_rule_is_recognized_in_any_form():
    icmp = {"protocol": "icmpv6", "ethertype": "IPv6"}
    actual = {"id": "r2", "direction": "ingress", "ethertype": "IPv6", "protocol": "ipv6-icmp"}
    assert rules_set([icmp, SSH], *EGRESS, SSH_RULE, actual) == ([], [])


def test_missing_rules_are_added_and_stale_rules_deleted():
    stale = {**SSH_RULE, "id": "r9", "port_range_max": 23}
    deleted, created = rules_set([SSH], *EGRESS, stale)
    assert deleted == ["r9"]
    assert created == [
        {
            "security_group_id": "x1",
            "direction": "ingress",
            "ethertype": "IPv4",
            "protocol": "tcp",
            "port_range_min": "22",
            "port_range_max": "22",
            "remote_ip_prefix": "10.0.0.1/8",
        }
    ]


def test_an_egress_rule_replaces_the_default_rules():
    deleted, created = rules_set([OUT], *EGRESS)
    assert deleted == ["e4", "e6"]
    assert [rule["protocol"] for rule in created] == ["udp"]


def test_the_default_rules_are_put_back_without_an_egress_rule():
    actual = {"id": "r3", "direction": "egress", "ethertype": "IPv4", "protocol": "udp"}
    deleted, created = rules_set([], actual)
    assert deleted == ["r3"]
    assert [(rule["direction"], rule["ethertype"]) for rule in created] == [
        ("egress", "IPv4"),
        ("egress", "IPv6"),
    ]


def test_a_rule_without_a_remote_group_refers_to_its_own_group():
    _, created = rules_set([{"remote_mode": "remote_group_id", "remote_ip_prefix": "10.0.0.0/8"}], *EGRESS)
    assert [rule["remote_group_id"] for rule in created] == ["x1"]
    assert "remote_ip_prefix" not in created[0]
    _, created = rules_set([{"remote_mode": "remote_group_id", "remote_group_id": "g"}], *EGRESS)
    assert [rule["remote_group_id"] for rule in created] == ["g"]


def test_rules_that_are_resources_are_left_as_they_are():
    own = {**SSH_RULE, "id": "r5", "protocol": "udp", "description": f"web {MARK}"}
    assert rules_set([SSH], *EGRESS, SSH_RULE, own) == ([], [])


def test_an_update_of_the_description_leaves_the_rules():
    group = Operation(SecurityGroup, description="d", rules=[SSH])
    group.has(SECURITY_GROUPS, group_of(*EGRESS))
    group.accepts("PUT", SECURITY_GROUPS)
    group.update("description")
    assert not group.script.sent("POST")
    assert not group.script.sent("DELETE")


def test_rules_are_deleted_before_their_group():
    group = Operation(SecurityGroup)
    group.has(SECURITY_GROUPS, group_of(*EGRESS))
    group.accepts("DELETE", SECURITY_GROUP_RULES, ".*")
    group.accepts("DELETE", SECURITY_GROUPS)
    group.delete()
    paths = [request.path for request in group.script.sent("DELETE")]
    assert paths == ["/security-group-rules/e4", "/security-group-rules/e6", "/security-groups/x1"]


def test_a_changed_rule_is_drift():
    group = Operation(SecurityGroup, "CHECK", rules=[SSH])
    group.has(SECURITY_GROUPS, group_of(*EGRESS))
    assert (group.observe().properties or {})["rules"] == [
        {"direction": "egress", "ethertype": "IPv4"},
        {"direction": "egress", "ethertype": "IPv6"},
    ]
    group.has(SECURITY_GROUPS, group_of(*EGRESS, SSH_RULE))
    assert (group.observe().properties or {})["rules"] == group.ctx.properties["rules"]


def test_the_name_of_the_default_group_is_reserved():
    message = 'Security groups cannot be assigned the name "default".'
    assert Operation(SecurityGroup, name="default").faults() == [message]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port_range_min": 5, "port_range_max": 4}, "The minimum port number must be less than or equal to"),
        ({"protocol": "icmp", "port_range_min": 5, "port_range_max": 0}, ""),
        ({"remote_group": "g", "remote_ip_prefix": "10.0.0.0/8"}, "Cannot define the following properties"),
    ],
)
def test_faults_of_a_rule(given: dict[str, Any], message: str):
    faults = Operation(SecurityGroupRule, security_group="s", **given).faults()
    assert bool(faults) is bool(message)
    assert all(fault.startswith(message) for fault in faults)


def test_a_rule_of_its_own():
    rule = Operation(
        SecurityGroupRule, security_group="s", remote_group="g", port_range_min=22, description="web"
    )
    rule.accepts("POST", SECURITY_GROUP_RULES)
    rule.create()
    assert rule.bodies("POST")[0]["security_group_rule"] == {
        "security_group_id": "s",
        "remote_group_id": "g",
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": "tcp",
        "port_range_min": "22",
        "description": f"web {MARK}",
    }


def subport(port: str, id_: int) -> dict[str, Any]:
    """Return a subport."""
    return {"port": port, "segmentation_type": "vlan", "segmentation_id": id_}


def test_subports_are_removed_before_others_are_added():
    trunk = Operation(Trunk, port="p", sub_ports=[subport("a", 1), subport("b", 3)])
    current = [{**subport("a", 1), "port_id": "a"}, {**subport("b", 2), "port_id": "b"}]
    trunk.has(TRUNKS, {"id": "x1", "sub_ports": current})
    trunk.script.answers("PUT", "/trunks/x1/(add|remove)_subports", {})
    trunk.update("sub_ports")
    assert [(request.path.rpartition("/")[2], request.body) for request in trunk.script.sent("PUT")] == [
        ("remove_subports", {"sub_ports": [{"port_id": "b"}]}),
        (
            "add_subports",
            {"sub_ports": [{"port_id": "b", "segmentation_type": "vlan", "segmentation_id": 3}]},
        ),
    ]


def test_the_order_of_subports_has_no_meaning():
    assert Trunk().equal("sub_ports", [subport("a", 1), subport("b", 2)], [subport("b", 2), subport("a", 1)])


def test_a_rule_of_a_policy_is_found_by_its_direction():
    rule = Operation(QoSBandwidthLimitRule, policy="q", max_kbps=10)
    rule.accepts("POST", BANDWIDTH_LIMIT_RULES, parent="q")
    assert rule.create().data == {"policy": "q"}
    assert rule.bodies("POST") == [
        {"bandwidth_limit_rule": {"max_kbps": 10, "max_burst_kbps": 0, "direction": "egress"}}
    ]
    rule.script.answers(
        "GET",
        r"/qos/policies/q/bandwidth_limit_rules\?.*",
        {
            "bandwidth_limit_rules": [
                {"id": "r1", "direction": "ingress"},
                {"id": "r2", "direction": "egress"},
            ]
        },
    )
    assert rule.type.find(rule.ctx, "t") == ["r2"]


def test_a_rule_without_a_known_policy_is_absent():
    rule = Operation(QoSBandwidthLimitRule, policy="", max_kbps=10)
    assert not rule.observe().exists
    rule.delete()
    assert rule.script.requests == []


def test_access_to_an_object_by_its_name():
    policy = Operation(
        RBACPolicy, object_type="network", object_id="net", action="access_as_shared", target_tenant="t"
    )
    policy.script.answers("GET", "/networks/net", {}, status=404)
    policy.lists(NETWORKS, {"id": "n1"})
    policy.accepts("POST", RBAC_POLICIES)
    policy.create()
    assert policy.bodies("POST")[0]["rbac_policy"]["object_id"] == "n1"
    policy.lists(RBAC_POLICIES, {"id": "x1"})
    assert policy.type.find(policy.ctx, "t") == ["x1"]


def test_only_networks_have_external_access():
    policy = Operation(
        RBACPolicy, object_type="qos_policy", object_id="q", action="access_as_external", target_tenant="t"
    )
    message = (
        'Invalid action "access_as_external" for object type qos_policy. Valid actions: access_as_shared'
    )
    assert policy.faults() == [message]


def test_a_quota_has_a_limit():
    (fault,) = Quota().validate_among("a", {}, definitions(a=("Quota", {"project": "p"})))
    assert fault.message.startswith(
        "At least one of the following properties must be specified: floatingip, network"
    )


def test_a_quota():
    quota = Operation(Quota, project="p", port=7)
    quota.script.answers("PUT", "/quotas/p", {})
    quota.script.answers("GET", "/quotas/p", {"quota": {"port": 7, "network": 100, "odd": 1}})
    quota.script.answers("DELETE", "/quotas/p", None, status=204)
    assert quota.create().physical_id == "p"
    assert quota.bodies("PUT") == [{"quota": {"port": 7}}]
    assert quota.type.find(quota.ctx, "t") == "p"
    assert quota.observe(id_="p").properties == {"port": 7, "network": 100}
    quota.delete("p")
    assert not quota.observe("DELETE", "p").exists


def test_a_trunk_is_found_by_its_port_and_its_description_is_that_of_the_template():
    trunk = Operation(Trunk, port="p", description="of mine")
    trunk.accepts("POST", TRUNKS)
    trunk.create()
    assert trunk.bodies("POST")[0]["trunk"]["description"] == "of mine"
    trunk.lists(TRUNKS, {"id": "x1", "name": NAME}, {"id": "x2", "name": "of others"})
    assert trunk.type.find(trunk.ctx, TOKEN) == ["x1"]
    assert trunk.script.requests[-1].query["port_id"] == "p"
