"""Trees of stacks with real workers: no polling, a chain of tasks in Flower, all workers busy."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import psycopg
import pytest

from orchestrator.store.connections.database import CHECKS_NAME
from tests.conftest import OwnServer
from tests.integration.cluster import Cluster, eventually, local, new_cluster, thing_type_known
from tests.integration.workers.task_events import TaskEvents
from tests.plugins.thing_fixture import things
from tests.template_cluster import as_administrator

__all__ = ["new_cluster", "thing_type_known", "things"]

URL = "file:///child.yaml"
QUIET_SECONDS = 4.0
SWEEP, SWEEP_BEGINS = "orchestrator-sweep", "INSERT INTO sweep_turn"
# Statements of the engine. The rest are the test's own.
WORKERS = (CHECKS_NAME, "orchestrator-worker", "orchestrator-leases", "orchestrator-planner")


def child(resources: dict[str, Any]) -> str:
    return orjson.dumps({"heat_template_version": "2021-04-16", "resources": resources}).decode()


# No polling.


@pytest.fixture
def told(own_postgres: OwnServer) -> OwnServer:
    """A PostgreSQL that logs every statement with its client."""
    with psycopg.connect(as_administrator(own_postgres.url), autocommit=True) as db:
        db.execute("ALTER SYSTEM SET log_line_prefix = '@%a@ '")
        db.execute("ALTER SYSTEM SET log_statement = 'all'")
        db.execute("SELECT pg_reload_conf()")
    return own_postgres


def statements(server: OwnServer, seconds: float) -> Counter[str]:
    """Return how many statements each application runs in a while, and how many sweeps those are."""
    before = server.log.stat().st_size
    time.sleep(seconds)
    with server.log.open("rb") as log:
        log.seek(before)
        lines = log.read().decode(errors="replace").splitlines()
    lines = [line for line in lines if line.startswith("@") and line.count("@") > 1]
    sweeps = sum(SWEEP_BEGINS in line for line in lines)
    return Counter({**Counter(line.split("@")[1] for line in lines), "sweeps": sweeps})


def test_no_process_polls_for_a_child(
    new_cluster: Callable[..., Cluster], told: OwnServer, broker_url: str
) -> None:
    cluster = new_cluster(told.url, broker_url, checkers=1, providers=1, lease_seconds=30.0)
    files = {URL: child({"never": local(wait_secs=-1)})}
    waiting = "SELECT count(*) FROM graph_node WHERE starts_with(label, 'child') AND state = 'waiting'"
    at_work = "SELECT 1 FROM graph_node WHERE state NOT IN ('waiting', 'ready', 'blocked')"
    counts, expected = [], 0
    for name, width in (("one", 1), ("many", 100)):
        expected += width
        cluster.create(name, {f"child{n}": {"type": URL} for n in range(width)}, files=files)
        eventually(lambda expected=expected: cluster.rows(waiting)[0][0] == expected, 60)
        eventually(lambda: not cluster.rows(at_work), 60)
        time.sleep(1.0)
        counts.append(statements(told, QUIET_SECONDS))
    for count in counts:
        assert {name: count[name] for name in WORKERS if count[name]} == {}, count
        assert count["sweeps"] > 0  # else nothing was counted
    item, many = (count[SWEEP] / count["sweeps"] for count in counts)
    assert many <= item + 6, counts  # it also purges, a little more or less each time


# Flower, and the workers.


class Watched:
    """The tasks that workers have received."""

    def __init__(self, broker_url: str) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self._events = TaskEvents(broker_url, {"task-received": self._take})
        self.close = self._events.close

    def _take(self, event: dict[str, Any]) -> None:
        self.tasks[event["uuid"]] = event


@pytest.fixture
def watched(broker_url: str) -> Iterator[Watched]:
    made = Watched(broker_url)
    yield made
    made.close()


def test_a_childs_tasks_lead_to_its_parents(
    new_cluster: Callable[..., Cluster], postgres_url: str, broker_url: str, watched: Watched
) -> None:
    cluster = new_cluster(postgres_url, broker_url, checkers=1, providers=0, events=True)
    inner = child({"leaf": local()})
    files = {URL: child({"inner": {"type": "file:///inner.yaml"}}), "file:///inner.yaml": inner}
    uuid = cluster.create("s", {"outer": {"type": URL}}, files=files)
    cluster.wait(uuid, "CREATE_COMPLETE")

    def way(task: dict[str, Any]) -> list[str]:
        result = [task["args"]]
        while task["parent_id"] in watched.tasks:
            task = watched.tasks[task["parent_id"]]
            result.append(task["args"])
        return [shown.strip("(',)") for shown in result]

    def ways(name: str) -> list[list[str]]:
        return [way(task) for task in list(watched.tasks.values()) if name in task["args"]]

    # The task that settles the last node of a child completes it and so wakes the parent's resource.
    last = ["outer", "inner", "leaf", "plan", "inner", "plan", "outer", "plan"]
    eventually(lambda: last in ways("outer"), 30)  # its event is the last to arrive
    assert ways("leaf") == [["leaf", "plan", "inner", "plan", "outer", "plan"]]
    assert {task["root_id"] for task in watched.tasks.values()} == {uuid}


def test_all_workers_are_at_a_tree(
    new_cluster: Callable[..., Cluster], postgres_url: str, broker_url: str, watched: Watched
) -> None:
    cluster = new_cluster(postgres_url, broker_url, checkers=2, providers=0, events=True)
    files = {URL: child({f"r{n}": local() for n in range(10)})}
    uuid = cluster.create("s", {f"child{n}": {"type": URL} for n in range(50)}, files=files)
    cluster.wait(uuid, "CREATE_COMPLETE")
    [(made,)] = cluster.rows("SELECT count(*) FROM resource WHERE status = 'COMPLETE'")
    assert made == 50 * 11

    def shares() -> Counter[str]:
        return Counter(task["hostname"] for task in list(watched.tasks.values()))

    # A busy machine may prefer one of them, so that the smaller share says little; none is left out.
    eventually(lambda: len(shares()) == 2 and min(shares().values()) > 0.1 * sum(shares().values()), 30)
    twice = "SELECT parent_resource FROM stack WHERE owner_id IS NOT NULL GROUP BY 1 HAVING count(*) > 1"
    assert cluster.rows(twice) == []
