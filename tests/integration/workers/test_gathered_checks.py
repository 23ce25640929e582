"""Checks that a worker reads together: each is a task (tasks/adr/0002-gathered-checks.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.integration.cluster import Cluster, eventually, local, new_cluster, thing_type_known
from tests.integration.workers.test_flower import EventState, events
from tests.plugins.thing_fixture import things

__all__ = ["events", "new_cluster", "thing_type_known", "things"]

COUNT = 300


def tasks_of(events: EventState, name: str, state: str) -> Counter[str]:
    """Return the number of ended tasks by resource."""
    ended = [task for task in events.named(f"{name}/") if task.state == state]
    return Counter(str(task.args).strip("()").partition(" ")[0].partition("/")[2] for task in ended)


def test_each_check_is_one_task_with_its_own_events(
    new_cluster: Callable[..., Cluster],
    postgres_url: str,
    broker_url: str,
    events: EventState,
) -> None:
    cluster = new_cluster(postgres_url, broker_url, checkers=2, providers=0, events=True)
    names = [f"r{number}" for number in range(COUNT)]
    uuid = cluster.create("wide", {name: local() for name in names})
    cluster.wait(uuid, "CREATE_COMPLETE")
    eventually(lambda: sum(tasks_of(events, "wide", "SUCCESS").values()) >= COUNT + 2, 30)
    ended = tasks_of(events, "wide", "SUCCESS")
    assert {name: ended[name] for name in names} == dict.fromkeys(names, 1)
    assert all(task.received and task.started for task in events.named("wide/"))


def test_a_failed_resource_fails_its_own_task_only(
    new_cluster: Callable[..., Cluster], postgres_url: str, broker_url: str, events: EventState
) -> None:
    cluster = new_cluster(postgres_url, broker_url, checkers=1, providers=0, events=True)
    names = [f"r{number}" for number in range(COUNT)]
    uuid = cluster.create("wide", {**{name: local() for name in names}, "bad": local(fail=True)})
    cluster.wait(uuid, "CREATE_FAILED")
    eventually(lambda: tasks_of(events, "wide", "FAILURE"), 30)
    assert tasks_of(events, "wide", "FAILURE") == {"bad": 1}
    [failed] = [task for task in events.named("wide/bad") if task.state == "FAILURE"]
    assert "Test Resource failed bad" in failed.exception
    assert cluster.reason(uuid).startswith("Resource CREATE failed: ValueError: resources.bad:")
