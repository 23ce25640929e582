"""Installations without retries, and the outcomes, reasons and causes that they record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.store.stacks import history
from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.world import World


def outcomes(world: World) -> list[str | None]:
    return [row.outcome for row in world.rows("SELECT outcome FROM revision ORDER BY number")]


def reason(world: World) -> str:
    [row] = world.rows("SELECT status_reason FROM stack")
    return str(row.status_reason)


def causes(world: World) -> list[tuple[str, int | None]]:
    stack = world.stack_row("s")
    result = history.list_failures(world.database, stack, range(1, stack.traversal + 1))
    return [(row.resource_name, row.revision) for row in result]


@pytest.fixture
def cloudy(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types(), action_retry_limit=0)
    yield world
    world.close()
