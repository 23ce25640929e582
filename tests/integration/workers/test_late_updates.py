"""Updates that are carried out after newer updates: of a worker that is stopped and continues after its
lease, and of a service that holds them.
"""

from __future__ import annotations

import signal

import pytest

from tests.integration.cluster import Cluster, eventually, new_cluster, thing, thing_type_known
from tests.plugins.thing_fixture import things

__all__ = ["new_cluster", "thing_type_known", "things"]

LEASE_SECONDS = 3.0
CORRECTED_SECONDS = 60.0  # after a late update was carried out
HELD_SECONDS = 30.0  # longer than a call


@pytest.fixture
def cluster(new_cluster, postgres_url: str, broker_url: str) -> Cluster:
    """A cluster with two workers that call services."""
    made: Cluster = new_cluster(
        postgres_url, broker_url, checkers=1, providers=2, lease_seconds=LEASE_SECONDS
    )
    return made


def resources(value: str, **properties: float) -> dict:
    return {"a": thing(value=value, **properties)}


def value(cluster: Cluster) -> str:
    """Return the value of the thing."""
    [last] = cluster.things.values().values()
    return last


def arrives_late_and_is_corrected(cluster: Cluster, uuid: str) -> None:
    def updates() -> list[str]:
        return [entry["value"] for entry in cluster.things.log("updated")]

    eventually(lambda: updates()[-1] != "new" or updates().count("new") > 1, HELD_SECONDS + CORRECTED_SECONDS)
    eventually(lambda: value(cluster) == "new", CORRECTED_SECONDS)
    assert updates()[-2:] == ["old", "new"]
    cluster.wait(uuid, "UPDATE_COMPLETE")
    assert len(cluster.things.made("s")) == len(cluster.things.alive("s")) == 1


def test_the_update_of_a_worker_that_continues_after_its_lease_does_not_stay(cluster: Cluster) -> None:
    uuid = cluster.create("s", resources("first"))
    cluster.wait(uuid, "CREATE_COMPLETE")
    cluster.arm("update", "before", how="stop")
    cluster.update("s", resources("old"))
    stopped = cluster.named(eventually(lambda: cluster.hit("update", "before"), 20))
    cluster.update("s", resources("new"))
    eventually(lambda: value(cluster) == "new", 60)
    cluster.wait(uuid, "UPDATE_COMPLETE")
    cluster.signal(stopped, signal.SIGCONT)
    arrives_late_and_is_corrected(cluster, uuid)


@pytest.mark.long
def test_an_update_that_its_service_holds_does_not_stay(cluster: Cluster) -> None:
    uuid = cluster.create("s", resources("first"))
    cluster.wait(uuid, "CREATE_COMPLETE")
    cluster.update("s", resources("old", slow_update=HELD_SECONDS))
    waiting = "SELECT count(*) FROM graph_node WHERE unreachable_tries > 0"
    eventually(lambda: cluster.rows(waiting) == [(1,)], 60)  # the call has given up
    cluster.update("s", resources("new"))
    eventually(lambda: value(cluster) == "new", 60)
    cluster.wait(uuid, "UPDATE_COMPLETE")
    arrives_late_and_is_corrected(cluster, uuid)
