"""A circuit breaker counts failures of the service that gave no answer, whatever the type of a resource."""

from __future__ import annotations

from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of

SERVER = of("OS::Nova::Server", image="cirros", flavor="m1.tiny", networks=[{"subnet": "private-subnet"}])


def breakers(world: CloudWorld) -> list[tuple[str, bool]]:
    """Return the services that gave no answer, and whether their breaker is open."""
    rows = world.rows("SELECT service, opened_at IS NOT NULL AS open FROM circuit_breaker ORDER BY 1")
    return [(row.service, row.open) for row in rows]


def test_an_outage_of_neutron_is_none_of_nova(world: CloudWorld) -> None:
    uuid = world.create("s", {f"server{number}": SERVER for number in range(4)})
    world.cloud.faults.set({"api": [{"service": "neutron", "method": "POST", "status": 503}]})
    world.retry(2)
    assert breakers(world) == [("neutron", True)]
    reasons = world.event_reasons(uuid, "s")
    assert [reason for reason in reasons if "neutron is unavailable" in reason]
    assert not [reason for reason in reasons if "nova" in reason]
    world.cloud.faults.set({})
    world.settle(uuid, "CREATE_COMPLETE")
    assert breakers(world) == [("neutron", False)]
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
