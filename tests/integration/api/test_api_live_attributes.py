"""Live attributes over HTTP (docs/plugins.md, "Live attributes")."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import pytest

from tests.integration.api_world import Client, Made, World, api, project, root, world  # noqa: F401 - fixtures


@pytest.fixture
def made(world: World, project: str) -> Made:
    """A stack without resources."""
    return world.stack(project, "s")


def test_live_attributes_are_read_when_a_resource_is_shown(api: Client, world: World, made: Made) -> None:
    world.resource(made, "e", type="Test::Watched", physical_id="here")
    shown = api.get(f"{made.path}/resources/e?with_attr=now&with_attr=pin")["resource"]
    assert shown["attributes"] == {"id": "here", "now": "here", "pin": None}
    assert "attributes_error" not in shown


def test_live_attributes_that_cannot_be_read_are_null_with_the_reason(
    api: Client, world: World, made: Made
) -> None:
    world.resource(made, "e", type="Test::Watched", physical_id="away")
    shown = api.get(f"{made.path}/resources/e")["resource"]
    assert shown["attributes"] == {"now": None, "pin": None}
    assert shown["attributes_error"] == "The attributes of e cannot be read: ProviderError: too many requests"
