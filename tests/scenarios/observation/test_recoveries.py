"""Repairs of failed objects: first by their type, then by a replacement (operations/adr/0019)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.errors import ProviderError, ProviderInUse, ProviderSilent
from orchestrator.resources.base import Context, ResourceType
from tests.scenarios.fake_cloud import Crash
from tests.scenarios.observation.shelf import Box, Shelf
from tests.scenarios.observation.test_convergence import converge, found
from tests.scenarios.observation.test_repairs import Healer
from tests.scenarios.world import HOUR, World

GLUED: dict[str, Any] = {"type": "Shelf::GluedBox", "properties": {"label": "blue"}}


class GluedBox(Box):
    """A box that can be repaired, and holds data."""

    name = "Shelf::GluedBox"
    stateful = True
    effect = "heals"

    def recover(self, ctx: Context, physical_id: str) -> None:
        self.shelf.writes.append(f"recover {physical_id}")
        match self.effect:
            case "heals":
                del self.shelf.objects[physical_id]["error"]
            case "works":
                self.shelf.objects[physical_id]["busy"] = True
            case "dies":
                raise Crash
            case "silent":
                raise ProviderSilent("no answer")
            case "busy":
                raise ProviderInUse("a task is in progress")
            case "refuses":
                raise ProviderError("not in this state")


class OtherBox(GluedBox):
    """The same without data."""

    name = "Shelf::OtherBox"
    stateful = False


@pytest.fixture
def healer(postgres_url: str) -> Iterator[Healer]:
    shelf = Shelf()
    types: dict[str, ResourceType] = {kind.name: kind(shelf) for kind in (GluedBox, OtherBox)}
    world = World(postgres_url, types=shelf.types() | types, observation_interval_seconds=30)
    yield Healer(world, shelf)
    world.close()


def glued(healer: Healer, effect: str = "heals", kind: str = "Shelf::GluedBox") -> str:
    """Create a box whose repair has an effect, with an object in error."""
    box = healer.world.types[kind]
    box.effect = effect  # type: ignore[attr-defined]
    uuid = healer.make(a={**GLUED, "type": kind})
    healer.policy("heal")
    healer.shelf.writes.clear()
    fail(healer)
    return uuid


def fail(healer: Healer) -> None:
    """Let the object fail, and observe it twice."""
    healer.shelf.objects[healer.id("a")]["error"] = "torn"
    for _ in range(2):
        healer.round()


def test_an_object_in_error_is_recovered_and_stays_the_same(healer: Healer):
    uuid = glued(healer)
    id_ = healer.id("a")
    assert healer.heal() == [("a", "recover", "started")]
    assert (healer.id("a"), healer.shelf.writes) == (id_, [f"recover {id_}"])
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.settle() == [("a", "recover", "done")]


def test_one_observation_is_not_enough(healer: Healer):
    glued(healer)
    healer.heal()
    healer.settle()
    healer.shelf.writes.clear()
    healer.shelf.objects[healer.id("a")]["error"] = "torn again"
    healer.round()
    assert healer.heal() == [("a", "recover", "done")]
    assert healer.shelf.writes == []


def test_the_object_is_not_in_error_while_the_provider_works_on_it(healer: Healer):
    uuid = glued(healer, "works")
    id_ = healer.id("a")
    healer.heal()
    for _ in range(3):
        healer.world.retry()
        healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_IN_PROGRESS"
    healer.shelf.objects[id_].pop("error")
    healer.world.retry()
    healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.shelf.writes == [f"recover {id_}"]


@pytest.mark.parametrize("effect", ["none", "refuses"])
def test_without_an_effect_the_next_repair_is_a_replacement(healer: Healer, effect: str):
    uuid = glued(healer, effect, "Shelf::OtherBox")
    old = healer.id("a")
    healer.heal()
    assert healer.world.state(uuid) == "UPDATE_FAILED"
    assert healer.settle() == [("a", "recover", "failed"), ("a", "replace", "waiting")]
    healer.db.execute("UPDATE repair SET started_at = started_at - interval '2 minutes'")
    assert healer.heal()[1:] == [("a", "replace", "started")]
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.shelf.boxes() == [healer.id("a")] != [old]
    assert healer.shelf.writes == [f"recover {old}", f"create {healer.id('a')}", f"delete {old}"]


def test_a_replacement_of_data_after_a_recovery_waits_for_an_approval(healer: Healer):
    glued(healer, "none")
    healer.heal()
    assert healer.settle()[1:] == [("a", "replace", "pending")]


@pytest.mark.parametrize("effect", ["silent", "busy"])
def test_a_recovery_without_an_answer_or_refused_is_sent_again(healer: Healer, effect: str):
    uuid = glued(healer, effect)
    id_ = healer.id("a")
    healer.heal()
    assert healer.world.state(uuid) == "UPDATE_IN_PROGRESS"
    healer.world.types["Shelf::GluedBox"].effect = "heals"  # type: ignore[attr-defined]
    healer.world.retry()
    healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.shelf.writes == [f"recover {id_}"] * 2


def test_a_recovery_whose_worker_died_is_sent_again(healer: Healer):
    uuid = glued(healer, "dies")
    world = healer.world
    with pytest.raises(Crash):
        healer.heal()
    box = world.types["Shelf::GluedBox"]
    box.effect = "heals"  # type: ignore[attr-defined]
    world.engine = world.new_engine()
    world.forget_leases()
    world.elapse(HOUR, "lost lease")
    world.retry(3)
    healer.deliver()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.shelf.writes == [f"recover {healer.id('a')}"] * 2


def test_a_recovery_on_request_is_followed_by_a_replacement(healer: Healer):
    uuid = glued(healer, "none", "Shelf::OtherBox")
    old = healer.id("a")
    assert found(converge(healer, {"plan": True})) == {"a": ("FAILED", "recover")}
    converge(healer)
    healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_FAILED"
    assert found(converge(healer)) == {"a": ("FAILED", "replace")}
    healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.shelf.boxes() == [healer.id("a")] != [old]
