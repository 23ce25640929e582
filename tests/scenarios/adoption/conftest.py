"""An installation that permits to abandon and adopt stacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.world import World


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    made = World(postgres_url, types=cloud.types(), enable_stack_abandon=True, enable_stack_adopt=True)
    yield made
    made.close()
