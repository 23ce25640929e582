"""The progress of a stack covers its nested stacks, and the batches of its groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.store.stacks import progress
from orchestrator.store.stacks import stacks as stored_stacks
from orchestrator.store.stacks.progress import Progress
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World, test_resource

INNER = """
heat_template_version: 2021-04-16
parameters: {v: {type: string, default: a}}
resources:
  one: {type: OS::Heat::TestResource, properties: {value: {get_param: v}}}
  two: {type: OS::Heat::TestResource, properties: {value: {get_param: v}}, depends_on: one}
"""
OUTER = """
heat_template_version: 2021-04-16
parameters: {v: {type: string, default: a}}
resources:
  left: {type: inner.yaml, properties: {v: {get_param: v}}}
  right: {type: inner.yaml, depends_on: left}
"""
FILES = {"outer.yaml": OUTER, "inner.yaml": INNER}


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url, types=Cloud().types())
    yield made
    made.close()


def shown(world: World, name: str = "s") -> Progress:
    return progress.read(world.database, world.stack_row(name))


def numbers(found: Progress) -> tuple[int, int]:
    return found.of("ready"), found.total


def group(count: int, value: str, batch: int, *, kind: str = "ResourceGroup", pause: int = 0) -> Any:
    policy = {"max_batch_size": batch, "min_in_service": 0, "pause_time": pause}
    definition = test_resource(value)
    if kind == "ResourceGroup":
        properties = {"count": count, "resource_def": definition}
        update_policy = {"rolling_update": policy}
        return {"type": "OS::Heat::ResourceGroup", "properties": properties, "update_policy": update_policy}
    properties = {"desired_capacity": count, "max_size": count, "min_size": 1, "resource": definition}
    return {"type": "OS::Heat::AutoScalingGroup", "properties": {**properties, "rolling_updates": policy}}


def test_nested_stacks_count_once_they_are_planned(world: World) -> None:
    world.create("s", {"outer": {"type": "outer.yaml"}, "a": test_resource()}, files=FILES)
    seen = []
    while world.messages:
        world.deliver()
        found = shown(world)
        seen.append(numbers(found))
        assert found.of("ready") <= found.total
    assert seen == sorted(seen)  # neither number shrinks
    assert seen[-1] == (8, 8)  # a, outer, left and right with two resources each
    assert world.stack_row("s").state == "CREATE_COMPLETE"


def test_an_update_counts_the_nested_resources_that_it_visits(world: World) -> None:
    world.create("s", {"outer": {"type": "outer.yaml"}, "a": test_resource()}, files=FILES)
    world.deliver_all()
    world.update(
        "s", {"outer": {"type": "outer.yaml", "properties": {"v": "b"}}, "a": test_resource()}, files=FILES
    )
    seen = []
    while world.messages:
        world.deliver()
        seen.append(numbers(shown(world)))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    assert 4 <= seen[-1][1] <= 6  # outer, left, its two; right may be compared


def test_a_delete_counts_the_resources_of_nested_stacks_that_are_deleted_already(world: World) -> None:
    world.create("s", {"outer": {"type": "outer.yaml"}, "a": test_resource()}, files=FILES)
    world.deliver_all()
    world.delete("s")
    seen = []
    while stored_stacks.find(world.database, "p1", "s") is not None:
        seen.append(numbers(shown(world)))
        world.deliver()
    assert seen == sorted(seen)
    assert seen[-1][1] == 8
    assert seen[-1][0] >= 6


@pytest.mark.parametrize("kind", ["ResourceGroup", "AutoScalingGroup"])
def test_a_rolling_update_counts_all_members_and_names_the_batch(world: World, kind: str) -> None:
    world.create("s", {"workers": group(20, "a", 6, kind=kind), "other": test_resource()})
    world.deliver_all()
    world.update("s", {"workers": group(20, "b", 6, kind=kind, pause=60), "other": test_resource()})
    seen, batches = [], []
    while world.messages or world.sweep_once() or world.sweep_once():
        world.deliver()
        found = shown(world)
        seen.append(numbers(found))
        batches += [(item.resource_name, item.batch, item.batches, item.total) for item in found.rollouts]
    assert seen == sorted(seen)
    assert seen[-1] == (21, 21)
    assert list(dict.fromkeys(batches)) == [("workers", number, 4, 20) for number in (1, 2, 3, 4)]
    assert {ready for ready, total in seen if total == 21} >= {6, 12, 18, 20}
    assert shown(world).rollouts == ()


def test_a_batch_and_its_pause_are_shown_with_the_updated_members(world: World) -> None:
    world.create("s", {"workers": group(10, "a", 4)})
    world.deliver_all()
    world.update("s", {"workers": group(10, "b", 4, pause=600)})
    while world.messages:
        world.deliver()
    [rollout] = shown(world).rollouts
    assert (rollout.batch, rollout.batches, rollout.updated, rollout.total) == (1, 3, 4, 10)
    assert dict(shown(world).counts) == {"ready": 4, "waiting": 1, "blocked": 6}
    [child] = world.rows("SELECT name FROM stack WHERE owner_id IS NOT NULL")
    assert rollout.stack_name == child.name
    assert shown(world, child.name).rollouts == (rollout,)


def test_the_sweep_counts_what_a_request_counts(world: World) -> None:
    world.create("s", {"workers": group(10, "a", 4), "outer": {"type": "outer.yaml"}}, files=FILES)
    world.deliver_all()
    changed = {"type": "outer.yaml", "properties": {"v": "b"}}
    world.update("s", {"workers": group(10, "b", 4, pause=600), "outer": changed}, files=FILES)
    while world.messages:
        world.deliver()
    with world.database.borrow(hot=False) as db:
        stack = world.stack_row("s")
        progress.count(db, stack.id, stack.traversal, final=False)
    [row] = world.rows("SELECT counts, rollouts FROM progress WHERE stack_id = :id", id=stack.id)
    found = shown(world)
    assert row.counts == dict(found.counts)
    assert [item["batch"] for item in row.rollouts] == [item.batch for item in found.rollouts] == [1]


def test_a_large_tree_is_read_as_the_sweep_counted_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MAX_COUNTED_NODES", 8)
    world.create("s", {"workers": group(20, "a", 20), "slow": cloud_thing(looks=99)})
    while world.messages:
        world.deliver()
    world.elapse(60, "progress count")
    world.sweep.run()
    counted = shown(world)
    assert counted.total == 22
    world.update("s", {"workers": group(20, "b", 20, pause=60), "slow": cloud_thing(looks=99)})
    assert shown(world).total == 0  # another traversal


def test_a_tree_whose_count_was_slow_is_not_counted_on_request(world: World) -> None:
    world.create("s", {"outer": {"type": "outer.yaml"}, "slow": cloud_thing(looks=99)}, files=FILES)
    while world.messages:
        world.deliver()
    world.sweep.run()
    with world.database.borrow() as db:
        db.execute("UPDATE progress SET seconds = 1, counts = '{\"ready\": 5}'")
    assert dict(shown(world).counts) == {"ready": 5}


def test_a_nested_stack_of_an_earlier_action_does_not_count(world: World) -> None:
    world.create("s", {"outer": {"type": "outer.yaml"}, "a": test_resource()}, files=FILES)
    world.deliver_all()
    world.update("s", {"outer": {"type": "outer.yaml"}, "a": test_resource("new")}, files=FILES)
    world.deliver_all()
    assert numbers(shown(world)) == (1, 1)


def test_a_batched_create_counts_all_members(world: World) -> None:
    created = group(10, "a", 4)
    created["update_policy"] = {"batch_create": {"max_batch_size": 4, "pause_time": 600}}
    world.create("s", {"workers": created})
    while world.messages:
        world.deliver()
    [rollout] = shown(world).rollouts
    assert (rollout.batch, rollout.batches, rollout.updated, rollout.total) == (1, 3, 4, 10)
    assert numbers(shown(world)) == (4, 11)
