"""The maximum size of a template, in the settings and for a single project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from api.app import operations
from api.dependencies import Dependencies
from api.routes import assemble
from orchestrator.store.access.quotas import set_maximum
from tests.scenarios.children.test_nested_stacks import URL, child_text, nested
from tests.scenarios.world import World

TOO_LARGE = "exceeds maximum allowed size ({} bytes)."


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    """A world with templates of at most 100 bytes."""
    world = World(postgres_url, max_template_size=100)
    yield world
    world.close()


@pytest.fixture
def api(world: World) -> FlaskClient:
    parts = (world.database, world.cipher, world.types, operations(), world.messages.extend)
    return assemble(Dependencies(world.settings, *parts)).test_client()


def create(api: FlaskClient, project: str) -> Any:
    template = {"heat_template_version": "2021-04-16", "resources": {"child": nested()}}
    body = {"stack_name": "s", "template": template, "files": {URL: child_text()}}
    return api.post(f"/v1/{project}/stacks", json=body)


@pytest.mark.parametrize("maximum", [10_000, -1])
def test_a_project_can_have_larger_templates(world: World, api: FlaskClient, maximum: int) -> None:
    with world.database.connect() as db:
        set_maximum(db, "p1", "template_bytes", maximum)
    refused = create(api, "p2")
    assert refused.status_code == 400
    assert refused.get_json()["error"]["type"] == "RequestLimitExceeded"
    assert TOO_LARGE.format(100) in refused.get_json()["error"]["message"]
    accepted = create(api, "p1")
    assert accepted.status_code == 201, accepted.get_json()
    world.deliver_all()  # workers have the limit of the settings
    assert world.stack_row("s").state == "CREATE_COMPLETE"


def test_a_project_can_have_smaller_templates(world: World, api: FlaskClient) -> None:
    with world.database.connect() as db:
        set_maximum(db, "p1", "template_bytes", 50)
    assert TOO_LARGE.format(50) in create(api, "p1").get_json()["error"]["message"]
