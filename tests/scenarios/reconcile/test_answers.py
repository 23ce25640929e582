"""The answer of a request may describe the object: an observation of it is saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from orchestrator.errors import ProviderError, ProviderSilent
from orchestrator.resources.base import Context, Created, Observation, Value
from tests.scenarios.fake_cloud import Cloud, Thing
from tests.scenarios.world import World

STARTS = Observation(exists=True, ready=False, retry_after=1.0, reason="it starts")


class Described(Thing):
    """A thing whose requests are answered with its state."""

    name = "Cloud::Described"
    first: Observation | None = None

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        return replace(super().create(ctx, props), observation=self.first)

    def delete(self, ctx: Context, physical_id: str) -> Observation:
        super().delete(ctx, physical_id)
        return Observation(exists=False)


@pytest.fixture
def described(cloud: Cloud) -> Described:
    return Described(cloud)


@pytest.fixture
def world(postgres_url: str, cloud: Cloud, described: Described) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types() | {described.name: described})
    yield world
    world.close()


TEMPLATE = {"a": {"type": Described.name}}


def test_an_object_that_is_ready_in_the_answer_is_not_observed(
    world: World, cloud: Cloud, described: Described
) -> None:
    described.first = Observation(exists=True, attributes={"value": "answered"})
    uuid = world.create("s", TEMPLATE)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.calls == ["create a"]


def test_an_object_that_is_not_ready_in_the_answer_is_observed_when_it_is_due(
    world: World, cloud: Cloud, described: Described
) -> None:
    described.first = STARTS
    uuid = world.create("s", TEMPLATE)
    while world.messages:
        world.deliver(1)
    assert cloud.calls == ["create a"]
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.calls == ["create a", "observe a"]


def test_an_object_that_is_absent_in_the_answer_of_its_delete_is_not_observed(
    world: World, cloud: Cloud, described: Described
) -> None:
    described.first = Observation(exists=True)
    uuid = world.create("s", TEMPLATE)
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.calls == ["create a", "delete a"]


def test_a_repeated_create_is_refused_because_the_first_was_carried_out_late(
    world: World, cloud: Cloud
) -> None:
    def silent(_: Context) -> None:
        cloud.on["create"] = late
        raise ProviderSilent("no answer")

    def late(ctx: Context) -> None:
        cloud.make(ctx)  # the first request
        raise ProviderError("the address is in use")

    cloud.on["create"] = silent
    uuid = world.create("s", {"a": {"type": "Cloud::Thing"}})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}
