"""The quota of root stacks of a project: exact, and counted seldom while a project is far from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from orchestrator.errors import LimitExceeded
from orchestrator.operations.quotas import counts, room
from orchestrator.operations.quotas.room import STACKS
from orchestrator.store.access.quotas import set_maximum
from tests.scenarios.world import World, test_resource

QUOTA = 20


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    """A world whose projects may have some stacks."""
    made = World(postgres_url, quotas={"stacks": QUOTA})
    room.counts_of.cache_clear()
    yield made
    made.close()


def test_the_quota_is_exact(world: World) -> None:
    uuids = [world.create(f"s{number}", {"a": test_resource()}) for number in range(QUOTA)]
    with pytest.raises(LimitExceeded, match=f"maximum stacks per tenant, {QUOTA}"):
        world.create("further", {"a": test_resource()})
    world.deliver_all()
    world.delete(uuids[0])
    world.deliver_all()
    world.create("further", {"a": test_resource()})


def test_stacks_are_counted_seldom_far_from_the_quota(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now, reads = [1_000.0], []

    def count(_db: object, project: str) -> int:
        reads.append(project)
        now[0] += 0.01
        return 2

    stacks = replace(STACKS, used=count)
    monkeypatch.setattr(counts, "time", type("Clock", (), {"monotonic": lambda: now[0]}))
    with world.database.connect() as db:
        set_maximum(db, "p1", "stacks", room.IN_PROGRESS + 10)
    limits = [world.context.require_room(stacks) for _ in range(QUOTA)]
    assert len(reads) == 1
    assert [limit is None for limit in limits] == [True] * 8 + [False] * 12  # the ninth stack is close to it
    now[0] += 1
    assert world.context.require_room(stacks) is None
    assert len(reads) == 2
