"""Failures of the simulated Octavia: lost answers, objects in error, a load balancer that is busy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.clients.openstack.networking.load_balancing import MEMBERS
from orchestrator.errors import ProviderBusy, ProviderError, ProviderInUse, ProviderSilent
from simulated_openstack.cloud import SimulatedCloud
from simulated_openstack.environment import Delays
from tests.openstack.conftest import DIRECTORY
from tests.openstack.driver import Driver, Resource

pytestmark = pytest.mark.skipif(bool(DIRECTORY), reason="faults are those of the simulated cloud")
OCTAVIA = "OS::Octavia::"


@pytest.fixture
def faults(simulated_cloud: SimulatedCloud) -> Iterator[SimulatedCloud]:
    """Return the simulated cloud; its faults and delays end with the test."""
    yield simulated_cloud
    simulated_cloud.faults.set({})
    simulated_cloud.delays = Delays()


@pytest.fixture
def pool(driver: Driver, faults: SimulatedCloud) -> str:
    """Return the id of a pool."""
    balancer = driver.create(f"{OCTAVIA}LoadBalancer", {"vip_subnet": "private-subnet"})
    given = {"loadbalancer": balancer, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    return driver.create(f"{OCTAVIA}Pool", given)


def member(driver: Driver, pool_id: str) -> Resource:
    """Return a member that is not created yet."""
    given: dict[str, Any] = {"pool": pool_id, "address": "10.10.3.3", "protocol_port": 80}
    made = driver.prepare(f"{OCTAVIA}PoolMember", given)
    made.start("CREATE")
    return made


def create(made: Resource) -> str:
    """Call the verb once."""
    return made.type.create(made.now, made.now.properties).physical_id


def test_the_member_of_a_lost_answer_is_found(driver: Driver, pool: str, faults: SimulatedCloud) -> None:
    rule = {"service": "octavia", "method": "POST", "path": "/members$", "drop": True, "after": True}
    faults.faults.set({"api": [{**rule, "times": 1}]})
    made = member(driver, pool)
    with pytest.raises(ProviderSilent):
        create(made)
    (found,) = made.type.find(made.now, made.now.token) or ()
    driver.adopt(made, found)
    driver.settle(made)
    assert [item["id"] for item in driver.openstack.load_balancing.search(MEMBERS, parent=pool)] == [found]


def test_a_member_waits_for_the_change_of_another(driver: Driver, pool: str, faults: SimulatedCloud) -> None:
    faults.delays = Delays(load_balancer_change=0.4)
    first, second = member(driver, pool), member(driver, pool)
    second.ctx.properties["protocol_port"] = 81  # type: ignore[index]
    driver.adopt(first, create(first))
    with pytest.raises(ProviderInUse, match="is immutable and cannot be updated"):
        create(second)
    driver.adopt(second, driver.request(lambda: create(second)))
    driver.settle(second)


def test_parts_of_a_load_balancer_in_error_fail_at_once(driver: Driver, faults: SimulatedCloud) -> None:
    faults.faults.set({"load_balancer": {"match": "^sotest", "error": "no host"}})
    balancer = driver.prepare(f"{OCTAVIA}LoadBalancer", {"vip_subnet": "private-subnet"})
    balancer.start("CREATE")
    driver.adopt(balancer, create(balancer))
    seen = driver.observe(balancer.physical_id)
    assert seen.error
    assert seen.replaceable
    faults.faults.set({})
    given = {"loadbalancer": balancer.physical_id, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    pool = driver.prepare(f"{OCTAVIA}Pool", given)
    pool.start("CREATE")
    with pytest.raises(ProviderError, match="provisioning status of the load balancer is ERROR") as caught:
        create(pool)
    assert not isinstance(caught.value, ProviderBusy)
