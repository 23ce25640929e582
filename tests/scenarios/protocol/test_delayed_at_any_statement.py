"""A worker dies at every single moment while a stack is copied, restored, abandoned and adopted. At no
moment is a copy or a thing created twice or left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson
import pytest

from orchestrator.operations.adoption import adopt_abandon
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.stacks import create_delete
from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator

FIRST = {
    "a": thing(a="1"),
    "b": thing(type="Sim::Rigid", a={"get_attr": ["a", "a"]}, on=[{"get_resource": "a"}]),
    "v": {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "b"}}},
}
SECOND = {"a": thing(a="2"), "b": FIRST["b"], "v": FIRST["v"], "d": thing("v", a="1")}
MOMENTS = 800  # of the whole life; `test_there_are_no_more_moments_than_those` says when that is too few
STRIDE = 128


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database(), enable_stack_abandon=True, enable_stack_adopt=True)
    yield made
    made.close()


def live(world: Simulator, crash_at: int | None) -> None:
    """Create, snapshot, update, restore, delete the snapshots, abandon, adopt, delete; with a death at any
    moment.
    """
    world.reset(1)
    world.crash_at = crash_at
    uuid, provider = world.create("s", FIRST), world.provider
    came_to(world, uuid, "CREATE_COMPLETE")
    taken = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += taken.messages
    came_to(world, uuid, "SNAPSHOT_COMPLETE")
    assert sorted(provider.copies.values()) == sorted(provider.things)
    world.update("s", SECOND)
    came_to(world, uuid, "UPDATE_COMPLETE")
    world.verify(SECOND)
    snapshot = str(taken.snapshot.uuid)
    world.messages += snapshots.restore(world.context, world.stack_row("s"), snapshot)
    came_to(world, uuid, "RESTORE_COMPLETE")
    world.verify(FIRST)
    snapshots.remove(world.context, world.stack_row("s"), snapshot)
    came_to(world, uuid, "RESTORE_COMPLETE")
    assert (provider.copies, world.rows("SELECT 1 FROM snapshot")) == ({}, [])
    abandoned = adopt_abandon.abandon(world.context, world.stack_row("s"))
    with abandoned.document as document:
        data = document.read().decode()
    ids, done = world.ids(), len(provider.log)
    world.messages += abandoned.messages
    came_to(world, uuid, "DELETE_COMPLETE")
    body = orjson.dumps({"stack_name": "s", "adopt_stack_data": data})
    accepted = create_delete.create(world.context, Body(body))
    world.messages += accepted.messages
    came_to(world, accepted.uuid, "ADOPT_COMPLETE")
    assert (world.ids(), len(provider.log)) == (ids, done)
    world.verify(FIRST)
    world.delete("s")
    came_to(world, accepted.uuid, "DELETE_COMPLETE")
    world.verify({})


def came_to(world: Simulator, uuid: str, state: str) -> None:
    world.rest()
    assert world.state(uuid) == state


def test_there_are_no_more_moments_than_those(world: Simulator):
    live(world, None)
    assert MOMENTS - 60 < world.moments <= MOMENTS


@pytest.mark.parametrize("moment", range(1, MOMENTS, STRIDE))
def test_a_worker_that_dies_is_not_missed(world: Simulator, moment: int):
    live(world, moment)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, STRIDE))
def test_a_worker_that_dies_at_any_moment_is_not_missed(world: Simulator, first: int):
    for moment in range(1 + first, MOMENTS, STRIDE):
        live(world, moment)
