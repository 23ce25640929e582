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
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types(), action_retry_limit=2)
    yield world
    world.close()


def server(**properties: object) -> dict[str, object]:
    return cloud_thing(type=SERVER, **properties)


def observe(world: World, times: int = 1) -> None:
    """Let the waiting nodes become due so many times."""
    for _ in range(times):
        while world.messages:
            world.deliver()
        world.sweep_once()
    while world.messages:
        world.deliver()


def limited(seconds: float, name: str = "a") -> dict[str, Any]:
    return {"resource_registry": {"resources": {name: {"ready_timeout": seconds}}}}


def status_of(world: World, name: str) -> str:
    row = world.resource(name)
    return f"{row.action}_{row.status}"


def stuck(world: World, **request: Any) -> str:
    """Create a stack whose server never becomes ready; return the stack's uuid."""
    uuid = world.create("s", {"a": server(looks=NEVER)}, **request)
    observe(world)
    assert status_of(world, "a") == "CREATE_IN_PROGRESS"
    return uuid


def swallow_answer(_ctx: object) -> None:
    raise ProviderSilent("no answer")
