"""The figures of a long test, printed while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.openstack.observation.observed_world import ObservedWorld


class Report:
    """Prints to the terminal, also while pytest captures the output of tests."""

    def __init__(self, world: ObservedWorld) -> None:
        """Count the requests to the cloud of a world."""
        self._world = world

    def show(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.__stderr__, flush=True)

    @contextmanager
    def measured(self, what: str) -> Iterator[None]:
        """Print what the body costs: processor time of this thread, requests, and time."""
        begun, spent, requests = time.monotonic(), time.thread_time(), self._world.cloud.requests.total
        yield
        self.show(
            f"{what}: {time.thread_time() - spent:.2f} s of processor time in"
            f" {time.monotonic() - begun:.0f} s, {self._world.cloud.requests.total - requests} requests"
        )
