"""A server for the tests that go end to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.running import Up


@pytest.fixture(scope="module")
def start_up() -> Iterator[Callable[..., Up]]:
    """Start `orchestrator up`; what still runs is stopped when the module's tests are through."""
    started: list[Up] = []

    def start(*args: Any, **kwargs: Any) -> Up:
        up = Up(*args, **kwargs)
        started.append(up)
        return up

    yield start
    for up in started:
        if up.process.poll() is None:
            up.stop()
        elif up.process.stdout is not None and not up.process.stdout.closed:
            up.process.communicate()
