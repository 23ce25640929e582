"""Many large bodies at the same time: the number of parsing processes is limited, and shared by projects."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from orchestrator.operations.offload import NICENESS
from orchestrator.security.encryption import new_key
from qa.bench.processes import family, sample_processes
from tests.integration.served_api import served

LIMIT = 4  # parsing processes of the installation; a project uses two
REQUESTS = 8
RESOURCES = 10_000  # half a second of parsing


@pytest.fixture
def url(
    new_database: Callable[[], str], valkey_server: object, broker_numbers: Iterator[int], tmp_path: Path
) -> Iterator[str]:
    settings = {
        "auth": "none",
        "database_url": new_database(),
        "broker_url": valkey_server.url(next(broker_numbers)),  # type: ignore[attr-defined]
        "encryption_keys": new_key(),
        "max_parsing_processes": LIMIT,
        "max_concurrent_requests": "-1",
        "max_slow_bodies": 8 * REQUESTS,  # a quarter for each project
    }
    with served(settings, tmp_path / "log", threads=3 * REQUESTS) as port:
        yield f"http://127.0.0.1:{port}/v1"


def body(resources: int) -> bytes:
    resource = {"type": "OS::Heat::TestResource", "properties": {"value": "x" * 20}}
    named = {f"item_{number}": resource for number in range(resources)}
    return json.dumps({"template": {"heat_template_version": "2021-04-16", "resources": named}}).encode()


def parsing_processes() -> set[int]:
    """Return the ids of processes that a fork server below this process has started."""
    processes = sample_processes()
    below = family({os.getpid(): "test"}, processes)  # other tests run at the same time
    servers = {pid for pid in below if "multiprocessing.forkserver" in processes[pid].command}
    return {pid for pid in servers if processes[pid].parent in servers}


class Peak:
    """The largest number of parsing processes during a block, and their largest niceness.

    A sample reads one process after the other: it can contain a process that has ended meanwhile, and its
    successor. Processes in two samples have run at the same time.
    """

    def __init__(self) -> None:
        self.count, self.niceness = 0, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        previous: set[int] = set()
        while not self._over.wait(0.02):
            running = parsing_processes()
            self.count = max(self.count, len(running & previous))
            previous = running
            for pid in running:
                with contextlib.suppress(ProcessLookupError):
                    self.niceness = max(self.niceness, os.getpriority(os.PRIO_PROCESS, pid))


def test_a_project_uses_half_of_the_parsing_processes_and_delays_no_other_project(url: str) -> None:
    content = body(RESOURCES)

    def validate(project: str) -> tuple[int, float]:
        answer = httpx.post(
            f"{url}/{project}/validate",
            content=content,
            headers={"Content-Type": "application/json"},
            timeout=120.0,
        )
        return answer.status_code, time.monotonic()

    with Peak() as peak, ThreadPoolExecutor(REQUESTS + 1) as pool:
        hostile = [pool.submit(validate, "hostile") for _ in range(REQUESTS)]
        while not any(request.done() for request in hostile):
            time.sleep(0.02)
        status, answered_at = pool.submit(validate, "other").result()
        results = [request.result() for request in hostile]
    assert status == 200
    assert {status for status, _ in results} == {200}
    assert 1 <= peak.count <= LIMIT // 2 + 1
    assert answered_at < max(at for _, at in results)
    assert peak.niceness == os.nice(0) + NICENESS


def test_further_large_requests_of_a_project_are_told_to_come_back(url: str) -> None:
    content = body(RESOURCES)

    def validate() -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        return httpx.post(f"{url}/hostile/validate", content=content, headers=headers, timeout=120.0)

    with ThreadPoolExecutor(2 * REQUESTS) as pool:
        answers = [request.result() for request in [pool.submit(validate) for _ in range(2 * REQUESTS)]]
    assert {answer.status_code for answer in answers} == {200, 429}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["Retry-After"]) > 0
    assert refused.json()["error"]["message"].startswith(
        "Too many requests with large bodies are in progress"
    )
