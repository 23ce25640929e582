"""A large stack shares the queue with a small stack, and a waiting node occupies no worker."""

from __future__ import annotations

import time

import pytest

from tests.integration.cluster import Cluster, eventually, local, new_cluster, thing_type_known
from tests.patience import took_at_most
from tests.plugins.thing_fixture import things

__all__ = ["new_cluster", "thing_type_known", "things"]

LARGE = 5_000
# maximum for a stack of five during the creation of a large stack, with other tests running
SMALL_SECONDS = 15.0


@pytest.fixture
def idle(new_cluster, postgres_url: str, broker_url: str) -> Cluster:
    """A cluster with a single worker and default settings."""
    made: Cluster = new_cluster(
        postgres_url, broker_url, checkers=1, providers=0, lease_seconds=30.0, re_enqueue_seconds=5.0
    )
    return made


def test_a_small_stack_completes_within_seconds_while_a_large_stack_is_created(idle: Cluster):
    large = idle.create("large", {f"r{i}": local() for i in range(LARGE)})
    done = "SELECT count(*) FROM graph_node WHERE state = 'ready' AND kind = 'update'"
    eventually(lambda: idle.rows(done)[0][0] > 100, 60)
    small = idle.create("small", {"a": local(), **{f"b{i}": local(["a"]) for i in range(4)}})
    idle.wait(small, "CREATE_COMPLETE", SMALL_SECONDS)
    last = "SELECT max(e.id) FROM event e JOIN stack s ON s.id = e.stack_id WHERE s.uuid = %s"
    [(end_of_small,)] = idle.rows(last, small)
    eventually(lambda: idle.rows(last, large)[0][0] > end_of_small, 60)  # the large one goes on after it


def test_waiting_resources_occupy_no_worker(idle: Cluster):
    waiting = {"type": "OS::Heat::Delay", "properties": {"min_wait": 2}}
    started = time.monotonic()
    uuid = idle.create("s", {f"d{i}": waiting for i in range(50)})
    idle.wait(uuid, "CREATE_COMPLETE", 60)
    assert time.monotonic() - started > 2.0
    assert took_at_most(started, 30.0)  # in turn, the delays would take 100 seconds
