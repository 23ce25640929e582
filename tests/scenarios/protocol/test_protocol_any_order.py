"""Any graph, any order, any loss, any death of a worker: all is made once, in order, and goes away whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.engine.messages import CheckMessage
from orchestrator.operations.reconcile.check import check_of
from orchestrator.resources.base import Context
from tests.profiles import examples
from tests.scenarios.fake_cloud import Cloud, Crash, cloud_thing
from tests.scenarios.world import World, test_resource

POINTS = (
    "claim",
    "read_queued",
    "read_claimed",
    "begin",
    "write_outcome",
    "settle_nodes",
    "drop",
    "refill_window",
    "complete_stack",
)
TABLES = "stack, revision, resource, resource_definition, graph_node, event, failure, orphan, content"


class Chaos(World):
    """A world that delivers in batches, shuffled, repeated and lossy, and whose workers die."""

    def __init__(self, url: str, cloud: Cloud, chosen: random.Random, batch: int, faults: float) -> None:
        super().__init__(url, types=cloud.types(), action_retry_limit=100)
        self.chosen, self.batch, self.faults = chosen, batch, faults

    def run(self) -> None:
        """Deliver until everything rests."""
        for _ in range(5_000):
            if not self.messages and not (self.sweep_once() or self.sweep_once()):
                self.forget_leases()
                if not self.sweep_once() and not self.sweep_once():
                    return
            self.chosen.shuffle(self.messages)
            if self.messages:
                self._deliver(self._take())
        raise AssertionError("it never comes to rest")

    def sweep_once(self) -> bool:
        """As ever, with a sweeper that may die too."""
        try:
            return super().sweep_once()
        except Crash:
            return True

    def _take(self) -> list[CheckMessage]:
        """Take messages that `tasks/publisher.py` would send together; some are lost, some are repeated."""
        first = self.messages[0]
        batch = [m for m in self.messages if (m.queue, m.traversal) == (first.queue, first.traversal)]
        group = batch[: self.batch if first.queue == "check" else 1]
        for message in group:
            if self.chosen.random() > self.faults:
                self.messages.remove(message)
        return [] if self.chosen.random() < self.faults else group

    def _deliver(self, group: list[CheckMessage]) -> None:
        if not group:
            return
        try:
            ids = [message.node_id for message in group]
            rings = check_of(group[0].queue)(self.engine, ids, group[0].traversal, None)
            if self.chosen.random() > self.faults:  # or it died before it could send them
                self.messages += rings
        except Crash:
            self.engine = self.new_engine()
            if self.chosen.random() < 0.5:
                self.forget_leases()


@pytest.fixture(scope="module")
def url(new_database: Callable[[], str]) -> Iterator[str]:
    """A database for all examples."""
    return new_database()


@settings(
    max_examples=examples(40), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    edges=st.lists(st.sets(st.integers(0, 11), max_size=4), min_size=1, max_size=12),
    outside=st.sets(st.integers(0, 11)),
    seed=st.integers(0, 2**20),
    batch=st.sampled_from([1, 5, 50]),
    faults=st.sampled_from([0.0, 0.15, 0.4]),
)
def test_everything_is_made_once_in_order_and_goes_away_whole(
    url: str, edges: list[set[int]], outside: set[int], seed: int, batch: int, faults: float
):
    requires = {f"r{i}": sorted(f"r{j}" for j in needs if j < i) for i, needs in enumerate(edges)}
    resources = {
        name: cloud_thing(tuple(needs)) if int(name[1:]) in outside else test_resource(requires=needs)
        for name, needs in requires.items()
    }
    things = {name for name, snippet in resources.items() if snippet["type"] == "Cloud::Thing"}
    cloud, chosen = Cloud(), random.Random(seed)

    early: list[str] = []

    def objects() -> set[str]:
        return {thing.split("-")[0] for thing in cloud.things}

    def in_order(ctx: Context) -> None:
        if not things.intersection(requires[ctx.name]) <= objects():
            early.append(f"create {ctx.name}")

    def dependents_first(ctx: Context) -> None:
        if {name for name, needs in requires.items() if ctx.name in needs} & objects():
            early.append(f"delete {ctx.name}")

    cloud.on |= {"create": in_order, "delete": dependents_first}
    world = Chaos(url, cloud, chosen, batch, faults)
    world.database.connect().execute(f"TRUNCATE {TABLES} CASCADE").connection.close()

    def die_sometimes() -> None:
        if chosen.random() < faults / 4:
            raise Crash

    for point in POINTS:
        world.before(point, die_sometimes, times=float("inf"))
        world.after(point, die_sometimes, times=float("inf"))
    try:
        uuid = world.create("s", resources)
        world.run()
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert cloud.made == dict.fromkeys(things, 1)
        reported = world.events(uuid)
        assert sorted(reported) == sorted(
            f"{name} CREATE_{status}" for name in ["s", *resources] for status in ("IN_PROGRESS", "COMPLETE")
        )
        world.delete("s")
        world.run()
        assert world.state(uuid) == "DELETE_COMPLETE"
        assert (cloud.things, early) == ({}, [])
        assert world.rows("SELECT 1 FROM resource") == []
    finally:
        world.close()
