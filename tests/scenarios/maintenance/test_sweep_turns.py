"""With any number of workers, a single worker sweeps in each interval, and any worker can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from orchestrator.operations.maintenance.sweep import Sweep
from orchestrator.store.connections.prepared import PreparedConnection
from tests.scenarios.world import World, test_resource


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url, re_enqueue_seconds=0)
    yield made
    made.close()


@pytest.fixture
def worker(world: World) -> Iterator[Callable[[float], Sweep]]:
    """Return a function that creates the sweep of a new worker."""
    made: list[Sweep] = []

    def start(apart: float) -> Sweep:
        made.append(Sweep(world.database, world.settings, world.types, world.cipher, apart))
        return made[-1]

    yield start
    for item in made:
        item.close()


def test_a_second_worker_does_not_sweep_again_so_soon(world: World, worker: Callable[[float], Sweep]) -> None:
    world.create("s", {"a": test_resource()})
    world.messages.clear()  # lost on the way
    first, second = worker(60.0), worker(60.0)
    assert first.run() != []
    assert second.run() == []
    assert first.run() == []
    assert worker(0.0).run() != []


def test_any_worker_sweeps_when_the_interval_is_over(world: World, worker: Callable[[float], Sweep]) -> None:
    world.create("s", {"a": test_resource()})
    world.messages.clear()
    assert worker(60.0).run() != []
    world.elapse(61, "sweep")
    assert worker(60.0).run() != []


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects the statements of connections for checks and sweeps."""
    sent: list[str] = []
    execute, fetched = PreparedConnection.execute, PreparedConnection.fetched

    def recorded(call: Callable[..., object]) -> Callable[..., object]:
        def record(connection: PreparedConnection, query: str, *values: object, **options: object) -> object:
            sent.append(query)
            return call(connection, query, *values, **options)

        return record

    monkeypatch.setattr(PreparedConnection, "execute", recorded(execute))
    monkeypatch.setattr(PreparedConnection, "fetched", recorded(fetched))
    return sent


def test_a_sweep_without_work_is_a_single_statement(
    world: World, worker: Callable[[float], Sweep], statements: list[str]
) -> None:
    uuid = world.create("s", {"a": test_resource()})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.sweep.run()  # it counts the progress of the stack for the last time
    first, second = worker(0.0), worker(60.0)
    for sweep in (first, second):
        sweep.run()  # it connects
    statements.clear()
    assert first.run() == []
    assert second.run() == []
    assert len(statements) == 2, statements
