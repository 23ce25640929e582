"""Open operations that a newer template, a mark or a delete takes over."""

from __future__ import annotations

import pytest

from orchestrator.errors import ActionInProgress
from orchestrator.operations.signals import health_marks
from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.reconcile.stuck_servers import NEVER, server, stuck, world
from tests.scenarios.world import World

__all__ = ["world"]


def test_an_unchanged_open_create_continues_without_a_second_call(world: World, cloud: Cloud):
    uuid = stuck(world)
    world.patch("s")
    world.retry(2)
    [thing] = cloud.things
    cloud.looks[thing] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.calls.count("create a") == 1


def test_a_replacement_does_not_wait_for_the_old_object(world: World, cloud: Cloud):
    uuid = stuck(world)
    [old] = cloud.things
    world.update("s", {"a": server(errors=0, final=True)})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert old not in cloud.things
    assert len(cloud.things) == 1


def test_a_replacement_does_not_wait_for_a_provider_without_an_answer(world: World, cloud: Cloud):
    stuck(world)
    [old] = cloud.things
    cloud.outage.add("observe")
    world.update("s", {"a": server(final=True)})
    world.retry(2)
    assert len(cloud.things) == 2
    cloud.outage.clear()
    world.deliver_all()
    assert old not in cloud.things


def test_a_change_in_place_waits_until_the_object_is_ready(world: World, cloud: Cloud):
    uuid = stuck(world)
    [thing] = cloud.things
    world.update("s", {"a": server(value="new")})
    world.retry(2)
    assert "update a" not in cloud.calls
    cloud.looks[thing] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.values == {thing: "new"}


def test_a_stuck_object_is_deleted_with_its_stack_or_when_its_resource_is_removed(world: World, cloud: Cloud):
    uuid = stuck(world)
    world.update("s", {})
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("UPDATE_COMPLETE", {})
    stuck_again = world.create("t", {"a": server(looks=NEVER)})
    world.retry()
    world.delete("t")
    world.deliver_all()
    assert (world.state(stuck_again), cloud.things) == ("DELETE_COMPLETE", {})


# Marks


def test_a_mark_gives_up_an_open_create(world: World, cloud: Cloud):
    uuid = stuck(world)
    [old] = cloud.things
    world.mark("s", "a")
    cloud.looks[old] = NEVER  # too late
    world.retry(2)
    [new] = [thing for thing in cloud.things if thing != old]
    cloud.looks[new] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert list(cloud.things) == [new]


def test_a_mark_after_the_timeout_is_honoured_by_the_next_update(world: World, cloud: Cloud):
    uuid = stuck(world, timeout_mins=2)
    [old] = cloud.things
    world.elapse(121, "action")
    world.retry()
    world.mark("s", "a")
    assert (world.state(uuid), world.status("a")) == ("CREATE_FAILED", "CHECK_FAILED")
    cloud.looks[old] = NEVER  # healthy, and marked all the same
    world.update("s", {"a": server()})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert old not in cloud.things


def test_a_healthy_object_that_is_marked_is_replaced(world: World, cloud: Cloud):
    world.create("s", {"a": server()})
    world.deliver_all()
    [old] = cloud.things
    world.mark("s", "a")
    world.patch("s")
    world.deliver_all()
    assert list(cloud.things) != [old]
    assert not any(row.marked_unhealthy for row in world.resources())


def test_a_mark_waits_for_a_worker_that_is_calling_the_provider(world: World, cloud: Cloud, monkeypatch):
    monkeypatch.setattr(health_marks, "MARK_SECONDS", 0.0)
    refused = []

    def mark(_ctx: object) -> None:
        with pytest.raises(ActionInProgress):
            world.mark("s", "a")
        refused.append(True)
        cloud.on.clear()

    cloud.on["create"] = mark
    world.create("s", {"a": server()})
    world.deliver_all()
    assert refused


def test_a_resource_that_is_being_deleted_is_not_marked(world: World, cloud: Cloud):
    world.create("s", {"a": server()})
    world.deliver_all()
    cloud.outage.add("delete")
    world.delete("s")
    world.retry(2)
    with pytest.raises(ActionInProgress):
        world.mark("s", "a")
