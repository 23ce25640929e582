"""A service that restarts reports objects as absent that exist. An absence after an outage counts when a
later visit observes it as well (operations/adr/0023).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.clients.openstack.networking.network import Network
from orchestrator.engine.check.outcome import MAX_CHECK_RETRIES
from orchestrator.errors import AwaitingBudget, ProviderError, ProviderNotFound, ProviderSilent
from orchestrator.operations.maintenance import orphans
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from orchestrator.resources.base import Context
from orchestrator.store import circuit_breakers
from tests.scenarios.fake_cloud import Cloud, Thing, cloud_thing
from tests.scenarios.world import World
from tests.unit.resources.openstack.double_cloud import DoubleCloud, refusal

SERVER = "Cloud::Server"
WAITS = "SELECT extract(epoch FROM due_at - clock_timestamp()) AS seconds FROM graph_node WHERE absent"


class Interface(Thing):
    """A thing whose delete ignores an unknown object, as OpenStack's do."""

    name = "Cloud::Interface"

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self.status = 204

    def delete(self, ctx: Context, physical_id: str) -> None:
        answers = DoubleCloud(neutron=lambda _: refusal(self.status, "PortNotFound"))
        if Network(answers, 5.0, calls=ctx.calls).delete(f"/ports/{physical_id}"):
            super().delete(ctx, physical_id)
        else:
            self.cloud.call("delete", ctx)


@pytest.fixture
def interface(cloud: Cloud) -> Interface:
    return Interface(cloud)


@pytest.fixture
def world(postgres_url: str, cloud: Cloud, interface: Interface) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types() | {interface.name: interface}, action_retry_limit=2)
    yield world
    world.close()


def a_server(**properties: Any) -> dict[str, object]:
    return cloud_thing(type=SERVER, **properties)


def created(world: World, **properties: Any) -> str:
    uuid = world.create("s", {"a": a_server(**properties)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def outage_of_others(world: World, service: str = SERVER) -> None:
    """Record a call of another visit without an answer."""
    db = world.database.check_connection(durable=False)
    circuit_breakers.record_failure(db, "p1", service, "no answer", 1.0)


def hide(cloud: Cloud) -> Callable[[], None]:
    """Let the provider know no object; return the function that ends this."""
    hidden = dict(cloud.things)
    cloud.things.clear()
    return lambda: cloud.things.update(hidden)


# Deletes


def lose_create(cloud: Cloud) -> None:
    """Let the next create be carried out without an answer; searches fail."""

    def lose(_: Context) -> None:
        del cloud.on["created"]
        cloud.outage.add("find")
        raise ProviderSilent("no answer")

    cloud.on["created"] = lose


def test_a_delete_without_an_object_after_an_outage_is_repeated_when_the_object_is_back(
    world: World, cloud: Cloud
) -> None:
    uuid = created(world)
    cloud.outage.add("delete")
    world.delete("s")
    world.retry()
    cloud.outage.clear()
    show = hide(cloud)
    world.retry()
    [wait] = world.rows(WAITS)
    assert 0 < wait.seconds <= 3.0
    show()
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {}


def test_an_outage_that_other_visits_have_seen_counts_as_well(world: World, cloud: Cloud) -> None:
    uuid = created(world)
    outage_of_others(world)
    show = hide(cloud)
    world.delete("s")
    while world.messages:
        world.deliver()
    assert world.state(uuid) == "DELETE_IN_PROGRESS"
    show()
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


def test_an_absence_is_confirmed_by_an_observation(world: World, cloud: Cloud) -> None:
    uuid = created(world)
    outage_of_others(world)
    cloud.calls.clear()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.calls == ["delete a", "observe a", "observe a"]


def test_without_an_outage_an_absence_counts_at_once(world: World, cloud: Cloud) -> None:
    uuid = created(world)
    outage_of_others(world)
    world.elapse(circuit_breakers.DOUBT_SECONDS + 1, "answer")
    circuit_breakers.close(world.database.check_connection(durable=False), "p1", SERVER)
    world.elapse(circuit_breakers.DOUBT_SECONDS + 1, "answer")
    cloud.calls.clear()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.calls == ["delete a", "observe a"]


def test_an_absence_before_and_after_another_outage_is_not_confirmed(world: World, cloud: Cloud) -> None:
    uuid = created(world)
    outage_of_others(world)
    show = hide(cloud)
    world.delete("s")
    world.retry(0)
    cloud.outage |= {"delete", "observe"}
    world.retry()
    cloud.outage.clear()
    world.retry()
    assert world.state(uuid) == "DELETE_IN_PROGRESS"
    show()
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


def test_a_delete_that_knows_no_object_is_repeated_although_the_object_is_observed(
    world: World, cloud: Cloud, interface: Interface
) -> None:
    uuid = world.create("s", {"a": cloud_thing(type=Interface.name)})
    world.deliver_all()
    outage_of_others(world, Interface.name)
    interface.status = 404
    world.delete("s")
    while world.messages:
        world.deliver()
    interface.status = 204
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


def test_an_object_to_be_created_again_is_deleted_although_it_seemed_to_be_absent(
    world: World, cloud: Cloud
) -> None:
    uuid = world.create("s", {"a": a_server(errors=1)})
    while world.messages:
        world.deliver()
    outage_of_others(world)
    show = hide(cloud)
    world.retry()
    show()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert (cloud.made, len(cloud.things)) == ({"a": 2}, 1)


def test_the_object_of_a_lost_create_is_deleted_although_no_search_found_it_at_first(
    world: World, cloud: Cloud
) -> None:
    lose_create(cloud)
    uuid = world.create("s", {"a": a_server()})
    while world.messages:
        world.deliver()
    world.delete("s")
    cloud.outage.clear()
    show = hide(cloud)
    while world.messages:
        world.deliver()
    show()
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


def test_an_orphan_that_seemed_to_be_absent_is_deleted(world: World, cloud: Cloud) -> None:
    created(world)
    [own] = cloud.things
    cloud.things["late"] = "token"
    db = world.database.check_connection(durable=True)
    db.execute(
        """INSERT INTO orphan (stack_id, resource_id, token, type, physical_id)
        SELECT stack_id, id, 'token', type, 'late' FROM resource"""
    )
    outage_of_others(world)
    show = hide(cloud)
    assert orphans.delete_orphans(db, OrphanAccess(world.types)) == 0
    show()
    world.elapse(circuit_breakers.DOUBT_SECONDS + 1, "answer")
    assert orphans.delete_orphans(db, OrphanAccess(world.types)) == 1
    assert list(cloud.things) == [own]


# Creates and updates


def test_an_object_that_was_just_created_is_not_created_again(world: World, cloud: Cloud) -> None:
    uuid = world.create("s", {"a": a_server(looks=2)})
    while world.messages:
        world.deliver()
    cloud.outage.add("observe")
    world.retry()
    cloud.outage.clear()
    show = hide(cloud)
    world.retry()
    show()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert (cloud.made, world.resource("a").physical_id) == ({"a": 1}, next(iter(cloud.things)))


def test_a_lost_create_is_not_repeated_after_a_single_search_without_a_result(
    world: World, cloud: Cloud
) -> None:
    lose_create(cloud)
    uuid = world.create("s", {"a": a_server()})
    while world.messages:
        world.deliver()
    cloud.outage.clear()
    show = hide(cloud)
    world.retry()
    show()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_an_object_under_update_that_seems_to_be_absent_does_not_fail_the_update(
    world: World, cloud: Cloud
) -> None:
    uuid = created(world, value="old")
    world.update("s", {"a": a_server(value="new", looks=1)})
    while world.messages:
        world.deliver()
    outage_of_others(world)
    show = hide(cloud)
    world.retry()
    show()
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_an_update_of_an_object_that_the_provider_does_not_know_is_repeated(
    world: World, cloud: Cloud
) -> None:
    def deny(_: Context) -> None:
        del cloud.on["update"]
        raise ProviderNotFound("no such server")

    uuid = created(world, value="old")
    outage_of_others(world)
    cloud.on["update"] = deny
    world.update("s", {"a": a_server(value="new")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert list(cloud.values.values()) == ["new"]


def test_a_failed_resource_whose_object_seems_to_be_absent_is_not_replaced(
    world: World, cloud: Cloud
) -> None:
    def refuse(_: Context) -> None:
        raise ProviderError("not allowed", "Forbidden")

    uuid = created(world, value="old")
    cloud.on["update"] = refuse
    world.update("s", {"a": a_server(value="new")})
    world.deliver_all()
    cloud.on.clear()
    outage_of_others(world)
    show = hide(cloud)
    world.patch("s")
    while world.messages:
        world.deliver()
    assert world.status("a") == "UPDATE_FAILED"
    show()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})


def test_an_object_that_stays_absent_is_replaced(world: World, cloud: Cloud) -> None:
    uuid = created(world)
    cloud.things.clear()
    outage_of_others(world)
    world.patch("s", converge=True)
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 2})


def test_a_check_does_not_report_an_object_that_seems_to_be_absent(world: World, cloud: Cloud) -> None:
    uuid = created(world)
    outage_of_others(world)
    show = hide(cloud)
    world.act("s", "check")
    while world.messages:
        world.deliver()
    show()
    world.deliver_all()
    assert world.state(uuid) == "CHECK_COMPLETE"


def test_a_check_reports_an_object_that_stays_absent(world: World, cloud: Cloud) -> None:
    uuid = created(world)
    outage_of_others(world)
    cloud.things.clear()
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CHECK_FAILED"
    assert "There is no" in world.resource("a").status_reason


def check_with_its_tries_used_up(world: World, cloud: Cloud) -> str:
    """Start a check whose tries get no answer but the last."""
    uuid = created(world)
    cloud.outage.add("observe")
    world.act("s", "check")
    world.retry(MAX_CHECK_RETRIES - 1)
    [node] = world.nodes(kind="update", state="waiting")
    assert node.unreachable_tries == MAX_CHECK_RETRIES
    cloud.outage.clear()
    return uuid


def test_a_check_looks_until_an_absence_is_confirmed(world: World, cloud: Cloud) -> None:
    uuid = check_with_its_tries_used_up(world, cloud)
    cloud.things.clear()
    world.deliver_all()
    assert world.state(uuid) == "CHECK_FAILED"
    assert world.status("a") == "CHECK_FAILED"
    assert "There is no" in world.resource("a").status_reason


def test_the_last_try_of_a_check_waits_for_a_place(world: World, cloud: Cloud) -> None:
    uuid = check_with_its_tries_used_up(world, cloud)

    def without_place(_ctx: Context) -> None:
        cloud.on.clear()
        raise AwaitingBudget("nova", 1.0)

    cloud.on["observe"] = without_place
    world.deliver_all()
    assert world.state(uuid) == "CHECK_COMPLETE"
