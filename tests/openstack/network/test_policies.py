"""Security groups, QoS, metering and quotas on a cloud."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.clients.openstack.networking.network import (
    QUOTA_SETS,
    SECURITY_GROUP_RULES,
    SECURITY_GROUPS,
)
from orchestrator.errors import ProviderInUse
from tests.openstack.driver import Driver
from tests.openstack.network.ground import Ground, lives


def rules_of(driver: Driver, group: str) -> list[dict[str, object]]:
    """Return the rules of a group."""
    actual = driver.openstack.network.find(SECURITY_GROUPS, group)
    assert actual is not None
    return list(actual["security_group_rules"])


def test_a_security_group(driver: Driver) -> None:
    ssh = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "10.0.0.1/8"}
    ping6 = {"protocol": "icmpv6", "ethertype": "IPv6"}
    inside = {"remote_mode": "remote_group_id"}
    group = lives(
        driver,
        "OS::Neutron::SecurityGroup",
        {"description": "D", "rules": [ssh, ping6, inside]},
        {"name": driver.name(), "description": "E"},
    )
    rules = rules_of(driver, group)
    assert len(rules) == 5  # two of them are Neutron's for egress
    assert driver.attributes(group, "show")["show"]["description"] == "E"
    kept = {rule["id"] for rule in rules}
    out = {"direction": "egress", "protocol": "udp", "port_range_min": 53, "port_range_max": 53}
    driver.update(group, rules=[ping6, ssh, out])
    assert driver.drift(group) == {}
    assert len(kept & {rule["id"] for rule in rules_of(driver, group)}) == 2
    own = driver.create(
        "OS::Neutron::SecurityGroupRule",
        {"security_group": group, "port_range_min": 80, "port_range_max": 80, "description": "web"},
    )
    assert driver.find(own) == [own]
    driver.update(group, rules=[ssh])
    assert driver.drift(group) == {}
    assert len(rules_of(driver, group)) == 4
    extra = {"security_group_id": group, "direction": "ingress", "protocol": "udp"}
    driver.openstack.network.create(SECURITY_GROUP_RULES, extra)
    assert set(driver.drift(group)) == {"rules"}
    driver.delete(own)
    driver.delete(group)


def test_a_group_in_use_is_deleted_as_soon_as_it_is_free(driver: Driver, ground: Ground) -> None:
    group = driver.create("OS::Neutron::SecurityGroup", {"stateful": False})
    port = driver.create("OS::Neutron::Port", {"network": ground.net, "security_groups": [group]})
    row = driver.resources[group]
    with pytest.raises(ProviderInUse, match="in use"):
        row.type.delete(replace(row.ctx, action="DELETE"), group)
    driver.delete(port)
    driver.delete(group)


def test_rules_of_a_qos_policy(driver: Driver) -> None:
    policy = lives(
        driver,
        "OS::Neutron::QoSPolicy",
        {"description": "D"},
        {"name": driver.name(), "description": "E", "shared": True},
    )
    rules = [
        lives(driver, f"OS::Neutron::QoS{kind}", {"policy": policy, **given}, *changes)
        for kind, given, *changes in (
            ("BandwidthLimitRule", {"max_kbps": 100}, {"max_kbps": 200, "max_burst_kbps": 20}),
            ("DscpMarkingRule", {"dscp_mark": 10}, {"dscp_mark": 12}),
            ("MinimumBandwidthRule", {"min_kbps": 10}, {"min_kbps": 20}),
            ("MinimumPacketRateRule", {"min_kpps": 10}, {"min_kpps": 20}),
        )
    ]
    assert len(driver.attributes(policy, "rules")["rules"]) == 4
    for rule in rules:
        driver.delete(rule)
    assert driver.attributes(policy, "rules")["rules"] == []


def test_metering(driver: Driver) -> None:
    label = lives(driver, "OS::Neutron::MeteringLabel", {"description": "D"})
    assert driver.attributes(label)["description"] == "D"
    rule = lives(
        driver,
        "OS::Neutron::MeteringRule",
        {"metering_label_id": label, "remote_ip_prefix": "10.0.5.0/24", "direction": "egress"},
    )
    assert driver.attributes(rule)["direction"] == "egress"


def test_access_of_another_project(driver: Driver, ground: Ground) -> None:
    name = driver.resources[ground.net].ctx.physical_name
    given = {"object_type": "network", "object_id": name, "action": "access_as_shared"}
    lives(
        driver, "OS::Neutron::RBACPolicy", {**given, "target_tenant": "1" * 32}, {"target_tenant": "2" * 32}
    )


def test_a_quota(driver: Driver) -> None:
    project = "0123456789abcdef0123456789abcdef"
    quota = lives(driver, "OS::Neutron::Quota", {"project": project, "port": 7}, {"port": 8, "network": -1})
    assert (driver.openstack.network.find(QUOTA_SETS, project) or {})["port"] == 8
    driver.delete(quota)
    assert (driver.openstack.network.find(QUOTA_SETS, project) or {})["port"] != 8
