"""The removal of a small stack, a child's above all, is planned in one statement: whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.operations.planning import small_plans as small_planner
from orchestrator.store.planning import small_plans
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.trees import CHILD, child, deliver, nested, text
from tests.scenarios.world import World

CHAIN = {"a": cloud_thing(), "b": cloud_thing(("a",)), "c": cloud_thing(("b",)), "d": cloud_thing()}


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    made = World(postgres_url, types=cloud.types())
    yield made
    made.close()


def written(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that tells of each plan that is written how many nodes it has."""
    write, sizes = small_plans.write, list[int]()

    def telling(db: Any, statement: str, plan: Any, finish: int, feeders: int, rows: Any, ring: int) -> Any:
        if statement == small_plans.WRITE_DELETE:
            sizes.append(len(rows))
        return write(db, statement, plan, finish, feeders, rows, ring)

    monkeypatch.setattr(small_plans, "write", telling)
    return sizes


def test_what_stands_on_something_goes_before_it(world: World, cloud: Cloud, monkeypatch: pytest.MonkeyPatch):
    sizes, gone = written(world, monkeypatch), list[str]()
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


def test_of_two_plans_at_once_one_is_written(world: World, monkeypatch: pytest.MonkeyPatch):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(CHAIN)})
    deliver(world)
    world.delete("s")
    while (found := world.messages[0]).label != "plan" or child(world).action != "DELETE":
        world.deliver(1)
    read, others = small_plans.read_for_delete, [lambda: world.deliver_one(found)]

    def late(*given: Any) -> Any:
        seen = read(*given)
        if others:
            others.pop()()
        return seen

    monkeypatch.setattr(small_plans, "read_for_delete", late)
    world.deliver(1)
    nodes = "SELECT label FROM graph_node WHERE stack_id = :s AND kind = 'cleanup' ORDER BY label"
    assert [row.label for row in world.rows(nodes, s=child(world).id)] == ["a", "b", "c", "d"]
    deliver(world)
    assert world.state(uuid) == "DELETE_COMPLETE"


@pytest.mark.parametrize("reason", ["too large", "not begun"])
def test_what_is_not_small_or_was_not_made_is_removed_all_the_same(
    world: World, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, reason: str
):
    resources = dict(CHAIN)
    if reason == "too large":
        monkeypatch.setattr(small_planner, "MAX_RESOURCES", 3)
    else:
        resources["a"] = cloud_thing(errors=9, final=True)
    sizes = written(world, monkeypatch)
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(resources)})
    deliver(world)
    world.delete("s")
    deliver(world)
    assert sizes == [1]
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})
