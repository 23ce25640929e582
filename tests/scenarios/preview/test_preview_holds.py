"""A preview agrees with the following update: random templates over random stacks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.operations.preview.update import UpdatePreview
from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.preview.test_preview import foreseen, names
from tests.scenarios.stacks.test_random_updates import come_to_rest, go_on, template
from tests.scenarios.world import World

WEIGHT = {"unchanged": 0, "updated": 1, "replaced": 2}
PHYSICAL_IDS = "SELECT name, physical_id FROM resource WHERE NOT deposed"


def happened(world: World, before: Mapping[str, str], reported: int, uuid: str) -> dict[str, str]:
    """Return the effect of an update on each name, from the physical ids before it and the events since."""
    after = {row.name: row.physical_id for row in world.rows(PHYSICAL_IDS)}
    events = world.events(uuid)[reported:]
    result = dict.fromkeys(before.keys() - after.keys(), "deleted")
    for name, id_ in after.items():
        if name not in before:
            result[name] = "added"
        elif before[name] != id_:
            result[name] = "replaced"
        else:
            result[name] = "updated" if f"{name} UPDATE_COMPLETE" in events else "unchanged"
    return result


def compared(preview: UpdatePreview, did: dict[str, str]) -> tuple[int, int]:
    """Compare a preview with the update; return the number of correct forecasts, and of all forecasts."""
    exact = said = 0
    for name in preview.unchanged:
        assert did.pop(name) == "unchanged", name
    for turn, items in preview.items.items():
        for item in items:
            actual, said = did.pop(item.expected.name), said + 1
            exact += actual == turn
            if item.expected.certain:
                assert actual == turn, item
            else:
                assert WEIGHT[actual] <= WEIGHT[turn], item
    assert did == {}
    return exact, said


def changed_and_compared(
    world: World, cloud: Cloud, uuid: str, expected: dict[str, Any], **request: Any
) -> tuple[int, int]:
    before = {row.name: row.physical_id for row in world.rows(PHYSICAL_IDS)}
    reported, preview = len(world.events(uuid)), foreseen(world, expected, **request)
    world.update("s", expected, **request)
    come_to_rest(world, cloud)
    return compared(preview, happened(world, before, reported, uuid))


@pytest.mark.parametrize("seed", range(6))
def test_the_update_matches_its_preview(postgres_url: str, seed: int) -> None:
    cloud, dice = Cloud(), random.Random(seed)
    world = World(postgres_url, seed=seed, types=cloud.types())
    exact = said = 0
    try:
        uuid = world.create("s", template(dice))
        come_to_rest(world, cloud)
        for _ in range(5):
            right, spoken = changed_and_compared(world, cloud, uuid, template(dice))
            exact, said = exact + right, said + spoken
    finally:
        world.close()
    assert exact / said > 0.8


def machines(dice: random.Random) -> dict[str, Any]:
    """Return things with an observable state."""
    made = template(dice)
    for snippet in made.values():
        if snippet["type"] == "Cloud::Server":
            snippet["type"] = "Cloud::Machine"
    return made


@pytest.mark.parametrize("seed", range(4))
def test_an_update_from_the_observed_state_matches_its_preview(postgres_url: str, seed: int) -> None:
    cloud, dice = Cloud(), random.Random(seed)
    world = World(postgres_url, seed=seed, types=cloud.types())
    try:
        expected = machines(dice)
        uuid = world.create("s", expected)
        come_to_rest(world, cloud)
        for _ in range(4):
            for thing in list(cloud.things):
                match dice.random():
                    case chance if chance < 0.2:
                        del cloud.things[thing]
                    case chance if chance < 0.5:
                        cloud.values[thing] = f"drifted {dice.random()}"
            expected = expected if dice.random() < 0.5 else machines(dice)
            changed_and_compared(world, cloud, uuid, expected, converge=True)
    finally:
        world.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_preview_can_be_asked_for_at_any_moment(postgres_url: str, seed: int) -> None:
    cloud, dice = Cloud(), random.Random(seed)
    world = World(postgres_url, seed=seed, types=cloud.types())
    try:
        world.create("s", template(dice))
        for _ in range(8):
            go_on(world, dice.randint(0, 12))
            expected = template(dice)
            preview = foreseen(world, expected)
            listed = [item.expected.name for held in preview.items.values() for item in held]
            assert {*listed, *preview.unchanged} >= expected.keys()
            assert expected.keys().isdisjoint(
                item.expected.name for item in preview.items["deleted"] if not item.expected.because
            )
            world.update("s", expected)
        come_to_rest(world, cloud)
        assert names(foreseen(world, expected)) == {"unchanged": set(expected)}
    finally:
        world.close()
