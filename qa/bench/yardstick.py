"""The yardstick: empty Celery tasks per second, on the same workers and the same broker, at this moment.

The speed of a machine varies, so the yardstick is measured repeatedly, between the compared runs. The tasks
are queued in advance under another queue name; the queue is renamed when every worker consumes. So neither
the start of a worker nor a publisher affects the rate.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import redis

from orchestrator.embedded.process import Child, Process
from orchestrator.embedded.processes import READY_VARIABLE
from orchestrator.embedded.valkey import connect
from qa.bench import empty_app
from qa.bench.processes import Watch
from qa.bench.servers import YARDSTICK_DATABASE, Servers, clean_environment

TASKS = 5_000
WARM = 0.05  # of the tasks, before the clock starts
POLL_SECONDS = 0.02
TREE = Path(__file__).resolve().parents[2]
QUEUE, ASIDE, UNACKED = "celery", "filled", "unacked"
LIMIT_SECONDS = 120.0
FRESH_SECONDS = 5.0  # that a measurement says how fast the machine is


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A run of the empty task."""

    tasks_per_second: float
    worker_cpu_ms: float  # a task, of all workers together
    broker_cpu_ms: float
    workers: int
    tasks: int
    foreign_share: float | None = None  # the share of the machine that went to strangers

    @property
    def cpu_ms(self) -> float:
        """Processor milliseconds a task, of everything that takes part."""
        return self.worker_cpu_ms + self.broker_cpu_ms


class Gauge:
    """Current speed of the machine, measured again when the last measurement is old."""

    def __init__(self, servers: Servers, workers: int, taken: list[Yardstick]) -> None:
        """Append each measurement to `taken`."""
        self.servers, self.workers, self.taken = servers, workers, taken
        self._at = -FRESH_SECONDS

    def read(self) -> Yardstick:
        """Return the yardstick as it is now."""
        if not self.taken or time.monotonic() - self._at >= FRESH_SECONDS:
            self.taken.append(measure_yardstick(self.servers, self.workers))
            self._at = time.monotonic()
        return self.taken[-1]


def measure_yardstick(servers: Servers, workers: int, tasks: int = TASKS) -> Yardstick:
    """Fill a queue, let `workers` single-process workers empty it, and return how fast they were."""
    url = servers.valkey.url(YARDSTICK_DATABASE)
    with connect(url) as client:
        client.flushdb()
        _fill(url, tasks)
        client.rename(QUEUE, ASIDE)
        with _workers(servers.folder, url, workers) as pids:
            with Watch({**servers.pids, **pids}) as watch:
                client.rename(ASIDE, QUEUE)
                rate = _drain(client, tasks)
            usage = watch.usage
        client.flushdb()
    worker_ms, broker_ms = (usage.cpu_seconds.get(name, 0.0) * 1000 / tasks for name in ("worker", "valkey"))
    return Yardstick(rate, worker_ms, broker_ms, workers, tasks, usage.foreign_share)


def _fill(url: str, tasks: int) -> None:
    with empty_app.app.connection_for_write(url) as connection:
        producer = empty_app.app.amqp.Producer(connection)
        for _ in range(tasks):
            empty_app.empty.apply_async(producer=producer, retry=False)


@contextlib.contextmanager
def _workers(folder: Path, url: str, count: int) -> Iterator[dict[int, str]]:
    processes = []
    try:
        processes = [Process(_worker(folder, url, n), folder / f"empty{n}.log") for n in range(count)]
        for process in processes:
            process.wait_ready()
        yield {process.pid: "worker" for process in processes}
    finally:
        for process in processes:
            process.stop()


def _worker(folder: Path, url: str, number: int) -> Child:
    reported = folder / f"empty{number}.ready"
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    options = ("-P", "solo", "-n", f"empty{number}@%h", "--include", "orchestrator.embedded.worker_readiness")
    return Child(
        name=f"empty{number}",
        argv=(sys.executable, "-m", "celery", "-A", empty_app.__name__, "worker", *options, *quiet),
        env={
            **clean_environment(),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(TREE), os.environ.get("PYTHONPATH")))),
            empty_app.VARIABLE: url,
            READY_VARIABLE: str(reported),
        },
        cwd=folder,
        ready=lambda pid: reported.exists() and reported.read_text() == str(pid),
    )


def _drain(client: redis.Redis, tasks: int) -> float:
    """Return tasks per second from when WARM of them are done to when all are."""
    deadline = time.monotonic() + LIMIT_SECONDS
    started_at, before = time.monotonic(), 0
    while True:
        with client.pipeline(transaction=True) as pipeline:
            pipeline.llen(QUEUE)
            pipeline.hlen(UNACKED)
            remaining = sum(pipeline.execute())
        now = time.monotonic()
        if remaining == 0:
            return (tasks - before) / (now - started_at)
        if not before and tasks - remaining >= tasks * WARM:
            started_at, before = now, tasks - remaining
        if now > deadline:
            raise TimeoutError(f"{remaining} of {tasks} empty tasks were left after {LIMIT_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
