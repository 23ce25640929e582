"""Load balancers and their parts, with prepared answers."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.openstack.networking.load_balancing import (
    HEALTH_MONITORS,
    L7_POLICIES,
    L7_RULES,
    LISTENERS,
    LOAD_BALANCERS,
    MEMBERS,
    POOLS,
)
from orchestrator.errors import (
    ProviderBusy,
    ProviderChanging,
    ProviderError,
    ProviderInUse,
    ProviderQuotaExceeded,
)
from orchestrator.resources.base import ResourceType
from orchestrator.resources.openstack.octavia.health_monitor import HealthMonitor
from orchestrator.resources.openstack.octavia.l7_policy import L7Policy
from orchestrator.resources.openstack.octavia.l7_rule import L7Rule
from orchestrator.resources.openstack.octavia.listener import Listener
from orchestrator.resources.openstack.octavia.load_balancer import LoadBalancer
from orchestrator.resources.openstack.octavia.pool import Pool
from orchestrator.resources.openstack.octavia.pool_member import PoolMember
from tests.unit.resources.openstack.neutron.operation import NAME, TOKEN
from tests.unit.resources.openstack.octavia.operation import LB, Operation

TAG = f"stack-orchestrator:{TOKEN}"
MEMBER = {"pool": "p", "address": "10.0.0.5", "protocol_port": 80}


def listener(action: str = "CREATE", **given: Any) -> Operation:
    return Operation(
        Listener, action, **{"loadbalancer": LB, "protocol": "HTTP", "protocol_port": 80, **given}
    )


def test_the_request_of_a_load_balancer():
    balancer = Operation(
        LoadBalancer,
        vip_subnet="s",
        vip_address="10.0.0.9",
        flavor="f",
        availability_zone="az",
        tenant_id="t",
    )
    balancer.accepts("POST", LOAD_BALANCERS)
    assert balancer.create().physical_id == "x1"
    assert balancer.bodies("POST") == [
        {
            "loadbalancer": {
                "name": NAME,
                "description": "",
                "admin_state_up": True,
                "vip_subnet_id": "s",
                "vip_address": "10.0.0.9",
                "flavor_id": "f",
                "availability_zone": "az",
                "project_id": "t",
                "tags": [TAG],
            }
        }
    ]


@pytest.mark.parametrize(
    ("kind", "given", "collection", "parent", "sent"),
    [
        (
            Listener,
            {
                "loadbalancer": LB,
                "protocol": "TERMINATED_HTTPS",
                "protocol_port": 443,
                "default_pool": "p",
                "default_tls_container_ref": "https://k/c",
                "sni_container_refs": ["https://k/d"],
                "allowed_cidrs": ["10.0.0.0/8"],
            },
            LISTENERS,
            "",
            {
                "loadbalancer_id": LB,
                "protocol": "TERMINATED_HTTPS",
                "protocol_port": 443,
                "default_pool_id": "p",
                "default_tls_container_ref": "https://k/c",
                "sni_container_refs": ["https://k/d"],
                "allowed_cidrs": ["10.0.0.0/8"],
                "connection_limit": -1,
            },
        ),
        (
            Pool,
            {
                "listener": "l",
                "protocol": "HTTP",
                "lb_algorithm": "ROUND_ROBIN",
                "session_persistence": {"type": "HTTP_COOKIE"},
            },
            POOLS,
            "",
            {
                "listener_id": "l",
                "protocol": "HTTP",
                "lb_algorithm": "ROUND_ROBIN",
                "session_persistence": {"type": "HTTP_COOKIE"},
                "tls_enabled": False,
            },
        ),
        (
            PoolMember,
            {**MEMBER, "subnet": "s", "tags": ["a"]},
            MEMBERS,
            "p",
            {"address": "10.0.0.5", "protocol_port": 80, "subnet_id": "s", "weight": 1, "tags": ["a", TAG]},
        ),
        (
            HealthMonitor,
            {"pool": "p", "type": "HTTP", "delay": 3, "timeout": 2, "max_retries": 4, "url_path": "/up"},
            HEALTH_MONITORS,
            "",
            {"pool_id": "p", "type": "HTTP", "delay": 3, "timeout": 2, "max_retries": 4, "url_path": "/up"},
        ),
        (
            L7Policy,
            {"listener": "l", "action": "REDIRECT_TO_POOL", "redirect_pool": "p", "position": 2},
            L7_POLICIES,
            "",
            {"listener_id": "l", "action": "REDIRECT_TO_POOL", "redirect_pool_id": "p", "position": 2},
        ),
        (
            L7Rule,
            {"l7policy": "y", "type": "PATH", "compare_type": "STARTS_WITH", "value": "/api"},
            L7_RULES,
            "y",
            {"type": "PATH", "compare_type": "STARTS_WITH", "value": "/api", "invert": False},
        ),
    ],
)
def test_the_requests_of_the_parts(
    kind: type[ResourceType], given: dict[str, Any], collection: Any, parent: str, sent: dict[str, Any]
):
    part = Operation(kind, **given)
    part.accepts("POST", collection, parent=parent)
    assert part.create().physical_id == "x1"
    (body,) = part.bodies("POST")
    named = {"name": NAME, "description": ""} if kind in (Listener, Pool) else {}
    named |= {"name": NAME} if kind is L7Policy else {}
    expected = {"admin_state_up": True, "tags": [TAG], **named, **sent}
    assert body == {collection.singular: expected}


@pytest.mark.parametrize("action", ["CREATE", "UPDATE", "DELETE"])
def test_a_change_waits_while_the_load_balancer_is_being_changed(action: str):
    part = listener(action)
    part.is_immutable("PENDING_UPDATE")
    with pytest.raises(ProviderInUse, match="is immutable") as caught:
        {"CREATE": part.create, "UPDATE": lambda: part.update("name"), "DELETE": part.delete}[action]()
    assert caught.value.retry_after == 1.0


@pytest.mark.parametrize("action", ["CREATE", "UPDATE", "DELETE"])
def test_a_change_fails_if_the_load_balancer_is_in_error(action: str):
    part = listener(action)
    part.is_immutable("ERROR")
    with pytest.raises(ProviderError, match="load balancer is ERROR") as caught:
        {"CREATE": part.create, "UPDATE": lambda: part.update("name"), "DELETE": part.delete}[action]()
    assert not isinstance(caught.value, ProviderBusy)


def test_a_load_balancer_that_is_being_changed_waits_for_its_own_change():
    balancer = Operation(LoadBalancer, "DELETE", vip_subnet="s")
    balancer.refuses("DELETE", "/lbaas/.*", f"Invalid state PENDING_UPDATE of loadbalancer resource {LB}")
    balancer.has(LOAD_BALANCERS, {"id": LB, "provisioning_status": "PENDING_UPDATE"})
    with pytest.raises(ProviderChanging):
        balancer.delete(LB)


def test_another_conflict_is_repeated():
    part = Operation(PoolMember, **MEMBER)
    part.refuses("POST", "/lbaas/.*", "Another member on this pool is already using ip 10.0.0.5")
    with pytest.raises(ProviderInUse, match="already using"):
        part.create()
    part.refuses("DELETE", "/lbaas/.*", "Pool p is in use by L7 policy y")
    with pytest.raises(ProviderInUse, match="in use by L7 policy") as caught:
        part.delete()
    assert not isinstance(caught.value, ProviderChanging)


def test_a_quota_is_awaited_and_an_unsupported_option_is_final():
    balancer = Operation(LoadBalancer, vip_subnet="s")
    balancer.refuses("POST", "/lbaas/.*", "Quota has been met for resources: Load Balancer", 403)
    with pytest.raises(ProviderQuotaExceeded):
        balancer.create()
    balancer.refuses("POST", "/lbaas/.*", "Provider 'ovn' does not support a requested option: x", 501)
    with pytest.raises(ProviderError, match="does not support") as caught:
        balancer.create()
    assert not isinstance(caught.value, ProviderBusy)


@pytest.mark.parametrize(
    ("action", "status", "expected"),
    [
        ("CREATE", "ACTIVE", (True, True, "")),
        ("CREATE", "PENDING_CREATE", (True, False, "")),
        ("UPDATE", "PENDING_UPDATE", (True, False, "")),
        ("CREATE", "ERROR", (True, True, 'Went to status ERROR due to "Unknown"')),
        ("DELETE", "PENDING_DELETE", (True, False, "")),
        ("DELETE", "ACTIVE", (True, False, "")),
        ("DELETE", "DELETED", (False, True, "")),
        ("DELETE", "ERROR", (True, True, 'Went to status ERROR due to "Unknown"')),
    ],
)
def test_the_states(action: str, status: str, expected: tuple[bool, bool, str]):
    part = listener(action)
    part.has(LISTENERS, {"id": "x1", "provisioning_status": status})
    seen = part.observe()
    assert (seen.exists, seen.ready, seen.error) == expected


def test_a_member_of_a_missing_pool_is_absent():
    part = Operation(PoolMember, **MEMBER)
    part.refuses("GET", "/lbaas/.*", "Pool p not found.", 404)
    part.refuses("DELETE", "/lbaas/.*", "Pool p not found.", 404)
    assert not part.observe().exists
    part.delete()


def test_the_object_of_a_lost_response_is_found_by_its_tag():
    part = listener()
    part.lists(LISTENERS, {"id": "a", "tags": [TAG]}, {"id": "b", "tags": ["x"]})
    assert part.type.find(part.ctx, TOKEN) == ["a"]
    assert part.script.requests[0].query["tags"] == TAG


def test_a_member_is_found_by_address_port_and_tag():
    part = Operation(PoolMember, **MEMBER)
    place = {"address": "10.0.0.5", "protocol_port": 80}
    part.lists(
        MEMBERS,
        {"id": "a", "tags": [TAG], **place},
        {"id": "b", "tags": [], **place},
        {"id": "c", "tags": [TAG], **place, "protocol_port": 81},
        parent="p",
    )
    assert part.type.find(part.ctx, TOKEN) == ["a"]


def test_an_update_sends_what_changed():
    pool = Operation(Pool, loadbalancer=LB, protocol="HTTP", lb_algorithm="SOURCE_IP")
    pool.accepts("PUT", POOLS)
    pool.update("lb_algorithm", "session_persistence", "name")
    sent = {"lb_algorithm": "SOURCE_IP", "session_persistence": None, "name": NAME}
    assert pool.bodies("PUT") == [{"pool": sent}]


def test_the_tags_of_a_member_keep_the_token():
    part = Operation(PoolMember, **MEMBER, tags=["b"])
    part.has(MEMBERS, {"id": "x1", "tags": ["a", TAG]}, parent="p")
    part.accepts("PUT", MEMBERS, parent="p")
    part.update("tags")
    assert part.bodies("PUT") == [{"member": {"tags": ["b", TAG]}}]


def test_the_monitor_of_a_member_is_changed_in_place():
    part = PoolMember()
    assert part.change({}, {}, frozenset({"monitor_port", "weight"})) == "update"
    assert part.change({}, {}, frozenset({"monitor_port"})) == "update"
    assert part.change({}, {}, frozenset({"monitor_port", "address"})) == "replace"
    assert part.change({}, {}, frozenset()) == "keep"


def test_observed_properties_are_those_of_the_template_without_the_token():
    pool = Operation(
        Pool,
        loadbalancer=LB,
        protocol="HTTP",
        lb_algorithm="SOURCE_IP",
        session_persistence={"type": "APP_COOKIE", "cookie_name": "c"},
    )
    stored = {"type": "APP_COOKIE", "cookie_name": "c", "persistence_timeout": None}
    actual = {"id": "x1", "name": "n", "provisioning_status": "ACTIVE", "lb_algorithm": "ROUND_ROBIN"}
    pool.has(POOLS, {**actual, "session_persistence": stored})
    assert pool.observe().properties == {
        "lb_algorithm": "ROUND_ROBIN",
        "session_persistence": {"type": "APP_COOKIE", "cookie_name": "c"},
    }


def test_show_does_not_contain_the_token():
    part = listener()
    part.has(LISTENERS, {"id": "x1", "tags": [TAG, "own"], "default_pool_id": "p"})
    shown = part.type.read_attributes(part.ctx, "x1", frozenset({"show", "default_pool_id"}))
    assert shown == {
        "show": {"id": "x1", "tags": ["own"], "default_pool_id": "p"},
        "default_pool_id": "p",
    }


def test_lists_are_compared_without_their_order():
    assert Listener().equal("allowed_cidrs", ["a", "b"], ["b", "a"])
    assert Listener().equal("sni_container_refs", None, [])
    assert not Pool().equal("session_persistence", {"type": "SOURCE_IP"}, None)
    assert Pool().equal(
        "session_persistence", {"type": "SOURCE_IP", "cookie_name": None}, {"type": "SOURCE_IP"}
    )
