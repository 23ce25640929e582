"""Interrupted updates: superseded by newer requests, failed, rolled back, and cancelled."""

from __future__ import annotations

import pytest

from orchestrator.errors import NotSupported
from tests.scenarios.stacks.five_resources import five, ids, values
from tests.scenarios.world import World, test_resource


def test_an_update_over_a_running_create_takes_over(world):
    uuid = world.create("s", five())
    for _ in range(3):  # the plan, and two of the five
        world.deliver()
    world.update(
        "s", five(C=test_resource("late", requires=("A", "B")), F=test_resource("f", requires=("E",)))
    )
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world)["C"] == values(world)["E"] == "late"
    created = [e for e in world.events(uuid) if e.endswith("CREATE_COMPLETE") and not e.startswith("s ")]
    assert sorted(created) == [f"{name} CREATE_COMPLETE" for name in "ABCDEF"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_failure_for_an_older_template_is_ignored_and_the_resource_is_recreated(world, times):
    def things(value, **options):
        return {"a": test_resource(value), "b": test_resource(value, requires=("a",), **options)}

    uuid = world.create("s", things("v", fail=True, action_wait_secs={"create": 30}))
    world.deliver(3)  # the plan, and both
    assert world.events(uuid)[-1] == "b CREATE_IN_PROGRESS"
    for number in range(times):
        world.update("s", things(f"w{number}"))
        world.deliver(4)
    world.elapse(3600, "operation")
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world) == {"a": f"w{times - 1}", "b": f"w{times - 1}"}
    reason = "CREATE_FAILED ValueError: resources.b: Test Resource failed b"
    assert [item for item in world.event_reasons(uuid, "b") if "FAILED" in item] == [reason]


def test_ten_updates_at_once_end_as_the_tenth(world):
    uuid = world.create("s", five())
    for number in range(10):
        world.deliver(2)
        world.update("s", five(C=test_resource(f"v{number}", requires=("A", "B"))))
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world)["E"] == "v9"
    assert len(world.rows("SELECT 1 FROM resource")) == 5


def test_a_failed_create_rolls_back_to_nothing(world):
    uuid = world.create("s", five(E=test_resource("e", fail=True)), disable_rollback=False)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []


def test_a_failed_update_rolls_back_to_the_previous_state(world):
    replacing = {"requires": ("A", "B"), "update_replace_value": "1"}
    uuid = world.create("s", five(C=test_resource("4alpha", **replacing)), disable_rollback=False)
    world.deliver_all()
    before = ids(world)
    world.update(
        "s",
        five(
            A=test_resource("changed"),
            C=test_resource("4alpha", **{**replacing, "update_replace_value": "2"}),
            F=test_resource("f", requires=("D",), fail=True),
        ),
    )
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert ids(world) == before
    assert values(world)["A"] == "a"
    assert values(world)["D"] == before["C"]
    assert len(world.rows("SELECT 1 FROM resource")) == 5


def test_a_failed_resource_is_replaced_by_the_next_update(world):
    uuid = world.create("s", five(E=test_resource("e", fail=True)))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    world.update("s", five())
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world)["E"] == "4alpha"
    assert len(world.rows("SELECT 1 FROM resource")) == 5


def test_leftovers_of_an_interrupted_update_are_deleted_by_the_next(world):
    replacing = {"requires": ("A", "B"), "update_replace_value": "1"}
    slow = {"action_wait_secs": {"delete": 1}}
    uuid = world.create("s", five(C=test_resource("4alpha", **replacing, **slow)))
    world.deliver_all()
    other = five(C=test_resource("4alpha", **{**replacing, "update_replace_value": "2"}, **slow))
    world.update("s", other)
    while len(world.rows("SELECT 1 FROM resource WHERE op = 'DELETE'")) == 0:
        world.deliver()
    second = ids(world)["C"]
    world.update("s", {**other, "F": test_resource("f", requires=("D", "E"))})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert ids(world)["C"] == second
    assert len(world.rows("SELECT 1 FROM resource")) == 6


def test_a_resource_left_out_and_wanted_again_at_once_is_kept(world):
    uuid = world.create("s", five())
    world.deliver_all()
    before = ids(world)
    world.update("s", five(E=None))
    world.deliver(1)  # the plan
    world.update("s", five())
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert ids(world) == before


def test_cancelling_rolls_back_to_the_previous_state(world):
    uuid = world.create("s", five())
    world.deliver_all()
    before = ids(world)
    world.update("s", five(A=test_resource("new"), F=test_resource("f", requires=("E",), wait_secs=-1)))
    world.deliver(20)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.act("s", "cancel_update")
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert ids(world) == before
    assert values(world)["A"] == "a"


def test_cancelling_without_rollback_stops_where_it_is(world):
    uuid = world.create("s", five())
    world.deliver_all()
    world.update("s", five(A=test_resource("new"), F=test_resource("f", requires=("E",), wait_secs=-1)))
    world.deliver(20)
    world.act("s", "cancel_without_rollback")
    assert world.state(uuid) == "UPDATE_FAILED"
    [row] = world.rows("SELECT status_reason FROM stack")
    assert row.status_reason == "Stack UPDATE cancelled"
    world.update("s", five())
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world)["A"] == "a"
    assert len(world.rows("SELECT 1 FROM resource")) == 5


@pytest.mark.parametrize("action", ["cancel_update", "cancel_without_rollback"])
def test_an_idle_stack_cannot_be_cancelled(world, action):
    uuid = world.create("s", five())
    world.deliver_all()
    with pytest.raises(
        NotSupported, match="Cancelling update when stack is CREATE_COMPLETE is not supported"
    ):
        world.act("s", action)
    assert world.state(uuid) == "CREATE_COMPLETE"


def thing(value, requires=()):
    body = {"type": "Cloud::Thing", "properties": {"value": value}}
    return body | ({"depends_on": list(requires)} if requires else {})


@pytest.mark.parametrize("seed", range(5))
def test_things_of_a_cloud_are_replaced_once_in_any_order(postgres_url, cloud, seed):
    world = World(postgres_url, types=cloud.types(), seed=seed)
    uuid = world.create("s", {"a": thing("1"), "b": thing("1", ["a"]), "c": thing("1", ["b"])})
    world.deliver(4)
    world.update("s", {"a": thing("2"), "b": thing("2", ["a"]), "d": thing("1", ["b"])})
    world.deliver_all(shuffle=True, repeat=0.3, lose=0.2)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert {thing_.split("-")[0] for thing_ in cloud.things} == {"a", "b", "d"}
    assert len(cloud.things) == 3
    world.delete("s")
    world.deliver_all(shuffle=True, repeat=0.3, lose=0.2)
    assert cloud.things == {}
    world.close()


def meanwhile(world, *actions):
    """Run these actions while updates are validated, an action for each validation."""
    todo = list(actions)
    world.before("validate_update", lambda: todo and todo.pop(0)(), times=float("inf"))


def test_two_patches_at_once_lose_neither(world):
    parameters = {name: {"type": "string", "default": "d"} for name in "xyz"}
    resources = {name.upper(): test_resource({"get_param": name}) for name in "xyz"}
    uuid = world.create("s", resources, parameters=parameters)
    world.deliver_all()
    meanwhile(
        world,
        lambda: world.patch("s", parameters={"x": "1"}, tags="t"),
        lambda: world.patch("s", parameters={"y": "2"}),
    )
    world.patch("s", parameters={"z": "3"})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world) == {"X": "1", "Y": "2", "Z": "3"}
    assert world.stack_row("s").tags == ("t",)


@pytest.mark.parametrize("patch", [False, True])
def test_a_stack_suspended_while_its_update_is_checked_is_not_updated(world, patch):
    uuid = world.create("s", five())
    world.deliver_all()
    meanwhile(world, lambda: world.act("s", "suspend"))
    with pytest.raises(NotSupported, match="Updating a stack when it is suspended"):
        world.patch("s") if patch else world.update("s", five(E=None))
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_COMPLETE"
    assert len(world.rows("SELECT 1 FROM revision")) == 1
