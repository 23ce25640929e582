"""The physical name of a resource in every verb."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.resources.base import Context, Observation
from tests.scenarios.fake_cloud import Cloud, Server
from tests.scenarios.world import World

LIMIT = 30


class Named(Server):
    """A thing with a short name."""

    name = "Cloud::Named"
    physical_name_limit = LIMIT

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        self.cloud.call("observe", ctx)
        return super().observe(ctx, physical_id)


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    """A world whose things have short names."""
    made = World(postgres_url, types={Named.name: Named(cloud)})
    yield made
    made.close()


def test_every_verb_receives_the_same_name_within_the_limit_of_the_type(world: World, cloud: Cloud):
    given: dict[str, set[str]] = {}
    for verb in ("create", "observe", "delete"):
        cloud.on[verb] = lambda ctx, verb=verb: given.setdefault(verb, set()).add(ctx.physical_name)
    uuid = world.create("a-stack-with-a-long-name", {"a-long-name": {"type": Named.name}})
    world.deliver_all()
    world.delete("a-stack-with-a-long-name")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    (name,) = given["create"] | given["observe"] | given["delete"]
    assert (len(name), name[:3]) == (LIMIT, "a--")
