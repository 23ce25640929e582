"""A delete is requested once. It is repeated if it was not answered, or if the object is in error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from orchestrator.engine.check.outcome import FIRST_DELETE_RETRY_SECONDS
from orchestrator.errors import ProviderBusy, ProviderSilent
from orchestrator.resources.base import Context, Observation
from tests.scenarios.fake_cloud import Cloud, Crash, Thing
from tests.scenarios.world import World

RETRY_SECONDS = 60.0
STALLED_SECONDS = 300.0


class Disk(Thing):
    """A thing whose delete takes a while, and may end in error."""

    name = "Cloud::Disk"
    delete_retry_seconds: ClassVar[float] = RETRY_SECONDS
    delete_stalled_seconds: ClassVar[float] = STALLED_SECONDS

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self.observations: list[Observation] = []  # of the delete; then the disk is gone

    def delete(self, ctx: Context, physical_id: str) -> None:
        self.cloud.call("delete", ctx)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        if ctx.action != "DELETE":
            return super().observe(ctx, physical_id)
        self.cloud.call("observe", ctx)
        if self.observations:
            return self.observations.pop(0)
        self.cloud.things.pop(physical_id, None)
        return Observation(exists=False)


BUSY = Observation(exists=True, ready=False, retry_after=1.0, reason="deleting")
STUCK = Observation(exists=True, error="it is in use", error_kind="ResourceInError")


@pytest.fixture
def disk(cloud: Cloud) -> Disk:
    return Disk(cloud)


@pytest.fixture
def world(postgres_url: str, cloud: Cloud, disk: Disk) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types() | {disk.name: disk}, action_retry_limit=2)
    yield world
    world.close()


def a_disk(**properties: Any) -> dict[str, Any]:
    return {"type": Disk.name, "properties": properties}


def created(world: World) -> str:
    uuid = world.create("s", {"a": a_disk()})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def once(cloud: Cloud, verb: str, error: BaseException) -> None:
    def fail(_: Context) -> None:
        del cloud.on[verb]
        raise error

    cloud.on[verb] = fail


def test_a_delete_in_progress_is_only_observed(world: World, disk: Disk, cloud: Cloud) -> None:
    uuid = created(world)
    disk.observations = [BUSY, BUSY, BUSY]
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.calls[-5:] == ["delete a", "observe a", "observe a", "observe a", "observe a"]


@pytest.mark.parametrize("error", [ProviderSilent("no answer"), ProviderBusy("later"), TimeoutError("late")])
def test_a_request_without_an_answer_is_repeated(world: World, cloud: Cloud, error: Exception) -> None:
    uuid = created(world)
    once(cloud, "delete", error)
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    # After a request without an answer, the absence is confirmed.
    assert cloud.calls[-4:] == ["delete a", "delete a", "observe a", "observe a"]


def test_an_observation_without_an_answer_repeats_no_request(world: World, disk: Disk, cloud: Cloud) -> None:
    uuid = created(world)
    disk.observations = [BUSY]
    once(cloud, "observe", ProviderBusy("later"))
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.calls.count("delete a") == 1


def test_a_worker_that_dies_after_the_answer_was_recorded_repeats_no_request(
    world: World, disk: Disk, cloud: Cloud
) -> None:
    uuid = created(world)
    disk.observations = [BUSY, BUSY]
    world.delete("s")
    while world.messages:
        world.deliver(1)
    once(cloud, "observe", Crash())
    world.sweep_once()
    with pytest.raises(Crash):
        world.deliver(10)
    world.forget_leases()
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.calls.count("delete a") == 1


def test_an_object_in_error_is_deleted_again_after_a_while(world: World, disk: Disk, cloud: Cloud) -> None:
    uuid = created(world)
    disk.observations = [*[STUCK] * 6, BUSY]
    world.delete("s")
    while world.messages:
        world.deliver(1)
    assert world.resource("a").status_reason == "ResourceInError: it is in use"
    for requests, seconds in enumerate((FIRST_DELETE_RETRY_SECONDS, RETRY_SECONDS), 1):
        world.retry()
        assert cloud.calls.count("delete a") == requests
        world.elapse(seconds, "delete request")
        world.retry()
        assert cloud.calls.count("delete a") == requests + 1
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.calls.count("delete a") == 3


def test_a_delete_that_the_provider_has_lost_is_repeated(world: World, disk: Disk, cloud: Cloud) -> None:
    uuid = created(world)
    disk.observations = [BUSY] * 10
    world.delete("s")
    while world.messages:
        world.deliver(1)
    for requests in (1, 2, 3):
        world.retry()
        assert cloud.calls.count("delete a") == requests
        world.elapse(STALLED_SECONDS, "delete request")
        world.retry()
        assert cloud.calls.count("delete a") == requests + 1
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_an_object_that_stays_in_error_fails_the_delete(world: World, disk: Disk, cloud: Cloud) -> None:
    uuid = created(world)
    disk.observations = [STUCK] * 100
    world.delete("s")
    while world.state(uuid) == "DELETE_IN_PROGRESS":
        world.elapse(RETRY_SECONDS, "delete request")
        world.retry()
    assert world.state(uuid) == "DELETE_FAILED"
    assert cloud.calls.count("delete a") == 3  # and two repetitions
    assert world.resource("a").status_reason == "ResourceInError: resources.a: it is in use"
    disk.observations = []
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.calls.count("delete a") == 4


def test_the_object_of_a_failed_create_is_deleted_once(world: World, disk: Disk, cloud: Cloud) -> None:
    disk.observations = [BUSY, STUCK, BUSY]
    uuid = world.create("s", {"a": a_disk(errors=1)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 2}
    assert cloud.calls.count("delete a") == 1
