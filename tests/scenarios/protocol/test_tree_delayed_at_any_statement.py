"""A worker dies at every moment while a tree of stacks is copied, restored, let go of and taken over: no copy
and no thing is made twice or left behind, and every stack of it is there again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson
import pytest

from orchestrator.operations.adoption import adopt_abandon
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.stacks import create_delete
from tests.scenarios.protocol.test_tree_killed_at_any_statement import FILES, FIRST, SECOND
from tests.scenarios.simulator import Simulator

PARTS = 8


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database(), enable_stack_abandon=True, enable_stack_adopt=True)
    yield made
    made.close()


def live(world: Simulator, crash_at: int | None) -> None:
    world.reset(1)
    world.crash_at = crash_at
    uuid, provider = world.create("s", FIRST, files=FILES), world.provider
    came_to(world, uuid, "CREATE_COMPLETE")
    taken = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += taken.messages
    came_to(world, uuid, "SNAPSHOT_COMPLETE")
    assert sorted(provider.copies.values()) == sorted(provider.things)
    world.update("s", SECOND, files=FILES)
    came_to(world, uuid, "UPDATE_COMPLETE")
    world.verify(SECOND, FILES)
    snapshot = str(taken.snapshot.uuid)
    world.messages += snapshots.restore(world.context, world.stack_row("s"), snapshot)
    came_to(world, uuid, "RESTORE_COMPLETE")
    world.verify(FIRST, FILES)
    snapshots.remove(world.context, world.stack_row("s"), snapshot)
    for _ in range(6):  # each waits for those below
        came_to(world, uuid, "RESTORE_COMPLETE")
    assert (provider.copies, world.rows("SELECT 1 FROM snapshot")) == ({}, [])
    abandoned = adopt_abandon.abandon(world.context, world.stack_row("s"))
    with abandoned.document as document:
        data = document.read().decode()
    things, done = set(provider.things), len(provider.log)
    world.messages += abandoned.messages
    came_to(world, uuid, "DELETE_COMPLETE")
    accepted = create_delete.create(
        world.context, Body(orjson.dumps({"stack_name": "s", "adopt_stack_data": data}))
    )
    world.messages += accepted.messages
    came_to(world, accepted.uuid, "ADOPT_COMPLETE")
    assert (set(provider.things), len(provider.log)) == (things, done)
    world.verify(FIRST, FILES)
    world.delete("s")
    came_to(world, accepted.uuid, "DELETE_COMPLETE")
    world.verify({})


def came_to(world: Simulator, uuid: str, state: str) -> None:
    world.rest()
    assert world.state(uuid) == state


@pytest.fixture(scope="module")
def moments(world: Simulator) -> int:
    """Return how many there are in the whole life."""
    live(world, None)
    return world.moments


@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_that_dies_is_not_missed(world: Simulator, moments: int, part: int):
    live(world, 1 + part * moments // PARTS)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_that_dies_at_any_moment_is_not_missed(world: Simulator, moments: int, part: int):
    for moment in range(1 + part, moments, PARTS):
        live(world, moment)
