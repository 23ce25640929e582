"""Stacks of servers that never become ready, for tests of time limits and take-overs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.errors import ProviderSilent
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

SERVER = "Cloud::Server"
NEVER = 10_000  # observations until it is ready


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types(), action_retry_limit=2)
    yield world
    world.close()


def server(**properties: object) -> dict[str, object]:
    return cloud_thing(type=SERVER, **properties)


def limited(seconds: float, name: str = "a") -> dict[str, Any]:
    return {"resource_registry": {"resources": {name: {"ready_timeout": seconds}}}}


def stuck(world: World, **request: Any) -> str:
    """Create a stack whose server never becomes ready; return the stack's uuid."""
    uuid = world.create("s", {"a": server(looks=NEVER)}, **request)
    world.retry()
    assert world.status("a") == "CREATE_IN_PROGRESS"
    return uuid


def swallow_answer(_ctx: object) -> None:
    raise ProviderSilent("no answer")
