"""A worker dies at every single moment of the life of a tree of stacks: made, changed, checked, suspended,
resumed, copied, rolled back in the middle of an update, deleted. At any moment, the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator
from tests.scenarios.templates import text_of

INNER, OUTER, OTHER = "file:///inner.yaml", "file:///outer.yaml", "file:///other.yaml"
GIVEN = {"get_param": "P"}
LEAF = {"x": thing(a=GIVEN), "y": thing("x", type="Sim::Rigid", a={"get_attr": ["x", "a"]})}
FILES = {
    INNER: text_of(LEAF, {"get_attr": ["y", "a"]}),
    OTHER: text_of({"z": thing(a=GIVEN, looks=1)}, {"get_attr": ["z", "a"]}),
    OUTER: text_of(
        {"in": {"type": INNER, "properties": {"P": GIVEN, "F": "f"}}, "w": thing("in", a=GIVEN)},
        {"get_attr": ["in", "a"]},
    ),
}


def stack_of(url: str, value: Any) -> dict[str, Any]:
    return {"type": url, "properties": {"P": value, "F": "f"}}


FIRST = {
    "a": thing(a="1"),
    "outer": stack_of(OUTER, {"get_attr": ["a", "a"]}),
    "b": thing(type="Sim::Rigid", a={"get_attr": ["outer", "a"]}),
    "other": stack_of(OTHER, "1"),
}
SECOND = {
    "a": thing(a="2"),  # passes through the tree: updates in place, and replaces rigid things
    "outer": FIRST["outer"],
    "b": FIRST["b"],
    "other": stack_of(INNER, "1"),  # another type: another stack
}
PARTS = 12


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


def live(world: Simulator, crash_at: int | None) -> None:
    world.reset(1)
    world.crash_at = crash_at
    uuid = world.create("s", FIRST, files=FILES)
    came_to_rest(world, uuid, "CREATE_COMPLETE", FIRST)
    world.update("s", SECOND, files=FILES)
    came_to_rest(world, uuid, "UPDATE_COMPLETE", SECOND)
    for action in ("check", "suspend", "resume"):
        world.act("s", action)
        came_to_rest(world, uuid, f"{action.upper()}_COMPLETE")
    taken = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += taken.messages
    came_to_rest(world, uuid, "SNAPSHOT_COMPLETE", SECOND)
    world.update("s", FIRST, files=FILES)
    for _ in range(12):
        world.step()
    world.act("s", "cancel_update")
    came_to_rest(world, uuid, "ROLLBACK_COMPLETE", SECOND)
    world.delete("s")
    came_to_rest(world, uuid, "DELETE_COMPLETE", {})
    assert world.provider.copies == {}


def came_to_rest(world: Simulator, uuid: str, state: str, resources: dict[str, Any] | None = None) -> None:
    world.rest()
    assert world.state(uuid) == state
    if resources is not None:
        world.verify(resources, FILES)


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
