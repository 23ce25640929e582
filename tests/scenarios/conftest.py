"""A world for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.world import World


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    """A fresh installation."""
    made = World(postgres_url)
    yield made
    made.close()
