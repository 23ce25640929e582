"""How far a stack is costs nothing to read: the sweep counts, rarely, and once at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from orchestrator.store.stacks import progress
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.plans import watched
from tests.scenarios.world import World, test_resource

STORED = "SELECT traversal, counts, final FROM progress"


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url, types=Cloud().types())
    yield made
    made.close()


def pass_time(world: World, seconds: int) -> None:
    world.elapse(seconds, "progress count")


def test_a_small_stack_is_counted_on_request(world: World):
    world.create(
        "s",
        {"a": cloud_thing(looks=99), "b": cloud_thing(("a",)), "c": test_resource(), "d": test_resource()},
    )
    assert progress.read(world.database, world.stack_row("s")).total == 0
    while world.messages:
        world.deliver()
    result = progress.read(world.database, world.stack_row("s"))
    assert (result.total, result.of("ready"), result.of("waiting"), result.of("blocked")) == (4, 2, 1, 1)
    assert result.counted_at is not None


def test_a_large_stack_is_read_as_the_sweep_counted_it(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "MAX_COUNTED_NODES", 5)
    world.create("s", {f"r{n}": test_resource() for n in range(10)})
    world.deliver()
    assert progress.read(world.database, world.stack_row("s")).counted_at is None
    world.messages += world.sweep.run()
    counted = progress.read(world.database, world.stack_row("s"))
    assert dict(counted.counts) == {"queued": 10}
    world.deliver(3)
    with watched(world.database) as work:
        assert progress.read(world.database, world.stack_row("s")) == counted
    assert "Index Scan graph_node" not in work.scans
    pass_time(world, 60)
    world.sweep.run()
    assert dict(progress.read(world.database, world.stack_row("s")).counts) == {"queued": 7, "ready": 3}


def test_a_stack_is_counted_once_more_when_it_has_ended(world: World):
    world.create("s", {"a": test_resource(), "b": test_resource(requires=["a"])})
    world.sweep.run()
    world.deliver_all()
    pass_time(world, 60)
    world.sweep.run()
    assert world.rows(STORED) == [(1, {"ready": 2}, True)]
    with world.database.engine.begin() as connection:
        connection.execute(text("DELETE FROM graph_node"))  # kept for a while only
    pass_time(world, 60)
    world.sweep.run()
    assert progress.read(world.database, world.stack_row("s")).of("ready") == 2
    world.update("s", {"a": test_resource("w"), "b": test_resource("w", requires=["a"])})
    world.deliver()
    world.sweep.run()
    assert world.rows(STORED) == [(2, {"queued": 1, "blocked": 1}, False)]


def test_counting_is_as_rare_as_it_is_dear(world: World):
    world.create("s", {"a": cloud_thing(looks=99)})
    while world.messages:
        world.deliver()
    db = world.database.connect(hot=True, replan=True)
    ((stack_id, traversal, ended),) = progress.due(db)
    assert not ended
    progress.count(db, stack_id, traversal, final=False)
    assert progress.due(db) == []
    pass_time(world, 3)
    assert len(progress.due(db)) == 1
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE progress SET seconds = 1"))
    assert progress.due(db) == []
    world.create("t", {"a": cloud_thing(looks=99)})
    assert progress.due(db) == []  # nor any other
    pass_time(world, 48)
    assert len(progress.due(db)) == 2
    db.close()
