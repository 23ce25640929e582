"""Operations of several steps: each step is recorded, carried out, and followed by an observation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.errors import ProviderBusy, ProviderError, ProviderSilent
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from orchestrator.resources.base import Context
from tests.scenarios.fake_cloud import Cloud, Crash
from tests.scenarios.reconcile.stepped import Stepped, stepped
from tests.scenarios.world import World


@pytest.fixture
def kind(cloud: Cloud) -> Stepped:
    return Stepped(cloud)


@pytest.fixture
def world(postgres_url: str, cloud: Cloud, kind: Stepped) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types() | {kind.name: kind})
    yield world
    world.close()


def steps(kind: Stepped) -> list[str]:
    return [step for step, _, _ in kind.seen]


def created(world: World) -> str:
    uuid = world.create("s", {"a": stepped(value="1")})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def deliver_with_deaths(world: World) -> None:
    """Deliver all messages; the leases of a worker that dies expire."""
    while world.messages or world.sweep_once() or world.sweep_once():
        try:
            world.deliver(1)
        except Crash:
            world.engine = world.new_engine()
            world.forget_leases()


def once(cloud: Cloud, verb: str, error: BaseException) -> None:
    def fail(_: Context) -> None:
        del cloud.on[verb]
        raise error

    cloud.on[verb] = fail


def test_a_create_carries_out_its_steps_in_one_visit(world: World, kind: Stepped, cloud: Cloud) -> None:
    created(world)
    assert kind.seen == [("attach", "CREATE", "1"), ("start", "CREATE", "1")]
    assert cloud.calls == ["create a", "observe a", "attach a", "observe a", "start a", "observe a"]
    assert kind.told == ["", "attach", "start"]
    row = world.resource("a")
    assert (row.data, row.op) == ({"started": True}, None)


def test_an_update_sees_the_new_properties(world: World, kind: Stepped) -> None:
    created(world)
    world.update("s", {"a": stepped(value="2")})
    world.deliver_all()
    assert kind.seen[2:] == [("confirm", "UPDATE", "2")]
    assert world.status("a") == "UPDATE_COMPLETE"
    assert kind.told[-2:] == ["", "confirm"]  # not the last step of the create


def test_actions_and_deletes_have_steps(world: World, kind: Stepped, cloud: Cloud) -> None:
    uuid = created(world)
    world.messages += snapshots.take(world.context, world.stack_row("s"), Body(b"{}")).messages
    world.deliver_all()
    assert world.state(uuid) == "SNAPSHOT_COMPLETE"
    world.act("s", "suspend")
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert steps(kind)[2:] == ["quiesce", "shelve", "detach"]
    assert cloud.calls.count("delete a") == 1
    assert world.state(uuid) == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    "error", [ProviderSilent("no answer"), ProviderBusy("later"), ConnectionError("lost")]
)
@pytest.mark.parametrize("moment", ["confirm", "confirmed"])
def test_a_step_without_an_answer_is_followed_by_an_observation(
    world: World, kind: Stepped, cloud: Cloud, error: Exception, moment: str
) -> None:
    created(world)
    once(cloud, moment, error)
    world.update("s", {"a": stepped(value="2")})
    world.deliver_all()
    assert world.status("a") == "UPDATE_COMPLETE"
    assert cloud.calls.count("update a") == 1
    assert cloud.calls.count("confirm a") == (2 if moment == "confirm" else 1)


@pytest.mark.parametrize("moment", ["confirm", "confirmed"])
def test_after_a_death_in_a_step_the_request_is_not_sent_again(
    world: World, kind: Stepped, cloud: Cloud, moment: str
) -> None:
    created(world)
    once(cloud, moment, Crash())
    world.update("s", {"a": stepped(value="2")})
    deliver_with_deaths(world)
    assert world.status("a") == "UPDATE_COMPLETE"
    assert cloud.calls.count("update a") == 1


@pytest.mark.parametrize("moment", ["attach", "attached", "start", "started"])
def test_a_create_survives_a_death_in_any_step(
    world: World, kind: Stepped, cloud: Cloud, moment: str
) -> None:
    once(cloud, moment, Crash())
    uuid = world.create("s", {"a": stepped(value="1")})
    deliver_with_deaths(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_a_step_is_recorded_before_it_is_carried_out(world: World, kind: Stepped, cloud: Cloud) -> None:
    created(world)
    recorded = []
    cloud.on["confirm"] = lambda _: recorded.append((world.resource("a").op, world.resource("a").step))
    world.update("s", {"a": stepped(value="2")})
    world.deliver_all()
    assert recorded == [("UPDATE", "confirm")]


def test_a_step_under_a_lost_lease_is_not_carried_out(world: World, kind: Stepped, cloud: Cloud) -> None:
    """Another worker has taken the resource over while this worker observed it."""
    created(world)

    def lose(_: Context) -> None:
        if kind.left["a-1"]:
            del cloud.on["observe"]
            world.database.check_connection(durable=True).execute("UPDATE resource SET lease = lease + 1")

    cloud.on["observe"] = lose
    world.update("s", {"a": stepped(value="2")})
    while "update a" not in cloud.calls:
        assert world.deliver(1)
    assert "confirm" not in steps(kind)


def test_a_refused_step_fails_the_operation(world: World, kind: Stepped, cloud: Cloud) -> None:
    uuid = created(world)
    once(cloud, "confirm", ProviderError("it cannot be confirmed"))
    world.update("s", {"a": stepped(value="2")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert world.resource("a").status_reason == "ProviderError: resources.a: it cannot be confirmed"


def test_an_update_after_a_failed_step_repeats_the_step_first(
    world: World, kind: Stepped, cloud: Cloud
) -> None:
    uuid = created(world)
    once(cloud, "confirm", ProviderError("it cannot be confirmed"))
    world.update("s", {"a": stepped(value="2")})
    world.deliver_all()
    world.update("s", {"a": stepped(value="3")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.values == {"a-1": "3"}
    assert cloud.calls.count("confirm a") == 3  # refused, repeated, and the second update's


def test_a_step_named_again_is_repeated_by_a_later_visit(world: World, kind: Stepped, cloud: Cloud) -> None:
    created(world)
    kept = iter([["confirm"], []])

    def keep(_: Context) -> None:
        kind.left["a-1"] = [*next(kept, [])]

    cloud.on["confirmed"] = keep
    world.update("s", {"a": stepped(value="2")})
    while "confirm a" not in cloud.calls:
        assert world.deliver(1)
    assert world.status("a") == "UPDATE_IN_PROGRESS"
    assert cloud.calls[-2:] == ["confirm a", "observe a"]
    world.deliver_all()
    assert cloud.calls.count("confirm a") == 2
    assert world.status("a") == "UPDATE_COMPLETE"
