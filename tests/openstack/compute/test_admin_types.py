"""Flavors, server groups, aggregates and quotas on a cloud."""

from __future__ import annotations

import pytest

from tests.openstack.driver import Driver


@pytest.fixture
def projects(driver):
    """Return a driver for projects: the quotas of a project have its id."""
    other = Driver(driver.cloud, driver.prefix, driver.project_id)
    yield other
    driver.clean_up()
    other.clean_up()


def test_a_private_flavor_is_created_found_and_updated(driver):
    given = {"ram": 64, "vcpus": 1, "disk": 1, "is_public": False, "extra_specs": {"a": "1"}}
    flavor = driver.create("OS::Nova::Flavor", {**given, "tenants": [driver.project_id]})
    assert driver.find(flavor) == [flavor]
    assert driver.attributes(flavor)["extra_specs"] == {"a": "1"}
    driver.update(flavor, extra_specs={"b": "2"}, tenants=[])
    assert driver.drift(flavor) == {}
    assert driver.openstack.compute.get(f"/flavors/{flavor}/os-flavor-access") == {"flavor_access": []}
    driver.delete(flavor)


def test_a_server_group_is_created_and_found(member):
    group = member.create("OS::Nova::ServerGroup", {"policies": ["affinity"]})
    assert member.find(group) == [group]
    ruled = member.create("OS::Nova::ServerGroup", {"rules": {"max_server_per_host": 2}})
    assert member.attributes(ruled, "show")["show"]["name"] == member.resources[ruled].ctx.physical_name


def test_an_aggregate_is_updated(driver):
    given = {"name": driver.name(), "availability_zone": driver.name(), "metadata": {"ssd": "true"}}
    aggregate = driver.create("OS::Nova::HostAggregate", given)
    assert driver.find(aggregate) == [aggregate]
    driver.update(aggregate, metadata={"gpu": "true"}, name=driver.name())
    assert driver.drift(aggregate) == {}


def test_quotas_are_set_and_reset(driver, projects):
    project = projects.create("OS::Keystone::Project", {"name": driver.name()})
    quota = driver.create("OS::Nova::Quota", {"project": project, "cores": 3})
    assert driver.find(quota) == [project]
    driver.update(quota, cores=4, instances=-1)
    assert driver.drift(quota) == {}
