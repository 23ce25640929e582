"""The figures of a long test, printed while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.openstack.observation.observed_world import ObservedWorld


class Report:
    """Prints to the terminal, also while pytest captures the output of tests."""

    def __init__(self, world: ObservedWorld, capture: pytest.CaptureFixture[str]) -> None:
        """Count the requests to the cloud of a world."""
        self._world, self._capture = world, capture

    def show(self, text: str) -> None:
        """Print a line."""
        with self._capture.disabled():
            print(text, flush=True)

    @contextmanager
    def measured(self, what: str) -> Iterator[None]:
        """Print the costs of the body: processor time of this thread, requests, and time."""
        begun, spent, requests = time.monotonic(), time.thread_time(), self._world.cloud.requests.total
        yield
        self.show(
            f"{what}: {time.thread_time() - spent:.2f} s of processor time in"
            f" {time.monotonic() - begun:.0f} s, {self._world.cloud.requests.total - requests} requests"
        )
