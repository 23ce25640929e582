"""Servers may be killed, emptied, unreachable: the stack completes by itself, everything made once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.valkey import Valkey, connect
from orchestrator.store.schema import migrate
from tests.conftest import OwnServer
from tests.e2e.running import free_port
from tests.integration.cluster import (
    RECOVERY_SECONDS,
    Cluster,
    eventually,
    local,
    made_once,
    read_only,
    thing,
    tree,
)
from tests.plugins.thing_fixture import THING_DIR, ThingServer
from tests.template_cluster import FAST_SETTINGS


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A cluster on its own servers, all of which may be killed."""
    folder: Path = tmp_path_factory.mktemp("servers")
    database, broker = Postgres(folder / "postgres", FAST_SETTINGS), Valkey(folder / "valkey")
    postgres = OwnServer(database.child(), folder / "postgres.log", database.url())
    valkey = OwnServer(broker.child(), folder / "valkey.log", broker.url())
    things = ThingServer(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(THING_DIR))
        postgres.start()
        valkey.start()
        things.start()
        migrate.upgrade(postgres.url)
        cluster = Cluster(folder / "cluster", postgres.url, valkey.url, things)
        try:
            cluster.start()
            yield SimpleNamespace(cluster=cluster, postgres=postgres, valkey=valkey, things=things)
        finally:
            cluster.close()
            things.stop()
            valkey.stop()
            postgres.stop()


@pytest.fixture
def cluster(installation: SimpleNamespace) -> Cluster:
    result: Cluster = installation.cluster
    return result


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def name(cluster: Cluster, numbers: Iterator[int]) -> str:
    """A stack's name."""
    return f"s{next(numbers)}"


def in_mid_flight(cluster: Cluster, name: str, resources: dict) -> str:
    """Begin a stack and return when a part of it is made; the rest is held until then."""
    cluster.arm("create", "before", 3, how="hold")
    uuid = cluster.create(name, resources)
    eventually(lambda: cluster.hit("create", "before") and len(cluster.things.made(name)) >= 2, 20)
    assert cluster.state(uuid) == "CREATE_IN_PROGRESS"
    cluster.release("create", "before")
    return uuid


def test_a_broker_emptied_again_and_again_loses_nothing(
    cluster: Cluster, name: str, installation: SimpleNamespace
):
    resources = tree(8)
    uuid = in_mid_flight(cluster, name, resources)
    with connect(installation.valkey.url) as client:
        for made in (2, 6, 10):
            eventually(lambda made=made: len(cluster.things.made(name)) >= made, RECOVERY_SECONDS)
            client.flushall()
    cluster.wait(uuid, "CREATE_COMPLETE", mending=False)
    made_once(cluster.things, name, resources)


def test_a_broker_killed_and_started_again_empty_loses_nothing(
    cluster: Cluster, name: str, installation: SimpleNamespace
):
    resources = tree(8)
    uuid = in_mid_flight(cluster, name, resources)
    installation.valkey.kill()
    installation.valkey.start()
    cluster.wait(uuid, "CREATE_COMPLETE", mending=False)
    made_once(cluster.things, name, resources)


def test_a_broker_that_is_a_replica_for_a_while_ends_no_worker(
    cluster: Cluster, name: str, installation: SimpleNamespace
):
    resources = tree(8)
    uuid = in_mid_flight(cluster, name, resources)
    workers = {name: process.pid for name, process in cluster.processes.items()}
    with connect(installation.valkey.url) as client:
        client.replicaof("127.0.0.1", str(free_port()))
        other = cluster.create(f"{name}-meanwhile", {"a": local()})
        waiting = "the broker accepts no messages"
        eventually(lambda: all(waiting in cluster.log(worker) for worker in workers), RECOVERY_SECONDS)
        client.replicaof("NO", "ONE")
    for stack in (uuid, other):
        cluster.wait(stack, "CREATE_COMPLETE", mending=False)
    made_once(cluster.things, name, resources)
    assert {name: process.pid for name, process in cluster.processes.items()} == workers
    assert all(process.returncode is None for process in cluster.processes.values())
    for alarm in ("Unrecoverable", "CRITICAL", "EMERGENCY", "UNABLE TO RESTORE", "DeprecationWarning"):
        assert alarm.lower() not in cluster.logs().lower(), alarm


def test_a_request_taken_while_the_broker_is_down_is_carried_out_once_it_is_back(
    cluster: Cluster, name: str, installation: SimpleNamespace
):
    installation.valkey.kill()
    uuid = cluster.create(name, {"a": thing(), "b": local()})
    assert cluster.state(uuid) == "CREATE_IN_PROGRESS"
    installation.valkey.start()
    cluster.wait(uuid, "CREATE_COMPLETE", mending=False)


def test_a_database_killed_and_started_again_loses_nothing(
    cluster: Cluster, name: str, installation: SimpleNamespace
):
    resources = tree(8)
    uuid = in_mid_flight(cluster, name, resources)
    for made in (4, 9):
        eventually(lambda made=made: len(cluster.things.made(name)) >= made, RECOVERY_SECONDS)
        installation.postgres.kill()
        installation.postgres.start()
    cluster.wait(uuid, "CREATE_COMPLETE", mending=False)
    made_once(cluster.things, name, resources)


def test_a_worker_started_while_the_database_is_away_waits_for_it(
    cluster: Cluster, name: str, installation: SimpleNamespace
):
    installation.postgres.stop()
    cluster.kill("check1")
    before = cluster.log("check1").count("cannot reach the database")
    cluster.mend()
    worker = cluster.processes["check1"]
    eventually(lambda: cluster.log("check1").count("cannot reach the database") > before, RECOVERY_SECONDS)
    installation.postgres.start()
    worker.wait_ready()
    assert worker.returncode is None
    cluster.wait(cluster.create(name, {"a": local()}), "CREATE_COMPLETE", mending=False)


def test_a_database_that_accepts_no_writes_for_a_while_loses_nothing_and_alarms_nobody(
    cluster: Cluster, name: str, installation: SimpleNamespace
):
    resources = tree(8)
    uuid = in_mid_flight(cluster, name, resources)
    with read_only(installation.postgres.url):
        eventually(lambda: "accepts no writes" in cluster.logs(), 20)
    cluster.wait(uuid, "CREATE_COMPLETE", mending=False)
    made_once(cluster.things, name, resources)
    assert "raised unexpected" not in cluster.logs()


def test_a_provider_that_is_down_for_a_while_is_waited_for_and_nothing_is_taken_for_gone(
    cluster: Cluster, name: str, installation: SimpleNamespace
):
    resources = {"a": thing(), "b": thing(["a"]), "c": thing(fail_times=1)}
    installation.things.stop()
    uuid = cluster.create(name, resources)
    retried = "SELECT 1 FROM graph_node WHERE unreachable_tries > 0 AND kind = %s"
    eventually(lambda: cluster.rows(retried, "update"), 20)
    installation.things.start()
    cluster.wait(uuid, "CREATE_COMPLETE", mending=False)
    made_once(cluster.things, name, resources)

    installation.things.stop()
    cluster.delete(name)
    eventually(lambda: cluster.rows(retried, "cleanup"), 20)
    existing = """SELECT count(*) FROM resource r JOIN stack s ON s.id = r.stack_id
        WHERE s.uuid = %s AND r.physical_id IS NOT NULL"""
    assert cluster.rows(existing, uuid) == [(3,)]
    installation.things.start()
    assert len(cluster.things.alive(name)) == 3
    cluster.wait(uuid, "DELETE_COMPLETE", mending=False)
    assert cluster.things.alive(name) == {}
    assert cluster.rows(existing, uuid) == [(0,)]
