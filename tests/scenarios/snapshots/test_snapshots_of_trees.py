"""A snapshot of a stack includes all its descendants: taken, deleted and restored together."""

from __future__ import annotations

from typing import Any

import orjson

from orchestrator.operations.snapshots import snapshots
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.snapshots.snapshot_requests import found, restore, take
from tests.scenarios.world import World

URL, OUTER = "file:///child.yaml", "file:///outer.yaml"
COPIED = "Cloud::Machine"


def text(resources: dict[str, Any], **options: Any) -> str:
    return orjson.dumps({"heat_template_version": "2021-04-16", "resources": resources, **options}).decode()


def files(value: str) -> dict[str, str]:
    """A template of two external things, the first of which can be copied, and a template that nests it."""
    child = {"disk": cloud_thing(type=COPIED, value=value), "plain": cloud_thing(value=value)}
    return {URL: text(child), OUTER: text({"inner": {"type": URL}})}


TREE = {"child": {"type": URL}, "outer": {"type": OUTER}}


def made(world: World) -> str:
    uuid = world.create("s", TREE, files=files("v"))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def below(world: World) -> dict[str, str]:
    """The states of the stacks below, of the youngest by the resources that they stand for."""
    query = """SELECT parent_resource AS name, action || '_' || status AS state FROM stack
        WHERE owner_id IS NOT NULL ORDER BY id"""
    return {row.name: row.state for row in world.rows(query)}


def properties(world: World) -> list[dict[str, Any]]:
    rows = world.rows("SELECT properties AS p FROM resource WHERE NOT deposed AND name = 'disk' ORDER BY id")
    return [{key: row.p.get(key) for key in ("value", "source")} for row in rows]


def test_a_snapshot_includes_all_descendants(world: World, cloud: Cloud) -> None:
    uuid = made(world)
    snapshot = take(world)
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "SNAPSHOT_COMPLETE"
    assert below(world) == dict.fromkeys(("child", "outer", "inner"), "SNAPSHOT_COMPLETE")
    assert found(world, snapshot).status == "COMPLETE"
    assert len(cloud.copies) == 2
    states = world.rows("SELECT status FROM snapshot")
    assert [row.status for row in states] == ["COMPLETE"] * 4


def test_removing_it_removes_those_below_and_their_copies(world: World, cloud: Cloud) -> None:
    made(world)
    snapshot = take(world)
    world.deliver_all()
    snapshots.remove(world.context, world.stack_row("s"), snapshot)
    for _ in range(12):
        world.sweep_once()
    assert cloud.copies == {}
    assert world.rows("SELECT 1 FROM snapshot") == []


def test_a_snapshot_is_listed_until_those_below_are_gone(world: World, cloud: Cloud) -> None:
    made(world)
    snapshot = take(world)
    world.deliver_all()
    snapshots.remove(world.context, world.stack_row("s"), snapshot)
    world.sweep_once()
    remaining = len(world.rows("SELECT 1 FROM snapshot"))
    assert found(world, snapshot).action == "DELETE"
    assert remaining > 1


def test_a_restore_brings_back_descendants_too(world: World, cloud: Cloud) -> None:
    uuid = made(world)
    snapshot = take(world)
    world.deliver_all()
    world.update("s", TREE, files=files("w"))
    world.deliver_all()
    assert [item["value"] for item in properties(world)] == ["w", "w"]
    restore(world, snapshot)
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "RESTORE_COMPLETE"
    states = below(world)
    assert (states["child"], states["inner"]) == ("RESTORE_COMPLETE", "RESTORE_COMPLETE")
    found_ = properties(world)
    assert [item["value"] for item in found_] == ["v", "v"]
    assert {item["source"] for item in found_} == set(cloud.copies)
    assert sorted(value for id_, value in cloud.values.items() if id_ in cloud.things) == ["v"] * 4


def test_nested_resources_are_restored_although_the_parent_is_unchanged(world: World, cloud: Cloud) -> None:
    uuid = made(world)
    snapshot = take(world)
    world.deliver_all()
    restore(world, snapshot)
    world.deliver_all()
    assert world.state(uuid) == "RESTORE_COMPLETE"
    assert {item["source"] for item in properties(world)} == set(cloud.copies)


def test_a_missing_child_is_recreated(world: World, cloud: Cloud) -> None:
    uuid = made(world)
    snapshot = take(world)
    world.deliver_all()
    world.update("s", {"outer": {"type": OUTER}}, files=files("v"))
    world.deliver_all()
    restore(world, snapshot)
    world.deliver_all()
    assert world.state(uuid) == "RESTORE_COMPLETE"
    assert below(world)["child"] == "CREATE_COMPLETE"
    assert sorted(item["source"] or "" for item in properties(world))[0] == ""


def test_a_stack_is_deleted_with_the_snapshots_of_its_tree(world: World, cloud: Cloud) -> None:
    uuid = made(world)
    take(world)
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert (cloud.copies, cloud.things) == ({}, {})


def test_an_interrupted_snapshot_is_deleted_with_its_partial_copies(world: World, cloud: Cloud) -> None:
    uuid = made(world)
    snapshot = take(world)
    world.deliver(9)
    world.update("s", TREE, files=files("w"))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert found(world, snapshot).status == "FAILED"
    snapshots.remove(world.context, world.stack_row("s"), snapshot)
    for _ in range(12):
        world.sweep_once()
    assert (cloud.copies, world.rows("SELECT 1 FROM snapshot")) == ({}, [])
