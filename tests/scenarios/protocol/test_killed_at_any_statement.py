"""A worker dies at every single moment of a stack's life: before and after each statement, before and after
each call of the provider. At any moment, the stack's life continues as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator

FIRST = {
    "a": thing(a="1"),
    "b": thing(type="Sim::Rigid", a={"get_attr": ["a", "a"]}, on=[{"get_resource": "a"}]),
    "c": thing("a", looks=1),
    "v": {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "b"}}},
}
SECOND = {
    "a": thing(a="2"),  # changed in place
    "b": FIRST["b"],  # replaced: a required attribute has changed
    "v": FIRST["v"],
    "d": thing("v", a="1"),
}
PARTS = 20


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


def live(world: Simulator, crash_at: int | None) -> None:
    """Create, update, roll back in the middle of a second update, delete; with a death at any moment."""
    world.reset(1)
    world.crash_at = crash_at
    uuid = world.create("s", FIRST)
    came_to_rest(world, uuid, "CREATE_COMPLETE", FIRST)
    world.update("s", SECOND)
    came_to_rest(world, uuid, "UPDATE_COMPLETE", SECOND)
    ids = world.ids()
    world.update("s", FIRST)
    for _ in range(6):
        world.step()
    world.act("s", "cancel_update")
    came_to_rest(world, uuid, "ROLLBACK_COMPLETE", SECOND)
    now = world.ids()
    assert {name: now[name] for name in "abv"} == {name: ids[name] for name in "abv"}  # d may have gone
    world.delete("s")
    came_to_rest(world, uuid, "DELETE_COMPLETE", {})


def came_to_rest(world: Simulator, uuid: str, state: str, resources: dict[str, Any]) -> None:
    world.rest()
    assert world.state(uuid) == state
    world.verify(resources)


@pytest.fixture(scope="module")
def moments(world: Simulator) -> int:
    """Return how many there are in the whole life."""
    live(world, None)
    assert world.crashes == 0
    return world.moments


@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_that_dies_is_not_missed(world: Simulator, moments: int, part: int):
    live(world, 1 + part * moments // PARTS)
    assert world.crashes == 1


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_that_dies_at_any_moment_is_not_missed(world: Simulator, moments: int, part: int):
    for moment in range(1 + part, moments, PARTS):
        live(world, moment)
