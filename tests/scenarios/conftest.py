"""A world for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.scenarios.warm_database import Kept, keep
from tests.scenarios.world import World


@pytest.fixture(scope="session")
def kept(new_database: Callable[[], str]) -> Iterator[Kept]:
    """The database of all tests here that ask for no other."""
    made = keep(new_database())
    yield made
    made.close()


@pytest.fixture
def postgres_url(kept: Kept) -> str:
    """A database with nothing in it, used by tests before."""
    kept.empty()
    return kept.url


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    """A fresh installation."""
    made = World(postgres_url)
    yield made
    made.close()
