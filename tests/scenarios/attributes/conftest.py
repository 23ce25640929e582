"""Calls that last until the end of a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def release_at_end() -> Iterator[threading.Event]:
    """An event that is set when the test has ended: a provider without an answer waits for it."""
    event = threading.Event()
    yield event
    event.set()
