"""What is open was begun for some template, with what its requirements were then; that may be over by now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator


@pytest.fixture(scope="module")
def simulator(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


@pytest.fixture
def world(simulator: Simulator) -> Simulator:
    simulator.reset(1)
    return simulator


def test_a_change_begun_for_what_replaced_a_requirement_is_not_one_for_the_requirement(world: Simulator):
    above = thing(on=[{"get_resource": "below"}], looks=5)
    first = {"below": thing(type="Sim::Rigid", a="1"), "above": above}
    uuid = world.create("s", first)
    world.rest()
    world.update("s", {"below": thing(type="Sim::Rigid", a="2"), "above": above})
    world.go(until=lambda: "above" in world.done("update"))
    world.update("s", first)  # the change is still open, and for another than `below` is again
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.ids()["below"] == "below-1"
    world.verify(first)
