"""AWS::ElasticLoadBalancing::LoadBalancer, with prepared answers."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.openstack.networking.load_balancing import LISTENERS, LOAD_BALANCERS, POOLS
from orchestrator.errors import ProviderError, ProviderInUse
from orchestrator.resources.aws.elb.load_balancer import LoadBalancer
from orchestrator.resources.aws.elb.parts import monitor
from tests.unit.resources.openstack.neutron.operation import NAME, TOKEN
from tests.unit.resources.openstack.octavia.operation import LB, Operation

TAG = f"stack-orchestrator:{TOKEN}"
CHECK = {
    "Target": "HTTP:8080/up",
    "Interval": 30,
    "Timeout": 5,
    "HealthyThreshold": 3,
    "UnhealthyThreshold": 12,
}
ACTIVE = {"id": LB, "provisioning_status": "ACTIVE", "vip_address": "10.0.0.9"}


def balancer(action: str = "CREATE", **given: Any) -> Operation:
    listeners = [{"LoadBalancerPort": "80", "InstancePort": "8080", "Protocol": "HTTP"}]
    made = Operation(LoadBalancer, action, **{"AvailabilityZones": ["a"], "Listeners": listeners, **given})
    made.has(LOAD_BALANCERS, {**ACTIVE, "listeners": []})
    return made


def with_listener(made: Operation, pool_id: str | None = "p1") -> Operation:
    made.has(LOAD_BALANCERS, {**ACTIVE, "listeners": [{"id": "l1"}]})
    made.has(LISTENERS, {"id": "l1", "protocol_port": 80, "default_pool_id": pool_id})
    return made


def with_pool(made: Operation, *members: str, monitor_id: str | None = None) -> Operation:
    with_listener(made).has(POOLS, {"id": "p1", "healthmonitor_id": monitor_id})
    listed = [{"id": address, "address": address, "protocol_port": 8080} for address in members]
    made.script.answers("GET", r"/lbaas/pools/p1/members\?.*", {"members": listed})
    return made


def has_server(made: Operation, id_: str, *addresses: tuple[str, str]) -> None:
    shown = {"n": [{"addr": address, "OS-EXT-IPS:type": kind} for address, kind in addresses]}
    made.script.answers("GET", f"/servers/{id_}", {"server": {"id": id_, "addresses": shown}})


def step_of(made: Operation) -> list[Any]:
    """Return the bodies that the next step sends; nothing if there is no step."""
    made.script.answers("POST", "/lbaas/.*", {})
    made.script.answers("PUT", "/lbaas/.*", {})
    seen = made.observe(id_=LB)
    if not seen.step:
        assert seen.ready
        return []
    sent = len(made.script.requests)
    made.advance(seen.step, LB)
    return [request.body for request in made.script.requests[sent:] if request.changes]


def test_the_request_names_the_given_subnet():
    made = balancer(Subnets=["s1", "s2"], SecurityGroups=["g"])
    made.accepts("POST", LOAD_BALANCERS, LB)
    assert made.create().physical_id == "x1" or made.bodies("POST")
    (body,) = made.bodies("POST")
    values = {"name": NAME, "vip_subnet_id": "s1", "tags": [TAG], "vip_sg_ids": ["g"]}
    assert body == {"loadbalancer": values}


def test_without_a_subnet_that_of_the_first_instance_is_used():
    made = balancer(Instances=["i1"])
    made.accepts("POST", LOAD_BALANCERS)
    ports = {"ports": [{"fixed_ips": [{"subnet_id": "s3", "ip_address": "10.0.0.5"}]}]}
    made.script.answers("GET", r"/ports\?.*device_id=i1.*", ports)
    made.create()
    assert made.bodies("POST")[0]["loadbalancer"]["vip_subnet_id"] == "s3"


def test_without_instances_the_only_network_of_the_project_is_used():
    made = balancer()
    made.accepts("POST", LOAD_BALANCERS)
    made.script.answers("GET", r"/networks\?.*", {"networks": [{"id": "n", "subnets": ["s4"]}]})
    made.create()
    assert made.bodies("POST")[0]["loadbalancer"]["vip_subnet_id"] == "s4"
    both = {"networks": [{"id": "n", "subnets": ["s4"]}, {"id": "m", "subnets": ["s5"]}]}
    made.script.answers("GET", r"/networks\?.*", both)
    with pytest.raises(ProviderError, match="Subnets is required"):
        made.create()


def test_each_step_requests_the_first_difference():
    made = balancer(HealthCheck=CHECK, Instances=["i1", "i2", "missing"])
    has_server(made, "i1", ("198.51.100.7", "floating"), ("10.0.0.5", "fixed"))
    has_server(made, "i2", ("10.0.0.6", "fixed"))
    made.script.answers("GET", "/servers/missing", {}, status=404)
    listener = {"loadbalancer_id": LB, "name": "80", "protocol": "HTTP", "protocol_port": 80}
    assert step_of(made) == [{"listener": listener}]
    pool = {"listener_id": "l1", "name": "80", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    assert step_of(with_listener(made, None)) == [{"pool": pool}]
    check = {
        "pool_id": "p1",
        "type": "HTTP",
        "delay": 30,
        "timeout": 5,
        "max_retries": 3,
        "max_retries_down": 10,
        "url_path": "/up",
    }
    assert step_of(with_pool(made)) == [{"healthmonitor": check}]
    members = [{"address": address, "protocol_port": 8080} for address in ("10.0.0.5", "10.0.0.6")]
    assert step_of(with_pool(made, "10.0.0.5", monitor_id="h1")) == [{"members": members}]
    assert step_of(with_pool(made, "10.0.0.5", "10.0.0.6", monitor_id="h1")) == []


def test_a_step_waits_while_the_load_balancer_is_being_changed():
    made = balancer()
    made.refuses("POST", "/lbaas/.*", f"Load Balancer {LB} is immutable and cannot be updated.")
    made.has(LOAD_BALANCERS, {**ACTIVE, "provisioning_status": "PENDING_UPDATE"})
    assert not made.observe(id_=LB).ready
    with pytest.raises(ProviderInUse):
        made.advance("configure", LB)


def test_states_and_attributes():
    made = with_pool(balancer("CHECK"))
    seen = made.observe(id_=LB)
    assert seen.ready
    assert seen.reference_id == "a"
    assert seen.attributes["DNSName"] == "10.0.0.9"
    assert seen.attributes["CanonicalHostedZoneName"] == ""
    made.has(LOAD_BALANCERS, {**ACTIVE, "provisioning_status": "ERROR"})
    assert made.observe(id_=LB).replaceable
    made.has(LOAD_BALANCERS, {**ACTIVE, "provisioning_status": "DELETED"})
    assert not made.observe("DELETE", id_=LB).exists


def test_a_delete_includes_the_parts():
    made = balancer("DELETE")
    made.script.answers("DELETE", rf"/lbaas/loadbalancers/{LB}\?cascade=true", status=204)
    made.delete(LB)
    assert len(made.script.sent("DELETE")) == 1


def test_the_load_balancer_of_a_lost_response_is_found():
    made = balancer()
    made.lists(LOAD_BALANCERS, {"id": LB, "tags": [TAG]}, {"id": "other", "tags": []})
    assert made.type.find(made.ctx, TOKEN) == [LB]


def test_security_groups_are_updated():
    made = balancer(SecurityGroups=["g"])
    made.accepts("PUT", LOAD_BALANCERS, LB)
    made.update("SecurityGroups", "Instances", id_=LB)
    assert made.bodies("PUT") == [{"loadbalancer": {"vip_sg_ids": ["g"]}}]


def test_the_interval_of_a_check_is_longer_than_its_timeout():
    assert balancer(HealthCheck={**CHECK, "Interval": 3}).faults() == ["Interval must be larger than Timeout"]
    assert balancer(HealthCheck=CHECK).faults() == []


@pytest.mark.parametrize(
    ("target", "kind", "path"),
    [
        ("TCP:80", "TCP", None),
        ("SSL:443", "TCP", None),
        ("HTTP:80", "HTTP", "/"),
        ("http:80/a", "HTTP", "/a"),
    ],
)
def test_targets_of_checks(target: str, kind: str, path: str | None):
    made = monitor({**CHECK, "Target": target})
    assert (made["type"], made.get("url_path")) == (kind, path)
