"""However many workers there are, one sweeps in each interval, and none of them is needed for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from orchestrator.operations.maintenance.sweep import Sweep
from tests.scenarios.world import World, test_resource


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url, re_enqueue_seconds=0)
    yield made
    made.close()


@pytest.fixture
def worker(world: World) -> Iterator[Callable[[float], Sweep]]:
    """Return what starts the sweep of a worker of its own."""
    made: list[Sweep] = []

    def start(apart: float) -> Sweep:
        made.append(Sweep(world.database, world.settings, world.types, world.cipher, apart))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_second_worker_does_not_sweep_again_so_soon(world: World, worker: Callable[[float], Sweep]) -> None:
    world.create("s", {"a": test_resource()})
    world.messages.clear()  # lost on the way
    first, second = worker(60.0), worker(60.0)
    assert first.run() != []
    assert second.run() == []
    assert first.run() == []
    assert worker(0.0).run() != []


def test_whoever_comes_when_it_is_time_sweeps(world: World, worker: Callable[[float], Sweep]) -> None:
    world.create("s", {"a": test_resource()})
    world.messages.clear()
    assert worker(60.0).run() != []
    with world.database.connect() as db:
        db.execute("UPDATE sweep_turn SET begun_at = begun_at - interval '61 s'")
    assert worker(60.0).run() != []
