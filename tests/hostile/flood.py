"""Requests of an attacker, repeated without a pause by threads of a separate process.

The process has the lowest priority, because an attacker works on a different machine.
"""

from __future__ import annotations

import contextlib
import http.client
import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import count
from queue import Empty
from typing import Any, Self

from orchestrator.process_control import die_with, yield_processor

SPAWN = multiprocessing.get_context("spawn")
LOWEST = 19  # priority
RETRY_SECONDS = 0.05  # pause after a connection that failed


@dataclass(frozen=True, slots=True)
class Request:
    """A request."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


Answer = tuple[int, bytes]  # status and body; (0, b"") if the connection was closed
Requests = Generator[Request, Answer, None]
Client = Callable[[int], Requests]  # called with a new number for each series of requests


class Flood:
    """Clients that send requests for the duration of a block; afterwards `statuses` has the counts."""

    def __init__(self, port: int, client: Client, clients: int, headers: dict[str, str]) -> None:
        """Send with `headers`, unless a request has its own."""
        self.statuses: Counter[int] = Counter()
        self._over = SPAWN.Event()
        self._results: Any = SPAWN.Queue()
        self._process = SPAWN.Process(
            target=_run, args=(port, client, clients, headers, self._over, self._results), daemon=True
        )

    def __enter__(self) -> Self:
        self._process.start()
        assert self._results.get(timeout=60) == "started"
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        try:
            self.statuses = self._results.get(timeout=10)
        except Empty:
            self.statuses = Counter()
        self._process.kill()
        self._process.join()


def become_attacker() -> None:
    """Prepare a new process for an attack: it has the lowest priority and ends with the test run."""
    die_with(os.getppid())  # a killed test run leaves no attack behind
    yield_processor(LOWEST, new_session=True)


def _run(port: int, client: Client, clients: int, headers: dict[str, str], over: Any, results: Any) -> None:
    become_attacker()
    statuses: Counter[int] = Counter()
    numbers = count(time.monotonic_ns() // 1_000_000)
    for _ in range(clients):
        arguments = (port, client, numbers, headers, statuses)
        threading.Thread(target=_repeat, args=arguments, daemon=True).start()
    results.put("started")
    over.wait()
    results.put(Counter(statuses))


def _repeat(
    port: int, client: Client, numbers: Iterator[int], headers: dict[str, str], statuses: Counter[int]
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    while True:
        requests = client(next(numbers))
        with contextlib.suppress(StopIteration):
            request = next(requests)
            while True:
                answer = _send(connection, request, headers)
                statuses[answer[0]] += 1
                request = requests.send(answer)


def _send(connection: http.client.HTTPConnection, request: Request, headers: dict[str, str]) -> Answer:
    try:
        connection.request(request.method, request.path, request.body, {**headers, **request.headers})
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        time.sleep(RETRY_SECONDS)
        return 0, b""
