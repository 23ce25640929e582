"""The fair queues of the broker: the order of messages by project, root stack and duration of the tasks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle

import orjson
import pytest
import redis

from orchestrator.engine.messages import CheckMessage
from tasks.broker_stats import BrokerStats
from tasks.fair_queues import KEY_PREFIX, FinishedTasks, WorkerReport
from tasks.publisher import PROJECT_HEADER, Dispatcher
from tests.integration.cluster import eventually

LONG, SHORT = 2.0, 0.01  # seconds


@dataclass(frozen=True)
class Task:
    """A message that a worker has taken."""

    id: str
    root: str
    project: str
    queue: str


@dataclass
class Workers:
    """Workers that take messages as Celery does, and end tasks when the test says so."""

    broker: redis.Redis
    dispatcher: Dispatcher
    stats: BrokerStats
    running: list[Task] = field(default_factory=list)
    taken: Counter[str] = field(default_factory=Counter)  # tasks by project
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))

    def report(self, *queues: str, processes: int) -> None:
        """Report the processes of a worker."""
        worker = WorkerReport("worker", queues, processes)
        self.dispatcher.publish([], report=worker)
        lane = "local" if "check" in queues else "provider"
        eventually(lambda: self.broker.get(f"{KEY_PREFIX}capacity:{lane}") == str(processes).encode(), 5)

    def enqueue(self, root: str, count: int, queue: str = "check") -> None:
        """Send messages for a root stack; its project is the part before the slash."""
        before = self.waiting()
        self.dispatcher.publish([CheckMessage(next(self.numbers), 1, queue, "n", root) for _ in range(count)])
        eventually(lambda: self.waiting() == before + count, 5)

    def waiting(self) -> int:
        """Return the number of messages in the broker."""
        return sum(self.stats.depths().values())

    def take(self, queue: str = "check") -> Task | None:
        """Take the next message of a queue."""
        raw = self.broker.rpop(queue)
        if raw is None:
            return None
        headers = orjson.loads(raw)["headers"]
        task = Task(headers["id"], headers["root_id"], headers[PROJECT_HEADER], queue)
        self.taken[task.project] += 1
        self.running.append(task)
        return task

    def end(self, task: Task, seconds: float = SHORT, together: int = 1) -> None:
        """End a task, and wait until the broker has noticed."""
        self.running.remove(task)
        finished = FinishedTasks([task.id], task.queue, task.project, seconds, together)
        self.dispatcher.publish_all([], [finished])
        lane = {"check": "local", "bulk": "local"}.get(task.queue, "provider")
        key = f"{KEY_PREFIX}running:{lane}:{task.project}"
        eventually(lambda: self.broker.zscore(key, task.id) is None, 5)

    def run(self, count: int, seconds: Mapping[str, float]) -> list[Task]:
        """Run tasks one after the other; return them in order. `seconds` is their duration by project."""
        result = []
        for _ in range(count):
            task = self.take()
            assert task is not None
            self.end(task, seconds.get(task.project, SHORT))
            result.append(task)
        return result


def projects(stacks: Collection[str]) -> Mapping[str, str]:
    return {stack: stack.partition("/")[0] for stack in stacks}


@pytest.fixture
def workers(broker_url: str, broker: redis.Redis) -> Iterator[Workers]:
    dispatcher = Dispatcher(broker_url, projects=projects)
    made = Workers(broker, dispatcher, BrokerStats(dispatcher.app.conf.broker_url))
    made.report("check", "bulk", processes=2)
    yield made
    made.stats.close()
    dispatcher.close()


def test_the_list_of_celery_is_short_and_all_messages_are_counted(workers: Workers) -> None:
    workers.enqueue("big/a", 200)
    assert workers.broker.llen("check") == 4
    assert workers.waiting() == 200


def test_the_list_is_longer_for_a_worker_that_reads_several_at_once(workers: Workers) -> None:
    workers.enqueue("big/a", 200)
    first = workers.take()
    assert first is not None
    workers.end(first, 0.001, together=16)
    assert workers.broker.llen("check") == 64
    assert workers.waiting() == 199
    workers.enqueue("small/a", 3)
    assert {task.project for task in workers.run(3, {})} == {"small"}
    listed = [orjson.loads(raw)["headers"]["id"] for raw in workers.broker.lrange("check", 0, -1)]
    assert len(set(listed)) == len(listed)


def test_plans_are_never_listed_for_a_worker_that_reads_several_checks(workers: Workers) -> None:
    workers.enqueue("big/a", 30)
    for _ in range(10):
        task = workers.take()
        assert task is not None
        workers.end(task, 0.001, together=16)
    assert workers.broker.llen("check") == 20
    workers.enqueue("big/a", 100, queue="bulk")
    while (task := workers.take()) is not None:
        workers.end(task, 0.001, together=16)
    assert workers.broker.llen("bulk") == 4
    assert workers.waiting() == 100


def test_the_messages_of_a_project_with_little_work_are_next(workers: Workers) -> None:
    workers.enqueue("big/a", 200)
    workers.run(50, {"big": 1.0})
    workers.enqueue("small/a", 10)
    assert {task.project for task in workers.run(10, {})} == {"small"}


def test_the_queues_of_the_same_processes_share_their_turns(workers: Workers) -> None:
    """Celery takes messages of both queues alternately, so few messages of another project may be in any."""
    workers.enqueue("big/a", 200, queue="bulk")
    for _ in range(50):
        task = workers.take("bulk")
        assert task is not None
        workers.end(task, 0.1)
    workers.enqueue("small/a", 40)
    queues = cycle(["check", "bulk"])
    while workers.taken["small"] < 40:
        if (task := workers.take(next(queues))) is not None:
            workers.end(task, 0.002)
    assert workers.taken["big"] <= 50 + 8  # listed before, and after the last message of the small project


def test_a_project_goes_ahead_for_a_limited_time(workers: Workers) -> None:
    workers.enqueue("big/a", 200)
    workers.run(50, {"big": 0.1})
    workers.enqueue("small/a", 60)
    assert 5 <= Counter(task.project for task in workers.run(40, {"big": 0.1, "small": 0.1}))["small"] <= 30


def test_projects_take_turns_whatever_the_number_of_their_stacks(workers: Workers) -> None:
    for number in range(50):
        workers.enqueue(f"many/{number}", 3)
    workers.enqueue("one/a", 30)
    workers.run(40, {})
    assert workers.taken["one"] >= 17


def test_the_stacks_of_a_project_take_turns(workers: Workers) -> None:
    workers.enqueue("p/big", 100)
    workers.enqueue("p/small", 10)
    roots = Counter(task.root for task in workers.run(24, {}))
    assert roots["p/small"] == 10


def test_projects_share_the_time_of_the_workers_not_the_number_of_messages(workers: Workers) -> None:
    workers.enqueue("slow/a", 100)
    workers.enqueue("fast/a", 100)
    workers.run(60, {"slow": 0.2, "fast": 0.02})
    assert workers.taken["fast"] >= 5 * workers.taken["slow"]


def test_a_project_with_long_tasks_leaves_half_of_the_processes_to_others(workers: Workers) -> None:
    workers.enqueue("other/a", 1)
    workers.enqueue("slow/a", 50)
    workers.run(6, {"slow": LONG})
    while workers.take() is not None:
        pass
    assert [task.project for task in workers.running] == ["slow"]
    workers.enqueue("other/a", 3)
    tasks = [workers.take() for _ in range(3)]
    assert {task.project for task in tasks if task is not None} == {"other"}
    slow = workers.running[0]
    workers.end(slow, LONG)
    assert (task := workers.take()) is not None
    assert task.project == "slow"


def test_short_tasks_in_between_hide_no_long_tasks(workers: Workers) -> None:
    workers.enqueue("other/a", 1)
    workers.enqueue("slow/a", 120)
    workers.run(6, {"slow": 0.25})
    workers.run(100, {})
    while workers.take() is not None:
        pass
    assert [task.project for task in workers.running] == ["slow"]


def test_a_lone_project_with_long_tasks_has_all_processes(workers: Workers) -> None:
    workers.enqueue("slow/a", 50)
    workers.run(6, {"slow": LONG})
    assert workers.broker.llen("check") == 4


def test_plans_and_checks_count_together(workers: Workers) -> None:
    workers.enqueue("other/a", 1)
    workers.enqueue("slow/a", 20)
    workers.enqueue("slow/b", 20, queue="bulk")
    for _ in range(12):
        task = workers.take("bulk") or workers.take()
        assert task is not None
        workers.end(task, LONG)
    while workers.take() is not None or workers.take("bulk") is not None:
        pass
    assert len(workers.running) == 1


def test_a_task_whose_end_is_not_reported_counts_for_a_limited_time(workers: Workers) -> None:
    workers.enqueue("other/a", 1)
    workers.enqueue("slow/a", 50)
    workers.run(6, {"slow": LONG})
    assert workers.take() is not None  # and the worker is killed
    assert workers.take() is None
    key = f"{KEY_PREFIX}running:local:slow"
    for task in workers.broker.zrange(key, 0, -1):
        workers.broker.zadd(key, {task: 1.0})  # a minute passes
    workers.dispatcher.publish([], report=WorkerReport("worker", ["check"], 2))
    eventually(lambda: workers.broker.llen("check") == 1, 5)


def test_a_killed_worker_is_not_counted_after_its_report_has_expired(workers: Workers) -> None:
    workers.dispatcher.publish([], report=WorkerReport("killed", ["check"], 8))
    reports = f"{KEY_PREFIX}workers:local"
    eventually(lambda: workers.broker.zscore(reports, "8 killed") is not None, 5)
    workers.broker.zadd(reports, {"8 killed": 1.0})
    workers.broker.delete(f"{KEY_PREFIX}checked:local")
    workers.dispatcher.publish([], report=WorkerReport("worker", ["check"], 2))
    eventually(lambda: workers.broker.get(f"{KEY_PREFIX}capacity:local") == b"2", 5)
    assert workers.broker.zcard(reports) == 1


@pytest.mark.parametrize("seed", range(5))
def test_every_message_is_delivered_once(workers: Workers, seed: int) -> None:
    dice = random.Random(seed)
    sent, ids = 0, set[str]()
    while sent < 400 or workers.waiting() or workers.running:
        if sent < 400 and dice.random() < 0.2:
            count = dice.randint(1, 40)
            workers.enqueue(
                f"p{dice.randint(1, 4)}/{dice.randint(1, 3)}", count, dice.choice(["check", "bulk"])
            )
            sent += count
        if dice.random() < 0.6 and (task := workers.take(dice.choice(["check", "bulk"]))) is not None:
            assert task.id not in ids
            ids.add(task.id)
        elif workers.running:
            workers.end(dice.choice(workers.running), dice.choice([SHORT, LONG]))
    assert len(ids) == sent


def test_a_lost_turn_is_restored_by_the_next_message(workers: Workers) -> None:
    workers.enqueue("p/a", 10)
    workers.broker.delete(f"{KEY_PREFIX}turns:local", f"{KEY_PREFIX}stacks:local:p")
    workers.enqueue("p/a", 1)
    assert len(workers.run(11, {})) == 11


def test_the_age_of_the_oldest_waiting_message_is_known(workers: Workers) -> None:
    stats = workers.stats
    workers.enqueue("p/a", 10)
    workers.enqueue("p/b", 3)
    key = f"{KEY_PREFIX}messages:local:p/a"
    workers.broker.lset(key, 0, float(workers.broker.lindex(key, 0)) - 100)  # two minutes pass
    ages = stats.waiting_seconds(["p/a", "p/b", "p/c"])
    assert 100 <= ages["p/a"] < 160
    assert 0 <= ages["p/b"] < 60
    assert "p/c" not in ages


def test_nothing_is_known_of_an_unreachable_broker() -> None:
    assert BrokerStats("redis://127.0.0.1:1/0").waiting_seconds(["p/a"]) == {}


def test_without_a_broker_the_end_of_a_task_raises_nothing() -> None:
    Dispatcher("redis://127.0.0.1:1/0").publish_all([], [FinishedTasks(["t"], "check", "p", 1.0)])
