"""A type with every verb, and a cloud whose verbs raise the errors that a test selects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import pytest

from orchestrator.errors import ProviderBusy, ProviderQuotaExceeded, ProviderSilent, ProviderUnreachable
from orchestrator.resources.base import Context, Fault, Property, Value
from tests.scenarios.fake_cloud import Cloud, Machine, cloud_thing
from tests.scenarios.world import World

DESK = "Cloud::Desk"
NO_ANSWER = [
    ProviderBusy("503"),
    ProviderUnreachable("no route"),
    ProviderQuotaExceeded("no quota"),
    ProviderSilent("no answer"),
    ConnectionResetError("by peer"),
    TimeoutError("20 s"),
]


class Desk(Machine):
    """A machine with the verbs that the other types lack."""

    name = DESK
    preemptible = frozenset({"CREATE"})
    properties: ClassVar = {
        **Machine.properties,
        "looks": Property("integer", "Observations until it is ready.", default=0),
    }

    def inquire(self, ctx: Context, props: Mapping[str, Value]) -> tuple[Fault, ...]:
        self.cloud.call("inquire", ctx)
        return ()

    def check(self, ctx: Context, physical_id: str) -> None:
        self.cloud.call("check", ctx)

    def must_replace(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> bool:
        self.cloud.call("must_replace", ctx)
        return False

    def cancel(self, ctx: Context, physical_id: str) -> str:
        self.cloud.call("cancel", ctx)
        return "cancelled"

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        self.cloud.call("is_healthy_after_failure", ctx)
        return physical_id in self.cloud.things


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types={**cloud.types(), DESK: Desk(cloud)})
    yield world
    world.close()


def desk(**properties: object) -> dict[str, object]:
    return cloud_thing(type=DESK, **properties)


def fails(error: BaseException) -> Callable[[Context], None]:
    """Return an action of the cloud that raises the error."""

    def fail(_ctx: Context) -> None:
        raise error

    return fail


def created(world: World, **properties: object) -> str:
    uuid = world.create("s", {"a": desk(**properties)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid
