"""Slow clients in a separate process.

In the process that measures, they would delay the measurement: both share the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.hostile.flood import SPAWN, become_attacker
from tests.hostile.slow import SlowClients

START_SECONDS: Final = 60


@contextmanager
def slow_clients(port: int, request: bytes, *, drips: bool = True) -> Iterator[None]:
    """Attack for the duration of a block; print the statuses of the responses afterwards."""
    started, over = SPAWN.Event(), SPAWN.Event()
    process = SPAWN.Process(target=_run, args=(port, request, drips, started, over), daemon=True)
    process.start()
    try:
        assert started.wait(START_SECONDS)
        yield
    finally:
        over.set()
        process.join(START_SECONDS)
        process.kill()


def _run(port: int, request: bytes, drips: bool, started: Any, over: Any) -> None:
    become_attacker()
    with SlowClients(port, request, drips=drips) as clients:
        started.set()
        over.wait()
    print("statuses of the attacker", clients.statuses)
