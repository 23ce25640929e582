"""Updates of resources that are suspended, or whose resume has failed."""

from __future__ import annotations

import orjson
import pytest

from orchestrator.errors import ProviderError
from tests.scenarios.fake_cloud import cloud_thing

URL = "file:///child.yaml"
HOT = {"heat_template_version": "2021-04-16"}

CHILDREN = """
SELECT action || '_' || status AS state FROM stack WHERE parent_resource_id IS NOT NULL AND deleted_at IS NULL
"""


def machines(value="1"):
    return {"a": cloud_thing(type="Cloud::Machine", value=value), "b": cloud_thing(("a",), value="2")}


def states(world):
    rows = world.rows("SELECT name, action, status FROM resource WHERE NOT deposed")
    return {row.name: f"{row.action}_{row.status}" for row in rows}


@pytest.fixture
def suspended(world, cloud):
    """A suspended stack."""
    uuid = world.create("s", machines())
    world.deliver_all()
    act(world, "suspend")
    assert (world.state(uuid), len(cloud.paused)) == ("SUSPEND_COMPLETE", 1)
    cloud.calls.clear()
    return uuid


def act(world, action):
    world.act("s", action)
    world.deliver_all()


def update(world, value="1"):
    world.update("s", machines(value))
    world.deliver_all()


def machine(cloud):
    return next(thing for thing in cloud.things if thing.startswith("a"))


def remove(cloud):
    del cloud.things[machine(cloud)]


def put_in_error(cloud):
    cloud.broken.add(machine(cloud))


def refuse(_ctx):
    raise ProviderError("not in this state")


@pytest.mark.parametrize("damage", [remove, put_in_error])
@pytest.mark.parametrize("refused", [False, True])
def test_an_object_damaged_during_the_suspend_is_replaced_by_the_update_after_the_failed_resume(
    world, cloud, suspended, damage, refused
):
    damage(cloud)
    if refused:
        cloud.on["resume"] = refuse
    act(world, "resume")
    assert world.state(suspended) == "RESUME_FAILED"
    assert states(world)["a"] == "RESUME_FAILED"
    update(world)
    assert world.state(suspended) == "UPDATE_COMPLETE"
    assert states(world)["a"] == "CREATE_COMPLETE"
    assert cloud.made == {"a": 2, "b": 1}
    assert len(cloud.things) == 2


def test_an_object_damaged_during_the_suspend_is_replaced_by_the_update_after_a_check(
    world, cloud, suspended
):
    put_in_error(cloud)
    act(world, "check")
    assert world.state(suspended) == "CHECK_FAILED"
    update(world, "3")
    assert world.state(suspended) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 2, "b": 1}
    assert len(cloud.things) == 2


def test_a_suspended_object_whose_resume_is_refused_is_not_replaced(world, cloud, suspended):
    cloud.on["resume"] = refuse
    act(world, "resume")
    for _ in range(2):
        update(world)
        assert world.state(suspended) == "UPDATE_FAILED"
        assert "ProviderError: resources.a: not in this state" in world.stack_row("s").status_reason
    del cloud.on["resume"]
    update(world)
    assert (world.state(suspended), cloud.paused) == ("UPDATE_COMPLETE", set())
    assert cloud.made == {"a": 1, "b": 1}


def test_a_suspended_object_is_resumed_before_it_is_changed(world, cloud, suspended):
    act(world, "check")
    update(world, "3")
    assert (world.state(suspended), cloud.paused) == ("UPDATE_COMPLETE", set())
    assert [call for call in cloud.calls if call in ("resume a", "update a")] == ["resume a", "update a"]
    assert cloud.made == {"a": 1, "b": 1}


def test_a_suspended_resource_that_a_user_marked_unhealthy_is_replaced_and_not_resumed(
    world, cloud, suspended
):
    act(world, "check")
    world.mark("s", "a")
    update(world)
    assert world.state(suspended) == "UPDATE_COMPLETE"
    assert "resume a" not in cloud.calls
    assert cloud.made == {"a": 2, "b": 1}


def test_the_cause_of_a_failed_resume_is_an_event_of_the_update(world, cloud, suspended):
    act(world, "check")
    put_in_error(cloud)
    update(world)
    assert world.state(suspended) == "UPDATE_COMPLETE"
    assert "a RESUME_FAILED" in world.events(suspended)
    assert any("it broke" in reason for reason in world.event_reasons(suspended, "a"))


def nested():
    return {"child": {"type": URL}}, {URL: orjson.dumps({**HOT, "resources": machines()}).decode()}


@pytest.mark.parametrize("damage", [remove, put_in_error])
def test_an_object_damaged_in_a_suspended_nested_stack_is_replaced_by_the_update(world, cloud, damage):
    resources, files = nested()
    uuid = world.create("s", resources, files=files)
    world.deliver_all()
    act(world, "suspend")
    damage(cloud)
    act(world, "resume")
    assert world.state(uuid) == "RESUME_FAILED"
    world.update("s", resources, files=files)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 2, "b": 1}
    assert (cloud.paused & set(cloud.things), len(cloud.things)) == (set(), 2)


@pytest.mark.parametrize("suspend", [False, True])
def test_a_nested_stack_that_a_user_marked_unhealthy_is_replaced_as_a_whole(world, cloud, suspend):
    resources, files = nested()
    uuid = world.create("s", resources, files=files)
    world.deliver_all()
    if suspend:
        act(world, "suspend")
        act(world, "check")
    before = set(cloud.things)
    world.mark("s", "child")
    world.update("s", resources, files=files)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 2, "b": 2}
    assert not before & set(cloud.things)
    assert not any(call.startswith("resume") for call in cloud.calls)
    assert [row.state for row in world.rows(CHILDREN)] == ["CREATE_COMPLETE"]
    world.update("s", resources, files=files)
    world.deliver_all()
    assert cloud.made == {"a": 2, "b": 2}
