"""Flower and Celery's event state with real workers: arguments name stack, resource and step; a failed
resource fails its task and nothing else changes.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from celery.events.state import State, Task

from orchestrator.embedded.process import Process
from orchestrator.embedded.processes import flower
from tasks.celery_settings import QUEUES
from tests.integration.cluster import Cluster, eventually, local, new_cluster, thing_type_known
from tests.integration.workers.task_events import TaskEvents
from tests.plugins.thing_fixture import things

__all__ = ["new_cluster", "thing_type_known", "things"]


class EventState:
    """Celery's event state, fed from the broker as Flower feeds it."""

    def __init__(self, broker_url: str) -> None:
        self.state = State()
        self._events = TaskEvents(broker_url, {"*": self.state.event})
        self.close = self._events.close

    def named(self, text: str) -> list[Task]:
        """Return the finished tasks whose arguments contain a text."""
        tasks = list(self.state.tasks.values())
        return [task for task in tasks if task.state in {"SUCCESS", "FAILURE"} and text in (task.args or "")]


@pytest.fixture
def events(broker_url: str) -> Iterator[EventState]:
    made = EventState(broker_url)
    yield made
    made.close()


def failing_stack(cluster: Cluster) -> str:
    resources = {"good": local(), "bad": local(requires=["good"], fail=True)}
    uuid = cluster.create("app", resources)
    cluster.wait(uuid, "CREATE_FAILED")
    return uuid


def test_the_task_of_a_failed_resource_is_marked_failed(
    new_cluster: Callable[..., Cluster], postgres_url: str, broker_url: str, events: EventState
) -> None:
    cluster = new_cluster(postgres_url, broker_url, checkers=1, providers=0, events=True)
    uuid = failing_stack(cluster)
    eventually(lambda: events.named("app/bad") and events.named("app/good"), 10)
    [failed] = events.named("app/bad")
    assert failed.state == "FAILURE"
    assert failed.args == "(app/bad CREATE create)"
    assert failed.kwargs == f"{{'root_stack': '{uuid}'}}"
    assert "Test Resource failed bad" in failed.exception
    [good] = events.named("app/good")
    assert (good.state, good.args, good.exception) == ("SUCCESS", "(app/good CREATE create)", None)
    assert {task.state for task in events.named("app/plan")} == {"SUCCESS"}


def test_a_failed_task_is_acknowledged_and_neither_retried_nor_stored(
    new_cluster: Callable[..., Cluster],
    postgres_url: str,
    broker_url: str,
    broker: redis.Redis,
    events: EventState,
) -> None:
    cluster = new_cluster(postgres_url, broker_url, checkers=1, providers=0, events=True)
    uuid = failing_stack(cluster)
    eventually(lambda: events.named("app/bad"), 30)
    time.sleep(2.0)  # several sweeps, which must send nothing
    assert len(events.named("app/bad")) == 1
    assert [task.retries for task in events.named("app/bad")] == [0]
    assert {queue: broker.llen(queue) for queue in QUEUES} == dict.fromkeys(QUEUES, 0)
    assert broker.zcard("unacked_index") == 0
    assert broker.keys("celery-task-meta-*") == []
    assert cluster.reason(uuid).startswith("Resource CREATE failed: ValueError: resources.bad:")
    log = Path(cluster.folder / "check1.log").read_text()
    assert "ResourceFailed" not in log  # an expected error, logged as `node_checked`


def test_flower_lists_the_failed_task_with_its_resource(
    new_cluster: Callable[..., Cluster], postgres_url: str, broker_url: str, tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = new_cluster(postgres_url, broker_url, checkers=1, providers=0, events=True)
    env = {**cluster.children["check1"].env, "FLOWER_UNAUTHENTICATED_API": "true"}
    process = Process(flower({**os.environ, **env}, tmp_path, port), tmp_path / "flower.log")
    try:
        process.wait_ready()
        workers = f"http://127.0.0.1:{port}/api/workers"
        eventually(lambda: any(httpx.get(workers, params={"status": "1"}).json().values()), 30)  # by events
        failing_stack(cluster)

        def failed() -> list[dict[str, Any]]:
            answer = httpx.get(f"http://127.0.0.1:{port}/api/tasks", params={"state": "FAILURE"})
            return [task for task in answer.json().values() if "app/bad" in task["args"]]

        [task] = eventually(failed, 15)
        assert task["args"] == "(app/bad CREATE create)"
        assert "Test Resource failed bad" in task["exception"]
        for host, status in (("evil.example", 421), (f"localhost:{port}", 200)):  # DNS rebinding
            answer = httpx.get(f"http://127.0.0.1:{port}/api/tasks", headers={"Host": host})
            assert answer.status_code == status
            assert ("app/bad" in answer.text) == (status == 200)
    finally:
        process.kill_group()
        process.wait(10)
