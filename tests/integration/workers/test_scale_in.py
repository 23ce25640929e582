"""A worker that is stopped finishes its current work, without side effects: no lease expires, no step is
retried, no message is lost.

The leases and the re-enqueue interval are longer than the test, so the sweep cannot repair anything in time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.cluster import (
    Cluster,
    eventually,
    local,
    made_once,
    new_cluster,
    thing,
    thing_type_known,
)
from tests.plugins.thing_fixture import things

__all__ = ["new_cluster", "thing_type_known", "things"]

PATIENCE_SECONDS = 90.0
SIZE = 50  # of a stack that is planned by its own process, in slices
SLICE = 10
STOP_SECONDS = 40.0  # less than Docker Compose gives them


NO_REPAIR = {"lease_seconds": 20 * PATIENCE_SECONDS, "re_enqueue_seconds": 20 * PATIENCE_SECONDS}


@pytest.fixture
def cluster(new_cluster: Callable[..., Cluster], postgres_url: str, broker_url: str) -> Cluster:
    return new_cluster(postgres_url, broker_url, checkers=2, providers=2, **NO_REPAIR)


@pytest.fixture
def local_cluster(new_cluster: Callable[..., Cluster], postgres_url: str, broker_url: str) -> Cluster:
    return new_cluster(
        postgres_url,
        broker_url,
        checkers=2,
        providers=0,
        slice_length=SLICE,
        inline_body_size=10,  # so that a process plans every stack
        **NO_REPAIR,
    )


def crowd(width: int) -> dict[str, Any]:
    """Slow things, each with a dependent thing and a local resource."""
    first = {f"a{number}": thing(slow=1.5) for number in range(width)}
    second = {f"b{number}": local([f"a{number}"]) for number in range(width)}
    third = {f"c{number}": thing([f"b{number}"], slow=0.5) for number in range(width)}
    return first | second | third


def test_stopping_workers_hand_over_their_work(
    cluster: Cluster,
) -> None:
    resources = crowd(40)  # more than both workers' threads take at once
    uuid = cluster.create("crowd", resources)
    busy = "SELECT 1 FROM graph_node WHERE state = 'checking' HAVING count(*) >= 16"
    eventually(lambda: cluster.rows(busy), PATIENCE_SECONDS)
    for name in ("provider1", "check1"):
        cluster.signal(name, signal.SIGTERM)
    for name in ("provider1", "check1"):
        assert cluster.processes[name].wait(STOP_SECONDS), name
        assert cluster.processes[name].returncode == 0, name
    cluster.wait(uuid, "CREATE_COMPLETE", PATIENCE_SECONDS, mending=False)
    assert cluster.rows("SELECT sum(lost_leases), sum(retry_count), max(re_enqueues) FROM graph_node") == [
        (0, 0, 0)
    ]
    made_once(cluster.things, "crowd", resources)


def test_a_plan_under_way_is_handed_over_too(local_cluster: Cluster) -> None:
    cluster = local_cluster
    cluster.arm("slice", "before", 3, how="hold")
    cluster.create("large", {f"r{number}": local() for number in range(SIZE)})
    plan = "SELECT state, lost_leases FROM graph_node WHERE kind = 'plan'"
    eventually(lambda: cluster.hit("slice", "before"), PATIENCE_SECONDS)
    assert cluster.rows("SELECT count(*) FROM resource") == [(2 * SLICE,)]
    assert cluster.rows(plan) == [("checking", 0)]
    for name in ("check1", "check2"):
        cluster.signal(name, signal.SIGTERM)
    for name in ("check1", "check2"):
        assert cluster.processes[name].wait(STOP_SECONDS), name
    assert cluster.rows(plan) == [("queued", 0)]
    cluster.mend()
    eventually(lambda: cluster.rows(plan) == [("ready", 0)], PATIENCE_SECONDS)
    assert cluster.rows("SELECT count(*), count(DISTINCT name) FROM resource") == [(SIZE, SIZE)]
