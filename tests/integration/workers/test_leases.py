"""Leases: a slow worker renews its lease; a stopped worker loses it and can no longer write."""

from __future__ import annotations

import signal

import pytest

from tests.integration.cluster import (
    Cluster,
    eventually,
    made_once,
    new_cluster,
    thing,
    thing_type_known,
)
from tests.plugins.thing_fixture import things

__all__ = ["new_cluster", "thing_type_known", "things"]

LEASE_SECONDS = 3.0


@pytest.fixture
def cluster(new_cluster, postgres_url: str, broker_url: str) -> Cluster:
    """A cluster with leases long enough to be renewed in time on a busy machine."""
    made: Cluster = new_cluster(postgres_url, broker_url, checkers=1, lease_seconds=LEASE_SECONDS)
    return made


def test_a_call_longer_than_the_lease_is_renewed_and_not_doubled(cluster: Cluster):
    resources = {"a": thing(slow=2.5 * LEASE_SECONDS), "b": thing(["a"])}
    uuid = cluster.create("s", resources)
    assert cluster.wait(uuid, "CREATE_COMPLETE") > 2 * LEASE_SECONDS
    made_once(cluster.things, "s", resources)
    assert cluster.rows("SELECT sum(lost_leases), sum(retry_count) FROM graph_node") == [(0, 0)]


@pytest.fixture
def two_providers(new_cluster, postgres_url: str, broker_url: str) -> Cluster:
    """A cluster in which another worker can take over."""
    return new_cluster(postgres_url, broker_url, checkers=1, providers=2)


@pytest.mark.parametrize(("point", "when"), [("begin", "after"), ("create", "after"), ("settle", "before")])
def test_a_worker_stopped_past_its_lease_is_replaced_and_can_write_no_more(
    two_providers: Cluster, point: str, when: str
):
    cluster = two_providers
    resources = {"a": thing(value="v")}
    cluster.arm(point, when, how="stop")
    uuid = cluster.create("s", resources)
    stopped = cluster.named(eventually(lambda: cluster.hit(point, when), 20))
    cluster.wait(uuid, "CREATE_COMPLETE")
    before = cluster.rows("SELECT * FROM resource")
    finished = cluster.rows("SELECT count(*) FROM event")
    cluster.signal(stopped, signal.SIGCONT)
    log = cluster.folder / f"{stopped}.log"
    eventually(lambda: "lease_lost" in log.read_text(), 20)
    made_once(cluster.things, "s", resources)
    assert cluster.rows("SELECT * FROM resource") == before
    assert cluster.rows("SELECT count(*) FROM event") == finished
    cluster.delete("s")
    cluster.wait(uuid, "DELETE_COMPLETE")
    assert cluster.things.alive() == {}


def test_a_resource_in_error_is_recreated_up_to_the_limit(new_cluster, postgres_url: str, broker_url: str):
    cluster = new_cluster(postgres_url, broker_url, checkers=1, action_retry_limit=2)
    good = cluster.create("good", {"a": thing(error_times=2)})
    bad = cluster.create("bad", {"a": thing(error_times=3)})
    busy = cluster.create("busy", {"a": thing(fail_times=100)})
    final = cluster.create("final", {"a": thing(error=True)})
    cluster.wait(good, "CREATE_COMPLETE")
    assert (cluster.things.made("good").total(), len(cluster.things.alive("good"))) == (3, 1)
    cluster.wait(bad, "CREATE_FAILED")
    assert cluster.things.made("bad").total() == 3
    assert "ResourceInError: resources.a: " in cluster.reason(bad)
    cluster.wait(final, "CREATE_FAILED")
    assert cluster.things.made("final").total() == 1
    tries = """SELECT max(n.unreachable_tries), max(n.retry_count) FROM graph_node n
        JOIN stack s ON s.id = n.stack_id WHERE s.uuid = %s"""
    eventually(lambda: cluster.rows(tries, busy)[0][0] > 2, 30)  # more than the limit
    assert (cluster.state(busy), cluster.rows(tries, busy)[0][1]) == ("CREATE_IN_PROGRESS", 0)
    for name, uuid in {"good": good, "bad": bad, "busy": busy, "final": final}.items():
        cluster.delete(name)
        cluster.wait(uuid, "DELETE_COMPLETE")
    assert cluster.things.alive() == {}
