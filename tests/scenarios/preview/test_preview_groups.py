"""Previews of groups whose definition contains values that are not known yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.preview.test_preview_nested import created, lists, resource_named, updated
from tests.scenarios.world import World


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    """An installation with a cloud: the new outputs of its things are not known before an update."""
    cloud = Cloud()
    made = World(postgres_url, types=cloud.types())
    yield made
    made.close()


def grouped(count: int, value: str, kind: str = "OS::Heat::ResourceGroup") -> dict[str, Any]:
    """A thing, and a group of members that use its output."""
    member = {"type": "Cloud::Thing", "properties": {"value": {"get_attr": ["a", "value"]}}}
    if kind == "OS::Heat::ResourceGroup":
        properties: dict[str, Any] = {"count": count, "resource_def": member}
    else:
        properties = {"min_size": 0, "max_size": 9, "desired_capacity": count, "resource": member}
    return {
        "a": {"type": "Cloud::Thing", "properties": {"value": value}},
        "g": {"type": kind, "properties": properties},
    }


def members(world: World) -> set[str]:
    rows = world.rows("SELECT r.name FROM resource r JOIN stack s ON s.id = r.stack_id WHERE s.depth > 0")
    return {row.name for row in rows}


@pytest.mark.parametrize("kind", ["OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup"])
@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_additions_and_removals_are_listed_and_kept_members_may_change(world: World, count: int, kind: str):
    world.create("s", grouped(2, "one", kind))
    world.deliver_all()
    before = members(world)
    found = lists(updated(world, grouped(count, "two", kind)))["g"]
    world.update("s", grouped(count, "two", kind))
    world.deliver_all()
    after = members(world)
    assert len(found.get("added", [])) == len(after - before)
    assert set(found.get("deleted", [])) == before - after
    assert set(found.get("updated", [])) == before & after


def test_kept_members_are_no_certain_change(world: World):
    world.create("s", grouped(1, "one"))
    world.deliver_all()
    preview = updated(world, grouped(2, "two"))
    [inside] = [one for one in preview.nested if one.parent == "g"]
    [kept] = inside.items["updated"]
    assert (kept.expected.name, kept.expected.certain) == ("0", False)
    assert "not known yet" in kept.expected.because


def test_the_members_of_a_new_group_are_listed(world: World):
    world.create("s", {"a": grouped(0, "one")["a"]})
    world.deliver_all()
    found = lists(updated(world, grouped(3, "two")))
    assert found["g"] == {"added": ["0", "1", "2"]}


def test_a_preview_of_a_create_names_the_properties_that_are_not_known(world: World):
    resources = {
        "a": {"type": "Cloud::Thing", "properties": {"value": "one"}},
        "b": {"type": "Cloud::Thing", "properties": {"value": {"get_attr": ["a", "value"]}}},
    }
    result = created(world, resources)
    assert resource_named(result.resources, "b").unknown == ["value"]
    assert resource_named(result.resources, "a").unknown == []


def test_a_new_group_whose_size_is_not_known_lists_no_members(world: World):
    world.create("s", {"a": grouped(0, "1")["a"]})
    world.deliver_all()
    resources = grouped(3, "2")
    resources["g"]["properties"]["count"] = {"get_attr": ["a", "value"]}
    found = lists(updated(world, resources))
    assert found["root"]["added"] == ["g"]
    assert not found.get("g", {}).get("added")
