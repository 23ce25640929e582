"""The steps from one list of network entries to another."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.resources.openstack.nova.server.interfaces import (
    Attach,
    Detach,
    Keep,
    Matching,
    Reuse,
    changes,
    match,
    plan,
    reused_own_ports,
)

A, B, C = {"network": "a"}, {"network": "b"}, {"network": "c"}
AUTO, NONE = {"allocate_network": "auto"}, {"allocate_network": "none"}
SUBNET = {"subnet": "a-subnet"}
GIVEN = {"port": "p-given"}


def interface(network: str, port: str = "") -> dict[str, Any]:
    """Return an interface of a server on a network."""
    addresses = [{"subnet_id": f"{network}-subnet", "ip_address": f"{network}.1"}]
    return {"port_id": port or f"p-{network}", "net_id": network, "fixed_ips": addresses}


@pytest.mark.parametrize(
    ("before", "attached", "matching"),
    [
        ([], ["a"], Matching([], ["p-a"], True)),
        ([AUTO], ["a", "b"], Matching([None], ["p-a", "p-b"], True)),
        ([A], ["a", "b"], Matching(["p-a"], ["p-a"], False)),
        ([B, A], ["a", "b"], Matching(["p-b", "p-a"], ["p-b", "p-a"], False)),
        ([A], [], Matching([None], [], False)),
        ([A, A], ["a"], Matching(["p-a", None], ["p-a"], False)),
    ],
)
def test_entries_are_matched_with_interfaces(before, attached, matching):
    assert match(before, (), [interface(network) for network in attached]) == matching


@pytest.mark.parametrize(
    ("before", "after", "attached", "pending", "steps"),
    [
        pytest.param([A], [A], ["a"], [], [Keep(A, "p-a")], id="equal"),
        pytest.param([A], [B], ["a"], [], [Attach(B), Detach("p-a")], id="another network"),
        pytest.param([A, B], [B], ["a", "b"], [], [Keep(B, "p-b"), Detach("p-a")], id="one less"),
        pytest.param([A], [A, B], ["a"], [], [Keep(A, "p-a"), Attach(B)], id="one more"),
        pytest.param([A], [A, B], ["a", "b"], [], [Keep(A, "p-a"), Keep(B, "p-b")], id="served already"),
        pytest.param([A], [SUBNET], ["a"], [], [Reuse(SUBNET, "p-a")], id="in other words"),
        pytest.param([A, A], [A], ["a"], [], [Keep(A, "p-a")], id="a missing interface"),
        pytest.param([A], [A], ["a", "c"], [], [Keep(A, "p-a")], id="interfaces of others stay"),
        pytest.param([A], [A], ["a", "c"], ["p-c"], [Keep(A, "p-a"), Detach("p-c")], id="interrupted"),
        pytest.param([A], [A], ["a"], ["p-gone"], [Keep(A, "p-a")], id="interrupted and detached"),
        pytest.param([A], [GIVEN], ["a"], [], [Attach(GIVEN), Detach("p-a")], id="a port"),
        pytest.param([AUTO], [A], ["a", "b"], [], [Keep(A, "p-a"), Detach("p-b")], id="no selection"),
        pytest.param([AUTO], [], ["a"], [], [], id="the selection stays"),
        pytest.param([A], [AUTO], ["a"], [], [Attach({}), Detach("p-a")], id="a selection"),
        pytest.param([A], [], ["a"], [], [Attach({}), Detach("p-a")], id="no entries"),
        pytest.param([A], [NONE], ["a"], [], [Detach("p-a")], id="no interfaces"),
        pytest.param([AUTO], [NONE], ["a"], [], [Detach("p-a")], id="no selected interfaces"),
    ],
)
def test_each_entry_has_a_step(before, after, attached, pending, steps):
    interfaces = [interface(network) for network in attached]
    found = match(before, (), interfaces)
    assert plan(before, after, found, (), interfaces, pending) == steps


def test_reused_ports_are_own_ports_if_the_server_would_create_them():
    steps = [Keep(A, "p-a"), Reuse(B, "p-b"), Reuse(SUBNET, "p-s"), Attach(C)]
    assert reused_own_ports(steps) == [{"id": "p-s", "entry": SUBNET}]


def test_changes_are_those_of_the_steps():
    made = changes([A, B], [SUBNET, C], (), [interface("a"), interface("b")])
    assert made == (["p-b"], [C], [{"id": "p-a", "entry": SUBNET}])
