"""Calls at Octavia: load balancers and their parts, flavors and quotas.

Recorded at its API with the no-op provider, without Keystone's middleware (docs/openstack-types.md).
"""

from __future__ import annotations

from typing import Any, Final

from parity.calls import Call
from parity.neutron_requests import NO_ID

ROOT: Final = "/v2/lbaas"
ACTIVE: Final = ("ACTIVE",)


def _call(method: str, path: str, body: Any = None, **options: Any) -> Call:
    return Call("octavia", method, f"{ROOT}{path}", body, **options)


def _post(path: str, key: str, values: dict[str, Any], **options: Any) -> Call:
    return _call("POST", path, {key: values}, **options)


def _put(path: str, key: str, values: dict[str, Any], **options: Any) -> Call:
    return _call("PUT", path, {key: values}, **options)


def _active(path: str, key: str) -> Call:
    return _call("GET", path, until=(f"{key}.provisioning_status", ACTIVE))


def _gone(path: str) -> Call:
    return _call("GET", path, until_status=404)


BALANCER: Final = {"name": "h5-lb", "vip_subnet_id": "{subnet}", "tags": ["a"]}
LISTENER: Final = {"name": "h5-l", "loadbalancer_id": "{lb}", "protocol": "HTTP", "protocol_port": 80}
POOL: Final = {"name": "h5-p", "loadbalancer_id": "{lb}", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
MEMBER: Final = {"name": "h5-m", "address": "10.10.1.5", "protocol_port": 8080}
MONITOR: Final = {"pool_id": "{p}", "type": "HTTP", "delay": 5, "timeout": 3, "max_retries": 2}
POLICY: Final = {"name": "h5-y", "listener_id": "{l}", "action": "REJECT"}
RULE: Final = {"type": "PATH", "compare_type": "STARTS_WITH", "value": "/a"}
PROFILE: Final = {"name": "h5-fp", "flavor_data": '{"loadbalancer_topology": "SINGLE"}'}

CALLS: Final = (
    Call("octavia", "GET", "/v2"),
    Call(
        "neutron", "GET", "/v2.0/subnets?name=private-subnet", save={"subnet": "subnets.0.id"}, compare=False
    ),
    # load balancers
    _post("/loadbalancers", "loadbalancer", BALANCER, save={"lb": "loadbalancer.id"}),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _post("/loadbalancers", "loadbalancer", {"name": "h5-none"}),
    _post("/loadbalancers", "loadbalancer", {**BALANCER, "bogus": 1}),
    _post("/loadbalancers", "loadbalancer", {**BALANCER, "provider": "bogus"}),
    _post("/loadbalancers", "loadbalancer", {**BALANCER, "flavor_id": NO_ID}),
    _post("/loadbalancers", "loadbalancer", {**BALANCER, "availability_zone": "bogus"}),
    _post("/loadbalancers", "loadbalancer", {**BALANCER, "name": 5}),
    _call("GET", "/loadbalancers?name=h5-lb"),
    _call("GET", "/loadbalancers?tags=a"),
    _call("GET", "/loadbalancers?tags=b"),
    _call("GET", "/loadbalancers?limit=1&name=h5-lb"),
    _call("GET", "/loadbalancers?name=h5-lb&fields=name"),
    _call("GET", f"/loadbalancers/{NO_ID}"),
    _put("/loadbalancers/{lb}", "loadbalancer", {"description": "d", "tags": ["b"]}),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _put("/loadbalancers/{lb}", "loadbalancer", {"vip_address": "10.0.0.1"}),
    _put(f"/loadbalancers/{NO_ID}", "loadbalancer", {"name": "x"}),
    # pools and their parts
    _post("/pools", "pool", POOL, save={"p": "pool.id"}),
    _active("/pools/{p}", "pool"),
    _post("/pools", "pool", {**POOL, "loadbalancer_id": None}),
    _post("/pools", "pool", {**POOL, "loadbalancer_id": NO_ID}),
    _post("/pools", "pool", {**POOL, "lb_algorithm": "BOGUS"}),
    _post("/pools", "pool", {"name": "h5-none"}),
    _put("/pools/{p}", "pool", {"session_persistence": {"type": "HTTP_COOKIE"}, "lb_algorithm": "SOURCE_IP"}),
    _active("/pools/{p}", "pool"),
    _put("/pools/{p}", "pool", {"session_persistence": {"type": "APP_COOKIE"}}),
    _put("/pools/{p}", "pool", {"session_persistence": None}),
    _active("/pools/{p}", "pool"),
    _post("/pools/{p}/members", "member", MEMBER, save={"m": "member.id"}),
    _active("/pools/{p}/members/{m}", "member"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _post("/pools/{p}/members", "member", MEMBER),
    _post("/pools/{p}/members", "member", {**MEMBER, "address": "bogus"}),
    _post("/pools/{p}/members", "member", {**MEMBER, "protocol_port": 0}),
    _post("/pools/{p}/members", "member", {**MEMBER, "weight": 300}),
    _post(f"/pools/{NO_ID}/members", "member", MEMBER),
    _call("GET", "/pools/{p}/members?address=10.10.1.5&protocol_port=8080"),
    _call("GET", "/pools/{p}/members?protocol_port=81"),
    _put("/pools/{p}/members/{m}", "member", {"weight": 0, "monitor_port": 9, "tags": ["x"]}),
    _active("/pools/{p}/members/{m}", "member"),
    _put("/pools/{p}/members/{m}", "member", {"address": "10.10.1.6"}),
    _call("PUT", "/pools/{p}/members", {"members": [{"address": "10.10.1.7", "protocol_port": 80}]}),
    _active("/pools/{p}", "pool"),
    _call("GET", "/pools/{p}/members"),
    _post("/healthmonitors", "healthmonitor", MONITOR, save={"h": "healthmonitor.id"}),
    _active("/healthmonitors/{h}", "healthmonitor"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _post("/healthmonitors", "healthmonitor", MONITOR),
    _post("/healthmonitors", "healthmonitor", {**MONITOR, "pool_id": NO_ID}),
    _put("/healthmonitors/{h}", "healthmonitor", {"url_path": "/up", "expected_codes": "200-204"}),
    _active("/healthmonitors/{h}", "healthmonitor"),
    _put("/healthmonitors/{h}", "healthmonitor", {"url_path": None, "expected_codes": None}),
    _active("/healthmonitors/{h}", "healthmonitor"),
    # listeners, policies and rules
    _post("/listeners", "listener", LISTENER, save={"l": "listener.id"}),
    _active("/listeners/{l}", "listener"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _post("/listeners", "listener", LISTENER),
    _post("/listeners", "listener", {**LISTENER, "protocol": "TERMINATED_HTTPS", "protocol_port": 443}),
    _post("/listeners", "listener", {**LISTENER, "loadbalancer_id": NO_ID, "protocol_port": 81}),
    _post("/listeners", "listener", {**LISTENER, "default_pool_id": NO_ID, "protocol_port": 81}),
    _put("/listeners/{l}", "listener", {"default_pool_id": "{p}", "allowed_cidrs": ["10.0.0.0/8"]}),
    _active("/listeners/{l}", "listener"),
    _post("/pools", "pool", {**POOL, "loadbalancer_id": None, "listener_id": "{l}"}),
    _call("DELETE", "/loadbalancers/{lb}"),
    _post("/l7policies", "l7policy", POLICY, save={"y": "l7policy.id"}),
    _active("/l7policies/{y}", "l7policy"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _post("/l7policies", "l7policy", {**POLICY, "action": "REDIRECT_TO_URL"}),
    _post("/l7policies", "l7policy", {**POLICY, "listener_id": NO_ID}),
    _put("/l7policies/{y}", "l7policy", {"action": "REDIRECT_TO_POOL", "redirect_pool_id": "{p}"}),
    _active("/l7policies/{y}", "l7policy"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _call("DELETE", "/pools/{p}"),
    _put("/l7policies/{y}", "l7policy", {"action": "REDIRECT_TO_URL", "redirect_url": "https://a.example/"}),
    _active("/l7policies/{y}", "l7policy"),
    _post("/l7policies/{y}/rules", "rule", RULE, save={"r": "rule.id"}),
    _active("/l7policies/{y}/rules/{r}", "rule"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _post("/l7policies/{y}/rules", "rule", {**RULE, "type": "HEADER"}),
    _put("/l7policies/{y}/rules/{r}", "rule", {"invert": True}),
    _active("/l7policies/{y}/rules/{r}", "rule"),
    _call("GET", "/l7policies/{y}/rules"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    # deletes
    _call("DELETE", "/l7policies/{y}"),
    _gone("/l7policies/{y}"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _call("DELETE", "/healthmonitors/{h}"),
    _gone("/healthmonitors/{h}"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _call("DELETE", "/pools/{p}"),
    _gone("/pools/{p}"),
    _call("GET", "/listeners/{l}"),
    _call("DELETE", "/listeners/{l}"),
    _gone("/listeners/{l}"),
    _call("DELETE", "/listeners/{l}"),
    _active("/loadbalancers/{lb}", "loadbalancer"),
    _call("DELETE", "/loadbalancers/{lb}"),
    _gone("/loadbalancers/{lb}"),
    # flavors, zones, quotas
    _post(
        "/flavorprofiles", "flavorprofile", {"name": "h5-fp", "provider_name": "bogus", "flavor_data": "{}"}
    ),
    _call("GET", "/providers", save={"provider": "providers.0.name"}, compare=False),
    _post(
        "/flavorprofiles",
        "flavorprofile",
        {
            "name": "h5-fp",
            "provider_name": "{provider}",
            "flavor_data": '{"loadbalancer_topology": "SINGLE"}',
        },
        save={"fp": "flavorprofile.id"},
    ),
    _post("/flavors", "flavor", {"name": "h5-f", "flavor_profile_id": "{fp}"}, save={"f": "flavor.id"}),
    _post("/flavors", "flavor", {"name": "h5-f", "flavor_profile_id": "{fp}"}),
    _call("GET", "/flavors?name=h5-f"),
    _put("/flavors/{f}", "flavor", {"enabled": False, "description": "d"}),
    _call("GET", "/flavors/{f}"),
    _put("/flavorprofiles/{fp}", "flavorprofile", {"flavor_data": "{}"}),
    _call("DELETE", "/flavorprofiles/{fp}"),
    _call("DELETE", "/flavors/{f}"),
    _call("GET", "/flavors/{f}"),
    _call("DELETE", "/flavorprofiles/{fp}"),
    _call("GET", f"/flavors/{NO_ID}"),
    _call("GET", "/quotas/{project}"),
    _put("/quotas/{project}", "quota", {"pool": 7}),
    _call("GET", "/quotas/{project}"),
    _call("DELETE", "/quotas/{project}"),
    _call("GET", "/quotas/{project}"),
)
