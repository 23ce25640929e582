"""A world for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.scenarios.fake_cloud import Cloud
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
def cloud() -> Cloud:
    """The simulated provider of `world`."""
    return Cloud()


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    """A fresh installation with the types of the simulated provider."""
    made = World(postgres_url, types=cloud.types())
    yield made
    made.close()
