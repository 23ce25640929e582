"""Objects in lists, as the continuous observation reads them: equal to single objects, and in sync."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.engine.observation.differences import Recorded
from orchestrator.engine.observation.drift import IN_SYNC, Difference
from orchestrator.engine.observation.judgement import judge
from tests.openstack.driver import Driver, Resource


def listed(driver: Driver, resource: Resource) -> dict[str, Any]:
    ctx = driver.context("CHECK", listed={})
    found: dict[str, Any] = driver.request(lambda: dict(resource.type.list_objects(ctx)))
    return found


def observed(driver: Driver, resource: Resource, values: dict[str, Any]) -> Any:
    ctx = replace(resource.ctx, action="CHECK", listed=values)
    return driver.request(lambda: resource.type.observe(ctx, resource.physical_id))


def recorded(resource: Resource) -> Recorded:
    return Recorded(resource.type, resource.ctx.properties, resource.type.chosen(resource.ctx))


def test_a_listed_object_is_observed_like_a_single_one_and_in_step(driver: Driver):
    net = driver.create("OS::Neutron::Net", {"tags": ["b", "a"]})
    subnet = driver.create("OS::Neutron::Subnet", {"network": net, "cidr": "10.77.0.0/24"})
    driver.create(
        "OS::Neutron::SecurityGroup",
        {"rules": [{"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}]},
    )
    driver.create("OS::Neutron::Router", {})
    port = driver.create("OS::Neutron::Port", {"network": net, "fixed_ips": [{"subnet": subnet}]})
    driver.create("OS::Cinder::Volume", {"size": 1, "metadata": {"a": "1"}})
    server = {"flavor": "m1.nano", "image": "cirros", "networks": [{"port": port}], "metadata": {"a": 1}}
    driver.create("OS::Nova::Server", server)
    _require_equal_in_lists(driver)


def test_the_parts_of_a_load_balancer_are_observed_in_lists(driver: Driver, octavia: None):
    net = driver.create("OS::Neutron::Net", {})
    subnet = driver.create("OS::Neutron::Subnet", {"network": net, "cidr": "10.78.0.0/24"})
    balancer = driver.create("OS::Octavia::LoadBalancer", {"vip_subnet": subnet})
    http = {"loadbalancer": balancer, "protocol": "HTTP"}
    pool = driver.create("OS::Octavia::Pool", {**http, "lb_algorithm": "ROUND_ROBIN"})
    listener = driver.create("OS::Octavia::Listener", {**http, "protocol_port": 80, "default_pool": pool})
    monitor = {"pool": pool, "type": "TCP", "delay": 3, "max_retries": 3, "timeout": 2}
    driver.create("OS::Octavia::HealthMonitor", monitor)
    driver.create("OS::Octavia::L7Policy", {"listener": listener, "action": "REJECT"})
    _require_equal_in_lists(driver)


def test_objects_of_amazons_types_are_observed_in_the_lists_of_their_targets(driver: Driver):
    vpc = driver.create("AWS::EC2::VPC", {"CidrBlock": "10.79.0.0/16"})
    subnet = driver.create("AWS::EC2::Subnet", {"VpcId": vpc, "CidrBlock": "10.79.1.0/24"})
    rule = {"IpProtocol": "tcp", "FromPort": "22", "ToPort": "22", "CidrIp": "0.0.0.0/0"}
    group = driver.create(
        "AWS::EC2::SecurityGroup", {"GroupDescription": "d", "SecurityGroupIngress": [rule]}
    )
    tags = [{"Key": "a", "Value": "1"}]
    driver.create("AWS::EC2::Volume", {"Size": 1, "AvailabilityZone": "nova", "Tags": tags})
    port = driver.create("AWS::EC2::NetworkInterface", {"SubnetId": subnet, "GroupSet": [group]})
    instance = {"ImageId": "cirros", "InstanceType": "m1.nano", "NetworkInterfaces": [port], "Tags": tags}
    server = driver.create("AWS::EC2::Instance", instance)
    _require_equal_in_lists(driver)
    change = {"metadata": {"a": "2"}}
    driver.request(lambda: driver.openstack.compute.post(f"/servers/{server}/metadata", change))
    resource = driver.resources[server]
    drift = judge(recorded(resource), observed(driver, resource, listed(driver, resource)))
    assert drift.differences == (Difference("Tags", tags, [{"Key": "a", "Value": "2"}]),)


def _require_equal_in_lists(driver: Driver) -> None:
    """All resources of the test are in lists, observed as by a request, and in sync."""
    for physical_id, resource in driver.resources.items():
        assert resource.type.lists, resource.type.name
        values = listed(driver, resource)
        assert physical_id in values, resource.type.name
        in_list, single = (observed(driver, resource, found) for found in (values, {}))
        assert in_list == single, resource.type.name
        assert judge(recorded(resource), in_list) == IN_SYNC, resource.type.name


def test_a_renamed_object_is_drift_although_the_template_names_none(driver: Driver):
    net = driver.create("OS::Neutron::Net", {})
    resource = driver.resources[net]
    driver.request(lambda: driver.openstack.network.put(f"/networks/{net}", {"network": {"name": "renamed"}}))
    drift = judge(recorded(resource), observed(driver, resource, listed(driver, resource)))
    assert drift.differences == (Difference("name", resource.ctx.physical_name, "renamed"),)


def test_an_object_that_is_not_listed_is_requested_by_its_id(driver: Driver):
    net = driver.create("OS::Neutron::Net", {})
    resource = driver.resources[net]
    assert observed(driver, resource, {}).exists
    missing = replace(resource, physical_id="7a1d2d6e-0000-4000-8000-000000000000")
    assert not observed(driver, missing, {}).exists


def test_types_whose_observation_needs_more_than_the_object_have_no_lists():
    from orchestrator.resources.registry import load_registry

    types = load_registry()
    for name in ("OS::Neutron::RouterInterface", "OS::Neutron::QoSDscpMarkingRule", "OS::Neutron::Quota"):
        assert not types[name].lists
