"""The delete of a small stack, often a child, is planned in a single statement: completely or not at all."""

from __future__ import annotations

import pytest

from orchestrator.operations.planning import small_plans as small_planner
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.trees import CHILD, child, deliver, nested, text
from tests.scenarios.world import World

CHAIN = {"a": cloud_thing(), "b": cloud_thing(("a",)), "c": cloud_thing(("b",)), "d": cloud_thing()}


def test_dependents_are_deleted_before_their_requirements(world: World, cloud: Cloud):
    sizes, gone = world.record("write_small_plan", "nodes", delete=True), list[str]()
    cloud.on["delete"] = lambda ctx: gone.append(ctx.name)
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(CHAIN)})
    deliver(world)
    world.delete("s")
    deliver(world)
    assert sizes == [1, 4]
    assert world.state(uuid) == child(world).state == "DELETE_COMPLETE"
    assert (cloud.things, [name for name in gone if name != "d"]) == ({}, ["c", "b", "a"])
    assert world.rows("SELECT 1 FROM resource") == []
    assert world.rows("SELECT 1 FROM graph_node WHERE traversal = 1") == []


def test_only_the_first_of_two_concurrent_plans_is_written(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(CHAIN)})
    deliver(world)
    world.delete("s")
    while (result := world.messages[0]).label != "plan" or child(world).action != "DELETE":
        world.deliver(1)
    world.after("read_small_delete", lambda: world.deliver_one(result))
    world.deliver(1)
    nodes = "SELECT label FROM graph_node WHERE stack_id = :s AND kind = 'cleanup' ORDER BY label"
    assert [row.label for row in world.rows(nodes, s=child(world).id)] == ["a", "b", "c", "d"]
    deliver(world)
    assert world.state(uuid) == "DELETE_COMPLETE"


@pytest.mark.parametrize("reason", ["too large", "not begun"])
def test_large_or_failed_stacks_are_deleted_without_the_fast_path(
    world: World, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, reason: str
):
    resources = dict(CHAIN)
    if reason == "too large":
        monkeypatch.setattr(small_planner, "MAX_RESOURCES", 3)
    else:
        resources["a"] = cloud_thing(errors=9, final=True)
    sizes = world.record("write_small_plan", "nodes", delete=True)
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(resources)})
    deliver(world)
    world.delete("s")
    deliver(world)
    assert sizes == [1]
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})
