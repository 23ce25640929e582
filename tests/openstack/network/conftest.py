"""Objects that the tests of Neutron's types use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.clients.openstack.networking.network import NETWORKS
from tests.openstack.driver import Driver
from tests.openstack.network.ground import Ground

PUBLIC = "public"  # the external network


@pytest.fixture
def ground(driver: Driver) -> Ground:
    """Return a network with a subnet."""
    net = driver.create("OS::Neutron::Net")
    return Ground(net, driver.create("OS::Neutron::Subnet", {"network": net, "cidr": "10.81.0.0/24"}))


@pytest.fixture
def links(driver: Driver) -> Iterator[Driver]:
    """Return a driver for resources that have the physical id of another resource."""
    links = Driver(driver.cloud, driver.prefix, driver.project_id)
    yield links
    links.clean_up()


@pytest.fixture
def public(driver: Driver) -> str:
    """Return the id of the external network."""
    return driver.openstack.network.id_of(NETWORKS, PUBLIC)
