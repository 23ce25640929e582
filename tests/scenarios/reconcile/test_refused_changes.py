"""A change of an immutable property fails the update; the resource and its object stay as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.resources.base import Property
from tests.scenarios.fake_cloud import Cloud, Server, cloud_thing
from tests.scenarios.world import World


class Fixed(Server):
    """A thing whose place never changes."""

    name = "Cloud::Fixed"
    properties = {**Server.properties, "place": Property("string", default="here", immutable=True)}  # noqa: RUF012


@pytest.fixture
def fixed(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    made = World(postgres_url, types={**cloud.types(), Fixed.name: Fixed(cloud)})
    yield made
    made.close()


@pytest.mark.parametrize("earlier", ["create", "check"])
def test_the_resource_has_failed_its_update_whatever_it_did_before(
    fixed: World, cloud: Cloud, earlier: str
) -> None:
    uuid = fixed.create("s", {"a": cloud_thing(type=Fixed.name)})
    fixed.deliver_all()
    if earlier == "check":
        fixed.act("s", "check")
        fixed.deliver_all()
    object_id = fixed.resource("a").physical_id
    fixed.update("s", {"a": cloud_thing(type=Fixed.name, place="there")})
    fixed.deliver_all()
    row = fixed.resource("a")
    assert (fixed.state(uuid), row.action, row.status) == ("UPDATE_FAILED", "UPDATE", "FAILED")
    assert "Update to properties place of a (Cloud::Fixed) is not supported." in row.status_reason
    assert "a UPDATE_FAILED" in fixed.events(uuid)
    fixed.update("s", {"a": cloud_thing(type=Fixed.name)})
    fixed.deliver_all()
    row = fixed.resource("a")
    assert (fixed.state(uuid), row.action, row.status) == ("UPDATE_COMPLETE", "UPDATE", "COMPLETE")
    assert row.physical_id == object_id
    assert list(cloud.things) == [object_id]
