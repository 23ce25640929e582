"""Stacks that time out during an outage continue after it, if their policy says so."""

from __future__ import annotations

from typing import Any

from orchestrator.errors import ProviderError
from orchestrator.operations.diagnosis.explain import summarize
from orchestrator.store.stacks import blockers
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

SERVER = {"a": cloud_thing(type="Cloud::Server")}


def time_out(world: World) -> None:
    world.retry(3)
    world.elapse(2 * 3600, "action")
    world.retry(1)


def resume_now(world: World) -> None:
    """Let the pause before the continuation be over."""
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE stack SET resume_at = now() WHERE resume_at IS NOT NULL")


def go_on(world: World) -> None:
    """Let a stack continue whose services were not probed for a while."""
    resume_now(world)
    world.elapse(60, "probe")
    world.messages += world.sweep.run()


def lose_answers(cloud: Cloud) -> None:
    cloud.outage |= {"create", "find", "observe", "update", "delete"}


def timed_out(world: World, cloud: Cloud, **request: Any) -> str:
    lose_answers(cloud)
    uuid = world.create("s", SERVER, **request)
    time_out(world)
    return uuid


def test_a_create_continues_after_the_outage(world: World, cloud: Cloud):
    uuid = timed_out(world, cloud, resume=True, disable_rollback=False)
    assert world.state(uuid) == "CREATE_FAILED"  # and is not rolled back
    stack = world.stack_row("s")
    summary = summarize(stack, blockers.standing(world.database, stack), 3600)
    assert "It continues when its services answer, at " in summary.text
    cloud.outage.clear()
    go_on(world)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}
    [row] = world.rows("SELECT outcome FROM revision")
    assert row.outcome == "complete"


def test_a_stack_stays_failed_while_its_service_is_probed_without_success(world: World, cloud: Cloud):
    uuid = timed_out(world, cloud, resume=True)
    for _ in range(3):
        world.retry(1)  # visits of the open create
        resume_now(world)
        world.messages += world.sweep.run()
        assert world.state(uuid) == "CREATE_FAILED"


def test_without_the_policy_a_stack_stays_failed(world: World, cloud: Cloud):
    uuid = timed_out(world, cloud)
    cloud.outage.clear()
    resume_now(world)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert world.stack_row("s").resume_at is None


def test_a_timeout_without_an_outage_does_not_continue(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Server", looks=10**6)}, resume=True)
    time_out(world)
    assert world.state(uuid) == "CREATE_FAILED"
    assert world.stack_row("s").resume_at is None


def refused_update(world: World, cloud: Cloud, **request: Any) -> str:
    """Let an update fail and its automatic rollback meet an outage until it times out."""
    uuid = world.create("s", SERVER, disable_rollback=False, **request)
    world.deliver_all()

    def refuse(_ctx: object) -> None:
        cloud.on.clear()
        lose_answers(cloud)
        raise ProviderError("not allowed")

    cloud.on["update"] = refuse
    world.update("s", {"a": cloud_thing(type="Cloud::Server", value="x")}, disable_rollback=False)
    while world.state(uuid) != "ROLLBACK_IN_PROGRESS":
        world.sweep_once()
        world.deliver(1)
    time_out(world)
    assert world.state(uuid) == "ROLLBACK_FAILED"
    return uuid


def test_an_automatic_rollback_continues_by_default(world: World, cloud: Cloud):
    uuid = refused_update(world, cloud)
    cloud.outage.clear()
    go_on(world)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"


def test_an_automatic_rollback_does_not_continue_if_the_policy_forbids_it(world: World, cloud: Cloud):
    uuid = refused_update(world, cloud, resume=False)
    cloud.outage.clear()
    resume_now(world)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_FAILED"


def test_another_request_takes_the_place_of_the_continuation(world: World, cloud: Cloud):
    uuid = timed_out(world, cloud, resume=True)
    cloud.outage.clear()
    world.update("s", {})
    world.deliver_all()
    resume_now(world)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.things == {}


def test_a_worker_that_dies_while_it_continues_a_stack_loses_nothing(world: World, cloud: Cloud):
    uuid = timed_out(world, cloud, resume=True)
    cloud.outage.clear()
    go_on(world)
    world.messages.clear()
    world.forget_leases()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
