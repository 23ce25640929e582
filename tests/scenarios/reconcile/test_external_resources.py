"""An external resource is observed only: its template need not have the properties of a create."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from orchestrator.resources.base import Property
from tests.scenarios.fake_cloud import Cloud, Thing
from tests.scenarios.world import World


class Sized(Thing):
    """A thing whose create needs a size."""

    name = "Cloud::Sized"
    properties: ClassVar = {**Thing.properties, "size": Property("integer", "Its size.", required=True)}


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types() | {Sized.name: Sized(cloud)})
    yield world
    world.close()


def test_an_external_resource_needs_no_required_properties(world: World, cloud: Cloud) -> None:
    cloud.things["theirs"] = "another's"
    uuid = world.create("s", {"a": {"type": Sized.name, "external_id": "theirs"}})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.calls == ["observe a"]
