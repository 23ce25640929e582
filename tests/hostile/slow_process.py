"""Slow clients in a separate process.

In the process that measures, they would delay the measurement: both share the interpreter. The process has
the lowest priority, because an attacker works on a different machine.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from orchestrator.process_control import die_with, yield_processor
from tests.hostile.slow import SlowClients

SPAWN: Final = multiprocessing.get_context("spawn")
LOWEST: Final = 19  # priority
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
    die_with(os.getppid())  # a killed test run leaves no attack behind
    yield_processor(LOWEST, new_session=True)
    with SlowClients(port, request, drips=drips) as clients:
        started.set()
        over.wait()
    print("statuses of the attacker", clients.statuses)
