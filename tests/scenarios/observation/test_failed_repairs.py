"""Repairs whose update fails (operations/adr/0019)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.observation.shelf import Shelf
from tests.scenarios.observation.test_repairs import BOX, Healer
from tests.scenarios.world import World


@pytest.fixture
def healer(postgres_url: str) -> Iterator[Healer]:
    shelf = Shelf()
    world = World(postgres_url, types=shelf.types(), observation_interval_seconds=30)
    yield Healer(world, shelf)
    world.close()


def test_a_failed_repair_in_place_is_repeated_after_pauses_and_given_up_once(healer: Healer):
    uuid = healer.make(a=BOX)
    healer.policy("heal")
    id_ = healer.id("a")
    healer.shelf.objects[id_]["label"] = "red"
    healer.round()
    healer.shelf.refuses = True
    for n in range(5):
        assert healer.heal()[-1] == ("a", "update", "waiting" if n else "started")
        if n:
            assert "the pause doubles" in healer.reason()
            healer.db.execute("UPDATE repair SET started_at = started_at - interval '20 minutes'")
            assert healer.heal()[-1] == ("a", "update", "started")
        assert healer.world.state(uuid) == "UPDATE_FAILED"
        assert healer.settle()[n] == ("a", "update", "failed")
    for _ in range(2):
        assert healer.heal()[-1] == ("a", "update", "given_up")
    assert len(healer.repairs()) == 6
    reasons = healer.world.event_reasons(uuid, "a")
    assert sum("given up" in text for text in reasons) == 1
    assert (healer.id("a"), healer.shelf.objects[id_]["label"]) == (id_, "red")


def test_a_repair_that_succeeds_after_failures_ends_the_fault(healer: Healer):
    uuid = healer.make(a=BOX)
    healer.policy("heal")
    healer.shelf.objects[healer.id("a")]["label"] = "red"
    healer.round()
    healer.shelf.refuses = True
    healer.heal()
    healer.settle()
    healer.shelf.refuses = False
    healer.db.execute("UPDATE repair SET started_at = started_at - interval '20 minutes'")
    assert healer.heal()[-1] == ("a", "update", "started")
    assert healer.settle()[-1] == ("a", "update", "done")
    assert healer.shelf.objects[healer.id("a")]["label"] == "blue"
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"


def test_the_failed_update_of_a_user_is_not_repaired(healer: Healer):
    healer.make(a=BOX)
    healer.policy("heal")
    healer.shelf.refuses = True
    healer.world.update("s", {"a": {**BOX, "properties": {"label": "green"}}})
    healer.deliver()
    healer.shelf.refuses = False
    for _ in range(2):
        healer.round()
    assert healer.heal() == []
