"""An installation without retries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.world import World


@pytest.fixture
def cloudy(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types(), action_retry_limit=0)
    yield world
    world.close()
