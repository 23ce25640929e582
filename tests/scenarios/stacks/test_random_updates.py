"""Random templates over random stacks at random moments, messages lost and repeated, workers dying: the
world ends up as the last accepted template says.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.errors import OrchestratorError
from orchestrator.resources.base import Context
from tests.scenarios.fake_cloud import Cloud, Crash
from tests.scenarios.world import World

NAMES = "abcdefg"
MOMENTS = ("create", "created", "update", "observe", "find", "delete")


def template(dice: random.Random) -> dict[str, Any]:
    """Return resources with requirements that go any way, as long as in no circle."""
    names = dice.sample(NAMES, dice.randint(1, len(NAMES)))
    resources: dict[str, Any] = {}
    for position, name in enumerate(names):
        above = dice.sample(names[:position], min(position, dice.randint(0, 2)))
        value: Any = dice.choice(["1", "2", "3"])
        if above:
            requests = (
                {"get_resource": above[0]} if dice.random() < 0.5 else {"get_attr": [above[0], "value"]}
            )
            value = {"list_join": ["-", [value, requests]]}
        resource_type = dice.choice(["Cloud::Thing", "Cloud::Server", "Cloud::Server", "OS::Heat::Value"])
        resources[name] = {"type": resource_type, "properties": {"value": value}}
        if resource_type != "OS::Heat::Value" and dice.random() < 0.5:
            resources[name]["properties"]["looks"] = dice.randint(0, 3)
        if len(above) > 1:
            resources[name]["depends_on"] = above[1:]
    return resources


def dying(dice: random.Random) -> Callable[[Context], None]:
    """Return a function that sometimes ends a worker."""

    def die(_: Context) -> None:
        if dice.random() < 0.04:
            raise Crash

    return die


def expected(resources: dict[str, Any], name: str, ids: dict[str, str]) -> str:
    """Return the value a resource must have, given everyone's physical id."""
    value = resources[name]["properties"]["value"]
    if isinstance(value, str):
        return value
    own, requests = value["list_join"][1]
    if "get_resource" in requests:
        return f"{own}-{ids[requests['get_resource']]}"
    return f"{own}-{expected(resources, requests['get_attr'][0], ids)}"


def check_world(world: World, cloud: Cloud, resources: dict[str, Any]) -> None:
    """The rows match the template and its values, and the cloud matches the rows."""
    rows = world.rows("SELECT name, type, physical_id, attributes, deposed FROM resource ORDER BY name")
    assert [row.name for row in rows] == sorted(resources)
    assert not any(row.deposed for row in rows)
    ids = {row.name: row.physical_id for row in rows}
    for row in rows:
        assert row.type == resources[row.name]["type"]
        assert row.attributes["value"] == expected(resources, row.name, ids)
    things = {row.physical_id for row in rows if row.type.startswith("Cloud::")}
    assert set(cloud.things) == things


def go_on(world: World, count: int) -> None:
    """Deliver some messages in any order; a worker that dies takes its message with it."""
    for _ in range(count):
        if not world.messages and not world.sweep_once():
            return
        message = world.messages.pop(world.random.randrange(len(world.messages)))
        if world.random.random() < 0.15:
            world.messages.append(message)
        if world.random.random() < 0.1:
            continue
        try:
            world.deliver_one(message)
        except Crash:
            world.engine = world.new_engine()
            world.forget_leases()


def come_to_rest(world: World, cloud: Cloud) -> None:
    cloud.on.clear()
    world.forget_leases()
    world.deliver_all(shuffle=True, repeat=0.1, lose=0.1)


@pytest.mark.parametrize("seed", range(12))
def test_the_last_template_wins(postgres_url: str, seed: int) -> None:
    cloud = Cloud()
    world = World(postgres_url, seed=seed, types=cloud.types())
    try:
        live_through(world, cloud, random.Random(seed))
    finally:
        world.close()


def live_through(world: World, cloud: Cloud, dice: random.Random) -> None:
    """Make a stack, change it a few times in the middle of things, and remove it."""
    last = template(dice)
    uuid = world.create("s", last)
    for _ in range(dice.randint(3, 7)):
        cloud.on.update({moment: dying(dice) for moment in MOMENTS})
        go_on(world, dice.randint(0, 25))
        match dice.random():
            case chance if chance < 0.75:
                last = template(dice)
                world.update("s", last)
            case chance if chance < 0.85:
                try:
                    world.act("s", dice.choice(["cancel_update", "cancel_without_rollback"]))
                except OrchestratorError:
                    continue
                last = template(dice)
                world.update("s", last)
            case _:
                come_to_rest(world, cloud)
                assert world.state(uuid).endswith("_COMPLETE")
                check_world(world, cloud, last)
    go_on(world, dice.randint(0, 25))
    come_to_rest(world, cloud)
    assert world.state(uuid).endswith("_COMPLETE")
    check_world(world, cloud, last)
    world.delete("s")
    come_to_rest(world, cloud)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {}
