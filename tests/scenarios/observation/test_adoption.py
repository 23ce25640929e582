"""Adoption of the observed state: the patched template leaves the stack in sync and touches no object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.errors import InvalidRequest
from orchestrator.store.observation import reads
from tests.scenarios.observation.shelf import Shelf
from tests.scenarios.observation.test_convergence import GROUP, converge, made
from tests.scenarios.observation.test_repairs import BOX, CHEST, Chest, Healer
from tests.scenarios.world import World


@pytest.fixture
def healer(postgres_url: str) -> Iterator[Healer]:
    shelf = Shelf()
    types = shelf.types() | {Chest.name: Chest(shelf)}
    world = World(postgres_url, types=types, observation_interval_seconds=30)
    yield Healer(world, shelf)
    world.close()


def adopt(healer: Healer) -> Any:
    return converge(healer, {"adopt": True})["adoption"]


def test_the_patched_template_leaves_the_stack_in_step_and_touches_no_object(healer: Healer):
    uuid = healer.make(a=BOX, b=BOX, c=BOX, d=CHEST)
    objects = healer.shelf.objects
    objects[healer.id("a")]["label"] = "red"
    objects[healer.id("b")]["name"] = "renamed"  # generated, and not in the template
    objects[healer.id("d")]["size"] = 7  # cannot be updated in place
    healer.remove("c")
    plan = adopt(healer)
    assert plan["patch"] == [
        {"op": "replace", "path": "/resources/a/properties/label", "value": "red"},
        {"op": "add", "path": "/resources/b/properties/name", "value": "renamed"},
        {"op": "remove", "path": "/resources/c"},
        {"op": "add", "path": "/resources/d/properties/size", "value": 7},
    ]
    assert (plan["left"], plan["recorded"]) == ([], True)  # no round has seen the differences
    before = {id_: dict(found) for id_, found in objects.items()}
    healer.shelf.writes.clear()
    healer.world.update("s", plan["template"]["resources"])
    healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.shelf.writes == []
    assert objects == before
    healer.round()
    assert list(reads.deviations(healer.world.database, "p1", {})) == []
    assert converge(healer)["resources"] == []


def test_what_no_change_of_the_template_adopts_is_left(healer: Healer):
    outputs = {"id": {"value": {"get_resource": "b"}}}
    healer.world.create(
        "s", {"a": BOX, "b": BOX, "c": {**BOX, "depends_on": "d"}, "d": BOX, "g": GROUP}, outputs=outputs
    )
    healer.deliver()
    healer.shelf.objects[healer.id("a")]["error"] = "no host"
    for name in ("b", "d", "1"):
        healer.remove(name)
    plan = adopt(healer)
    assert plan["patch"] == []
    assert {left["path"]: left["reason"].partition(":")[0] for left in plan["left"]} == {
        "a": "an object in error is no desired state",
        "b": "output id refers to it",
        "d": "c refers to it",
        "g.1": "a nested stack defines it",
    }


def test_an_update_of_a_drifted_property_is_compared_with_the_object(healer: Healer):
    healer.make(a=CHEST, b=CHEST)
    for name in ("a", "b"):
        healer.shelf.objects[healer.id(name)]["size"] = 7
    healer.round()
    ids = healer.id("a"), healer.id("b")
    chest = {"type": "Shelf::Chest", "properties": {"label": "blue", "size": 7}}
    other = {"type": "Shelf::Chest", "properties": {"label": "blue", "size": 8}}
    healer.world.update("s", {"a": chest, "b": other})
    healer.deliver()
    assert (healer.id("a"), healer.id("b") != ids[1]) == (ids[0], True)


def test_a_plan_starts_nothing(healer: Healer):
    uuid = made(healer, a=BOX)
    healer.remove("a")
    assert adopt(healer)["patch"]
    assert healer.world.state(uuid) == "CREATE_COMPLETE"
    with pytest.raises(InvalidRequest):
        converge(healer, {"adopt": True, "plan": False})


def test_without_the_observation_an_update_with_converge_touches_no_object(healer: Healer):
    uuid = made(healer, a=BOX, b=CHEST)
    ids = healer.id("a"), healer.id("b")
    healer.shelf.objects[ids[0]]["label"] = "red"
    healer.shelf.objects[ids[1]]["size"] = 7  # cannot be updated in place
    plan = adopt(healer)
    assert not plan["recorded"]
    healer.shelf.writes.clear()
    healer.world.update("s", plan["template"]["resources"], converge=True)
    healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert (healer.shelf.writes, (healer.id("a"), healer.id("b"))) == ([], ids)
    assert converge(healer)["resources"] == []
