"""Planner processes: slow to start, killed, and without their worker. A node has one planner at a time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cluster import (
    RECOVERY_SECONDS,
    Cluster,
    eventually,
    local,
    new_cluster,
    thing_type_known,
)
from tests.plugins.thing_fixture import things

__all__ = ["new_cluster", "thing_type_known", "things"]

RENEWALS = 6  # each at a third of the lease, so that it would have been lost twice
PLAN = "SELECT state, lost_leases FROM graph_node WHERE kind = 'plan'"


@pytest.fixture
def cluster(new_cluster: Callable[..., Cluster], postgres_url: str, broker_url: str) -> Cluster:
    by_process = {"inline_body_size": 10}  # every plan
    return new_cluster(postgres_url, broker_url, checkers=2, providers=0, **by_process)


def held_planner(cluster: Cluster) -> tuple[str, int]:
    """Create a stack; return its uuid, and its planner process, stopped at its start."""
    cluster.arm("planner", "before", how="stop")
    uuid = cluster.create("s", {"a": local(), "b": local(["a"])})
    eventually(lambda: cluster.hit("planner", "before"), RECOVERY_SECONDS)
    pid = cluster.hit("planner", "before")
    assert pid is not None
    return uuid, pid


def renewals(cluster: Cluster, count: int) -> None:
    """Return when the lease of the plan node was renewed `count` times."""
    seen: set[object] = set()

    def renewed() -> bool:
        seen.update(cluster.rows("SELECT leased_until FROM graph_node WHERE kind = 'plan'"))
        return len(seen) > count

    eventually(renewed, RECOVERY_SECONDS)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_planner_that_starts_slowly_is_waited_for_and_none_is_started_beside_it(cluster: Cluster) -> None:
    uuid, pid = held_planner(cluster)
    renewals(cluster, RENEWALS)
    assert cluster.rows(PLAN) == [("checking", 0)]
    os.kill(pid, signal.SIGCONT)
    cluster.wait(uuid, "CREATE_COMPLETE", mending=False)
    assert cluster.rows(PLAN) == [("ready", 0)]
    assert cluster.logs().count("plan_in_subprocess") == 1
    assert "lease_expired" not in cluster.logs()


def test_a_planner_ends_with_its_worker_and_the_plan_is_taken_over(cluster: Cluster) -> None:
    uuid, pid = held_planner(cluster)
    worker = cluster.named(parent(pid))
    cluster.kill(worker)
    eventually(lambda: not alive(pid), RECOVERY_SECONDS)
    cluster.wait(uuid, "CREATE_COMPLETE")
    assert cluster.rows(PLAN) == [("ready", 1)]
    assert cluster.logs().count("plan_in_subprocess") == 1
    assert '"kind":"plan"' in cluster.logs().replace(" ", "")


def test_a_planner_that_dies_is_reported_with_its_node_and_the_cause(cluster: Cluster) -> None:
    cluster.arm("planner", "before", how="kill")
    uuid = cluster.create("s", {"a": local()})
    cluster.wait(uuid, "CREATE_COMPLETE", mending=False)
    [(node_id,)] = cluster.rows("SELECT id FROM graph_node WHERE kind = 'plan'")
    [line] = [line for line in cluster.logs().splitlines() if "planner_failed" in line]
    assert f'"node":{node_id},' in line
    assert "killed by SIGKILL" in line
