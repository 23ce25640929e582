"""Objects that never become ready: time limits, and the take-over of open operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.engine.check.outcome import UNREACHABLE_MAX_SECONDS
from orchestrator.errors import ActionInProgress, InvalidTemplate, ProviderSilent
from orchestrator.operations.signals import accept
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

SERVER = "Cloud::Server"
NEVER = 10_000  # observations until it is ready


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types(), action_retry_limit=2)
    yield world
    world.close()


def server(**properties: object) -> dict[str, object]:
    return cloud_thing(type=SERVER, **properties)


def observe(world: World, times: int = 1) -> None:
    """Let the waiting nodes become due so many times."""
    for _ in range(times):
        while world.messages:
            world.deliver()
        world.sweep_once()
    while world.messages:
        world.deliver()


def limited(seconds: float, name: str = "a") -> dict[str, Any]:
    return {"resource_registry": {"resources": {name: {"ready_timeout": seconds}}}}


def status_of(world: World, name: str) -> str:
    row = world.resource(name)
    return f"{row.action}_{row.status}"


def stuck(world: World, **request: Any) -> str:
    """Create a stack whose server never becomes ready; return the stack's uuid."""
    uuid = world.create("s", {"a": server(looks=NEVER)}, **request)
    observe(world)
    assert status_of(world, "a") == "CREATE_IN_PROGRESS"
    return uuid


def swallow_answer(_ctx: object) -> None:
    raise ProviderSilent("no answer")


# The time limit


def test_an_object_that_is_not_ready_in_time_is_discarded_and_created_again(world: World, cloud: Cloud):
    uuid = stuck(world, environment=limited(60, "a*"))
    [first] = cloud.things
    world.elapse(61, "operation")
    observe(world, 2)
    [second] = cloud.things
    assert first != second
    cloud.looks[second] = NEVER  # this one becomes ready
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert list(cloud.things) == [second]


def test_a_resource_that_is_never_ready_in_time_fails_after_its_retries(world: World, cloud: Cloud):
    uuid = stuck(world, environment=limited(60))
    for _ in range(8):
        world.elapse(61, "operation")
        observe(world)
    assert world.state(uuid) == "CREATE_FAILED"
    assert cloud.made == {"a": 3}
    assert "ResourceNotReady: resources.a: not ready after 60 seconds" in world.stack_row("s").status_reason
    # The next update gives it as much time again, then replaces it.
    world.patch("s")
    observe(world, 2)
    assert cloud.made == {"a": 3}
    world.elapse(61, "wait")
    observe(world, 2)
    assert cloud.made == {"a": 4}


@pytest.mark.parametrize("outage", [False, True])
def test_an_object_that_is_ready_before_it_is_discarded_is_kept(world: World, cloud: Cloud, *, outage: bool):
    uuid = stuck(world, environment=limited(60))
    [thing] = cloud.things
    world.elapse(61, "operation")
    world.sweep_once()
    world.deliver()
    assert world.resource("a").op == "DISCARD"
    if outage:
        cloud.outage.add("delete")
        observe(world)
        cloud.outage.clear()
    cloud.looks[thing] = NEVER
    world.deliver_all()
    assert (world.state(uuid), list(cloud.things)) == ("CREATE_COMPLETE", [thing])


def test_an_object_is_not_kept_after_a_request_to_delete_it(world: World, cloud: Cloud):
    uuid = stuck(world, environment=limited(60))
    [first] = cloud.things
    world.elapse(61, "operation")
    world.sweep_once()
    world.deliver()
    cloud.on["delete"] = swallow_answer
    observe(world)
    cloud.on.clear()
    cloud.looks[first] = NEVER
    observe(world)
    [second] = cloud.things
    assert second != first
    cloud.looks[second] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_an_object_within_its_limit_is_left_alone(world: World, cloud: Cloud):
    stuck(world, environment=limited(60))
    world.elapse(30, "operation")
    observe(world, 5)
    assert cloud.made == {"a": 1}


@pytest.mark.parametrize("verb", ["create", "find", "observe"])
def test_an_outage_during_a_create_does_not_count_towards_the_limit(world: World, cloud: Cloud, verb: str):
    cloud.outage |= {verb, "find"}
    if verb == "find":
        cloud.on["created"] = swallow_answer
    uuid = world.create("s", {"a": server(looks=2)}, environment=limited(60))
    observe(world)
    world.elapse(61, "operation")
    observe(world)
    cloud.outage.clear()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}


@pytest.mark.parametrize("verb", ["update", "observe"])
def test_an_outage_during_an_update_does_not_count_towards_the_limit(world: World, cloud: Cloud, verb: str):
    uuid = world.create("s", {"a": server(value="old")}, environment=limited(60))
    world.deliver_all()
    cloud.outage.add(verb)
    world.update("s", {"a": server(value="new", looks=2)}, environment=limited(60))
    observe(world)
    world.elapse(61, "operation")
    observe(world)
    cloud.outage.clear()
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_an_update_that_comes_during_an_outage_does_not_count_it_either(world: World, cloud: Cloud):
    uuid = stuck(world, environment=limited(60))
    cloud.outage.add("observe")
    observe(world)
    world.elapse(61, "operation")
    observe(world)
    world.patch("s")
    cloud.outage.clear()
    [thing] = cloud.things
    observe(world, 3)
    cloud.looks[thing] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_the_limit_applies_again_after_an_outage(world: World, cloud: Cloud):
    stuck(world, environment=limited(60))
    cloud.outage.add("observe")
    observe(world, 2)
    cloud.outage.clear()
    observe(world, 2)
    world.elapse(60 + UNREACHABLE_MAX_SECONDS, "operation", "outage end")
    observe(world, 2)
    assert cloud.made == {"a": 2}


def test_a_failed_resource_has_its_time_after_an_outage(world: World, cloud: Cloud):
    stuck(world, environment=limited(60))
    for _ in range(8):
        world.elapse(61, "operation")
        observe(world)
    assert (status_of(world, "a"), cloud.made) == ("CREATE_FAILED", {"a": 3})
    cloud.outage.add("observe")
    world.patch("s")
    observe(world)
    world.elapse(61, "wait")
    cloud.outage.clear()
    observe(world, 3)
    assert cloud.made == {"a": 3}
    world.elapse(61, "wait")
    observe(world, 2)
    assert cloud.made == {"a": 4}


def test_a_limit_needs_a_number_of_seconds(world: World):
    for wrong in (0, -1, True, [60], 10**9):
        with pytest.raises(InvalidTemplate, match="must be a number of seconds above 0"):
            world.create("s", {"a": server()}, environment=limited(wrong))  # type: ignore[arg-type]
    with pytest.raises(InvalidTemplate, match="in the entry of a resource"):
        world.create("s", {"a": server()}, environment={"resource_registry": {"ready_timeout": 60}})


def test_an_object_that_outlasted_the_timeout_of_its_stack_is_discarded_by_the_next_update(
    world: World, cloud: Cloud
):
    uuid = stuck(world, timeout_mins=1)
    world.elapse(61, "action", "operation")
    observe(world)
    assert world.state(uuid) == "CREATE_FAILED"
    assert cloud.made == {"a": 1}
    world.patch("s")
    observe(world, 2)
    assert cloud.made == {"a": 2}
    [second] = cloud.things
    cloud.looks[second] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_an_operation_that_outlasts_its_stack_has_failed_and_is_followed(world: World, cloud: Cloud):
    uuid = stuck(world, timeout_mins=1)
    world.elapse(61, "action", "operation")
    observe(world, 3)
    row = world.resource("a")
    reason = "CREATE aborted: the stack has failed. Still in progress: state changed"
    assert (row.action, row.status, row.status_reason) == ("CREATE", "FAILED", reason)
    reasons = world.event_reasons(uuid, "a")
    assert reasons == ["CREATE_IN_PROGRESS state changed", f"CREATE_FAILED {reason}"]
    world.act("s", "check")
    observe(world, 3)
    assert "IN_PROGRESS" not in {row.status for row in world.resources()}
    [thing] = cloud.things
    cloud.looks[thing] = NEVER  # it is ready after all
    world.deliver_all()
    assert (world.state(uuid), status_of(world, "a")) == ("CREATE_FAILED", "CREATE_COMPLETE")
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})


def test_an_update_continues_an_operation_that_outlasted_its_stack(world: World, cloud: Cloud):
    uuid = stuck(world, timeout_mins=2)
    world.elapse(121, "action")
    observe(world, 2)
    assert (world.state(uuid), status_of(world, "a")) == ("CREATE_FAILED", "CREATE_FAILED")
    world.patch("s")
    observe(world, 2)
    assert status_of(world, "a") == "CREATE_IN_PROGRESS"
    [thing] = cloud.things
    cloud.looks[thing] = NEVER
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})


def test_a_delete_that_outlasts_its_stack_has_failed_and_is_followed(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": server()})
    world.deliver_all()
    cloud.outage.add("delete")
    world.delete("s")
    observe(world, 2)
    world.elapse(3601, "action")
    observe(world, 2)
    assert (world.state(uuid), status_of(world, "a")) == ("DELETE_FAILED", "DELETE_FAILED")
    cloud.outage.clear()
    world.deliver_all()
    assert cloud.things == {}
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


# Take-over


def test_an_unchanged_open_create_continues_without_a_second_call(world: World, cloud: Cloud):
    uuid = stuck(world)
    world.patch("s")
    observe(world, 2)
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
    observe(world, 2)
    assert len(cloud.things) == 2
    cloud.outage.clear()
    world.deliver_all()
    assert old not in cloud.things


def test_a_change_in_place_waits_until_the_object_is_ready(world: World, cloud: Cloud):
    uuid = stuck(world)
    [thing] = cloud.things
    world.update("s", {"a": server(value="new")})
    observe(world, 2)
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
    observe(world)
    world.delete("t")
    world.deliver_all()
    assert (world.state(stuck_again), cloud.things) == ("DELETE_COMPLETE", {})


# Marks


def test_a_mark_gives_up_an_open_create(world: World, cloud: Cloud):
    uuid = stuck(world)
    [old] = cloud.things
    world.mark("s", "a")
    cloud.looks[old] = NEVER  # too late
    observe(world, 2)
    [new] = [thing for thing in cloud.things if thing != old]
    cloud.looks[new] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert list(cloud.things) == [new]


def test_a_mark_after_the_timeout_is_honoured_by_the_next_update(world: World, cloud: Cloud):
    uuid = stuck(world, timeout_mins=2)
    [old] = cloud.things
    world.elapse(121, "action")
    observe(world)
    world.mark("s", "a")
    assert (world.state(uuid), status_of(world, "a")) == ("CREATE_FAILED", "CHECK_FAILED")
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
    monkeypatch.setattr(accept, "MARK_SECONDS", 0.0)
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
    observe(world, 2)
    with pytest.raises(ActionInProgress):
        world.mark("s", "a")
