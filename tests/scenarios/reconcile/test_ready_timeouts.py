"""Objects that are not ready in time."""

from __future__ import annotations

import pytest

from orchestrator.engine.check.refusals import PAUSE_SECONDS
from orchestrator.errors import InvalidTemplate
from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.reconcile.stuck_servers import NEVER, limited, server, stuck, swallow_answer, world
from tests.scenarios.trees import CHILD, nested
from tests.scenarios.trees import text as template
from tests.scenarios.world import World

__all__ = ["world"]


def test_an_object_that_is_not_ready_in_time_is_discarded_and_created_again(world: World, cloud: Cloud):
    uuid = stuck(world, environment=limited(60, "a*"))
    [first] = cloud.things
    world.elapse(61, "operation")
    world.retry(2)
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
        world.retry()
    assert world.state(uuid) == "CREATE_FAILED"
    assert cloud.made == {"a": 3}
    assert "ResourceNotReady: resources.a: not ready after 60 seconds" in world.stack_row("s").status_reason
    # The next update gives it as much time again, then replaces it.
    world.patch("s")
    world.retry(2)
    assert cloud.made == {"a": 3}
    world.elapse(61, "wait")
    world.retry(2)
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
        world.retry()
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
    world.retry()
    cloud.on.clear()
    cloud.looks[first] = NEVER
    world.retry(2)  # its absence after an outage is confirmed
    [second] = cloud.things
    assert second != first
    cloud.looks[second] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_an_object_within_its_limit_is_left_alone(world: World, cloud: Cloud):
    stuck(world, environment=limited(60))
    world.elapse(30, "operation")
    world.retry(5)
    assert cloud.made == {"a": 1}


@pytest.mark.parametrize("verb", ["create", "find", "observe"])
def test_an_outage_during_a_create_does_not_count_towards_the_limit(world: World, cloud: Cloud, verb: str):
    cloud.outage |= {verb, "find"}
    if verb == "find":
        cloud.on["created"] = swallow_answer
    uuid = world.create("s", {"a": server(looks=2)}, environment=limited(60))
    world.retry()
    world.elapse(61, "operation")
    world.retry()
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
    world.retry()
    world.elapse(61, "operation")
    world.retry()
    cloud.outage.clear()
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_an_update_that_comes_during_an_outage_does_not_count_it_either(world: World, cloud: Cloud):
    uuid = stuck(world, environment=limited(60))
    cloud.outage.add("observe")
    world.retry()
    world.elapse(61, "operation")
    world.retry()
    world.patch("s")
    cloud.outage.clear()
    [thing] = cloud.things
    world.retry(3)
    cloud.looks[thing] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_the_limit_applies_again_after_an_outage(world: World, cloud: Cloud):
    stuck(world, environment=limited(60))
    cloud.outage.add("observe")
    world.retry(2)
    cloud.outage.clear()
    world.retry(2)
    world.elapse(60 + PAUSE_SECONDS, "operation", "outage end")
    world.retry(3)
    assert cloud.made == {"a": 2}


def test_a_failed_resource_has_its_time_after_an_outage(world: World, cloud: Cloud):
    stuck(world, environment=limited(60))
    for _ in range(8):
        world.elapse(61, "operation")
        world.retry()
    assert (world.status("a"), cloud.made) == ("CREATE_FAILED", {"a": 3})
    cloud.outage.add("observe")
    world.patch("s")
    world.retry()
    world.elapse(61, "wait")
    cloud.outage.clear()
    world.retry(3)
    assert cloud.made == {"a": 3}
    world.elapse(61, "wait")
    world.retry(2)
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
    world.retry()
    assert world.state(uuid) == "CREATE_FAILED"
    assert cloud.made == {"a": 1}
    world.patch("s")
    world.retry(2)
    assert cloud.made == {"a": 2}
    [second] = cloud.things
    cloud.looks[second] = NEVER
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_an_operation_that_outlasts_its_stack_has_failed_and_is_followed(world: World, cloud: Cloud):
    uuid = stuck(world, timeout_mins=1)
    world.elapse(61, "action", "operation")
    world.retry(3)
    row = world.resource("a")
    reason = "CREATE aborted: the stack has failed. Still in progress: state changed"
    assert (row.action, row.status, row.status_reason) == ("CREATE", "FAILED", reason)
    reasons = world.event_reasons(uuid, "a")
    assert reasons == ["CREATE_IN_PROGRESS state changed", f"CREATE_FAILED {reason}"]
    world.act("s", "check")
    world.retry(3)
    assert "IN_PROGRESS" not in {row.status for row in world.resources()}
    [thing] = cloud.things
    cloud.looks[thing] = NEVER  # it is ready after all
    world.deliver_all()
    assert (world.state(uuid), world.status("a")) == ("CREATE_FAILED", "CREATE_COMPLETE")
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})


def test_an_update_continues_an_operation_that_outlasted_its_stack(world: World, cloud: Cloud):
    uuid = stuck(world, timeout_mins=2)
    world.elapse(121, "action")
    world.retry(2)
    assert (world.state(uuid), world.status("a")) == ("CREATE_FAILED", "CREATE_FAILED")
    world.patch("s")
    world.retry(2)
    assert world.status("a") == "CREATE_IN_PROGRESS"
    [thing] = cloud.things
    cloud.looks[thing] = NEVER
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})


def test_a_delete_that_outlasts_its_stack_has_failed_and_is_followed(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": server()})
    world.deliver_all()
    cloud.outage.add("delete")
    world.delete("s")
    world.retry(2)
    world.elapse(3601, "action")
    world.retry(2)
    assert (world.state(uuid), world.status("a")) == ("DELETE_FAILED", "DELETE_FAILED")
    cloud.outage.clear()
    world.deliver_all()
    assert cloud.things == {}
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_a_child_stack_fails_with_its_parent(world: World, cloud: Cloud):
    files = {CHILD: template({"a": server(looks=NEVER)})}
    uuid = world.create("s", {"n": nested()}, files=files, timeout_mins=1)
    world.retry(2)
    world.elapse(61, "action", "operation")
    world.retry(3)
    assert world.state(uuid) == "CREATE_FAILED"
    assert {(row.action, row.status) for row in world.resources()} == {("CREATE", "FAILED")}
    assert {row.status for row in world.rows("SELECT status FROM stack")} == {"FAILED"}
    world.act("s", "check")
    world.retry(3)
    assert {row.status for row in world.resources()} == {"FAILED"}
    world.patch("s")
    world.retry(3)
    [second] = cloud.things
    cloud.looks[second] = NEVER
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 2})
