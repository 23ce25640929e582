"""A worker may be killed at any instant: the stack completes without help, and everything is created once.

The assertions use the log of the server of things. Each test arms several points on the path of the engine,
one kill each; a single cluster serves all tests and replaces its dead workers.
"""

from __future__ import annotations

import itertools
import random
import signal
from collections.abc import Callable, Iterator

import pytest

from orchestrator.embedded.valkey import Valkey
from tests.integration.cluster import (
    RECOVERY_SECONDS,
    Cluster,
    eventually,
    made_once,
    thing,
    tree,
)
from tests.plugins.thing_fixture import THING_DIR, ThingServer

CREATING = {
    "claiming": [
        ("claim", "before"),
        ("claim", "after"),
        ("read_claimed", "after"),
        ("read_queued", "after"),
    ],
    "asking": [("begin", "before"), ("begin", "after"), ("create", "after")],
    "writing down": [("settle", "before"), ("settle", "after"), ("publish", "before"), ("publish", "after")],
    "planning": [
        ("slice", "before", 2),
        ("slice", "before", 4),
        ("copy", "after"),
        ("settle_nodes", "before"),
        ("settle_nodes", "after"),
    ],
    "finishing": [("complete", "before"), ("complete", "after"), ("sweep", "after")],
}
DELETING = [
    ("copy", "before"),
    ("begin", "after"),
    ("delete", "before"),
    ("delete", "after"),
    ("settle", "after"),
    ("complete", "after"),
]


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory,
    new_database: Callable[[], str],
    valkey_server: Valkey,
    broker_numbers: Iterator[int],
) -> Iterator[Cluster]:
    """A cluster for the module; it plans in slices of three rows."""
    folder = tmp_path_factory.mktemp("never-lost")
    things = ThingServer(folder)
    things.start()
    broker = valkey_server.url(next(broker_numbers))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(THING_DIR))
        made = Cluster(folder / "cluster", new_database(), broker, things, providers=2, slice_length=3)
        try:
            made.start()
            yield made
        finally:
            made.close()
            things.stop()


@pytest.fixture
def name(cluster: Cluster, numbers: Iterator[int]) -> Iterator[str]:
    """A stack's name; the stack is removed after the test, and nothing of it may be left."""
    supplied = f"s{next(numbers)}"
    yield supplied
    cluster.mend()
    for [uuid] in cluster.rows(
        "SELECT uuid::text FROM stack WHERE name = %s AND deleted_at IS NULL", supplied
    ):
        cluster.delete(supplied)
        cluster.wait(uuid, "DELETE_COMPLETE")
    assert cluster.things.alive(supplied) == {}


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.mark.parametrize("points", CREATING.values(), ids=CREATING)
def test_workers_killed_while_creating(cluster: Cluster, name: str, points: list[tuple]):
    for point in points:
        cluster.arm(*point)
    resources = tree() | {"late": thing(delay=1)}
    uuid = cluster.create(name, resources)
    cluster.wait(uuid, "CREATE_COMPLETE", len(points) * RECOVERY_SECONDS)
    eventually(lambda: cluster.not_hit(points) == [], 10)  # the last is after the state is written
    made_once(cluster.things, name, resources)


def test_workers_killed_while_deleting(cluster: Cluster, name: str):
    uuid = cluster.create(name, tree())
    cluster.wait(uuid, "CREATE_COMPLETE")
    for point in DELETING:
        cluster.arm(*point)
    cluster.delete(name)
    cluster.wait(uuid, "DELETE_COMPLETE", len(DELETING) * RECOVERY_SECONDS)
    eventually(lambda: cluster.not_hit(DELETING) == [], 10)  # the last is after the state is written
    assert cluster.things.alive(name) == {}


def test_an_answer_that_never_came_is_looked_up(cluster: Cluster, name: str):
    resources = {"a": thing(slow_after=30)}
    uuid = cluster.create(name, resources)
    eventually(lambda: cluster.things.made(name), 20)  # it is there, and the worker waits for the answer
    for worker in ("provider1", "provider2"):
        cluster.kill(worker)
    cluster.wait(uuid, "CREATE_COMPLETE")
    made_once(cluster.things, name, resources)


def test_a_message_lost_on_the_way_from_the_api_is_sent_again(cluster: Cluster, name: str):
    uuid = cluster.create(name, {"a": thing()}, message=False)
    cluster.wait(uuid, "CREATE_COMPLETE", 20)


def test_a_delete_overtakes_a_create_whose_worker_was_killed(cluster: Cluster, name: str):
    uuid = cluster.create(name, {"a": thing(slow_after=30), "b": thing(["a"])})
    eventually(lambda: cluster.things.made(name), 20)
    for worker in ("provider1", "provider2"):
        cluster.kill(worker)
    cluster.delete(name)
    cluster.wait(uuid, "DELETE_COMPLETE")
    assert cluster.things.alive(name) == {}


def test_all_workers_killed_at_once_are_not_missed(cluster: Cluster, name: str):
    resources = tree(6)
    uuid = cluster.create(name, resources)
    eventually(lambda: len(cluster.things.made(name)) >= 4, 20)
    for worker in cluster.processes:
        cluster.signal(worker, signal.SIGKILL)
    cluster.wait(uuid, "CREATE_COMPLETE")
    made_once(cluster.things, name, resources)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_random_kills_for_minutes(cluster: Cluster, name: str, seed: int):
    chosen = random.Random(seed)
    every = sorted({point[:2] for points in CREATING.values() for point in points} | set(DELETING))
    for point in chosen.sample(every, 8):
        cluster.arm(*point, chosen.randint(1, 6))
    resources = tree(chosen.randint(1, 8))
    uuid = cluster.create(name, resources)
    cluster.wait(uuid, "CREATE_COMPLETE", 3 * RECOVERY_SECONDS)
    made_once(cluster.things, name, resources)
