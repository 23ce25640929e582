"""Claiming, acting and settling when something breaks in between
(docs/internals/protocol.md rules 1-5, 11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import psycopg
import pytest

from orchestrator.resources.base import Context
from orchestrator.store.connections.database import UNREACHABLE
from tests.scenarios.fake_cloud import Cloud, Crash, cloud_thing
from tests.scenarios.world import World


@pytest.fixture
def clouded(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    """A world whose engine knows the cloud's types."""
    made = World(postgres_url, types=cloud.types())
    yield made
    made.close()


def crash(_ctx: Context) -> None:
    raise Crash


def once(action: Callable[[Context], None]) -> Callable[[Context], None]:
    """Return a function that runs `action` the first time only."""
    remaining = [action]

    def run(ctx: Context) -> None:
        if remaining:
            remaining.pop()(ctx)

    return run


def deliver_through(world: World) -> None:
    """Deliver everything, a dead worker's leases running out at once."""
    while True:
        try:
            world.deliver_all()
        except Crash:
            world.forget_leases()
        else:
            return


@pytest.mark.parametrize("moment", ["create", "created", "observe", "find"])
def test_a_worker_that_dies_in_a_call_makes_nothing_twice_and_leaks_nothing(
    clouded: World, cloud: Cloud, moment: str
):
    if moment == "find":
        cloud.on["create"] = once(crash)
    cloud.on[moment] = once(crash)
    uuid = clouded.create("s", {"a": cloud_thing()})
    deliver_through(clouded)
    assert clouded.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}
    clouded.delete("s")
    deliver_through(clouded)
    assert clouded.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {}


def test_a_create_of_unknown_outcome_is_not_repeated_where_the_type_cannot_look(clouded: World, cloud: Cloud):
    cloud.on["created"] = once(crash)
    uuid = clouded.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    deliver_through(clouded)
    assert clouded.state(uuid) == "CREATE_FAILED"
    assert cloud.made == {"a": 1}
    [(reason,)] = clouded.rows("SELECT status_reason FROM stack")
    assert "OutcomeUnknown" in reason


def test_a_failed_creation_is_deleted_and_repeated_up_to_the_limit(clouded: World, cloud: Cloud):
    uuid = clouded.create("s", {"a": cloud_thing(errors=2)})
    clouded.deliver_all()
    assert clouded.state(uuid) == "CREATE_COMPLETE"
    assert (cloud.made["a"], len(cloud.things)) == (3, 1)


def test_a_permanent_fault_fails_with_its_reason_after_the_limit(clouded: World, cloud: Cloud):
    uuid = clouded.create("s", {"a": cloud_thing(errors=100)})
    clouded.deliver_all()
    assert clouded.state(uuid) == "CREATE_FAILED"
    assert cloud.made["a"] == 1 + clouded.settings.action_retry_limit
    [(reason,)] = clouded.rows("SELECT status_reason FROM stack")
    assert reason.endswith("ResourceInError: resources.a: it broke")
    clouded.delete("s")
    clouded.deliver_all()
    assert cloud.things == {}


def test_a_worker_that_dies_between_delete_and_recreate_leaks_nothing(clouded: World, cloud: Cloud):
    def die_in_the_second(ctx: Context) -> None:
        if cloud.made["a"] == 2:
            cloud.on.pop("created")
            raise Crash

    cloud.on["created"] = die_in_the_second
    uuid = clouded.create("s", {"a": cloud_thing(errors=1)})
    deliver_through(clouded)
    assert clouded.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made["a"] == 2
    assert len(cloud.things) == 1


def sweep_and_deliver(world: World, times: int = 4) -> None:
    """Let the waiting nodes become due so many times."""
    for _ in range(times):
        world.sweep_once()
        while world.messages:
            world.deliver()


def time_out(world: World) -> None:
    """Let the time of the stacks in progress be over, while their providers give no answer."""
    sweep_and_deliver(world)
    world.elapse(2 * 3600, "action")
    sweep_and_deliver(world, 1)


def test_a_provider_that_is_busy_is_tried_again_until_the_timeout_of_the_stack(clouded: World, cloud: Cloud):
    cloud.busy = True
    uuid = clouded.create("s", {"a": cloud_thing()})
    sweep_and_deliver(clouded)
    assert clouded.state(uuid) == "CREATE_IN_PROGRESS"
    assert cloud.calls.count("find a") > 1  # before each further create
    time_out(clouded)
    assert clouded.state(uuid) == "CREATE_FAILED"
    outage = "s CREATE_IN_PROGRESS"  # a single event, whatever the number of attempts
    assert sorted(clouded.events(uuid)) == sorted(
        ["s CREATE_IN_PROGRESS", "a CREATE_IN_PROGRESS", outage, "s CREATE_FAILED", "a CREATE_FAILED"]
    )


def test_an_unreachable_stack_is_not_absent(clouded: World, cloud: Cloud):
    uuid = clouded.create("s", {"a": cloud_thing()})
    clouded.deliver_all()
    cloud.busy = True
    clouded.delete("s")
    time_out(clouded)
    assert clouded.state(uuid) == "DELETE_FAILED"
    assert clouded.rows("SELECT action, status, op FROM resource") == [("DELETE", "FAILED", "DELETE")]
    assert clouded.events(uuid).count("a DELETE_IN_PROGRESS") == 1
    cloud.busy = False
    clouded.delete("s")
    clouded.deliver_all()
    assert clouded.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {}


def test_a_delete_after_an_interrupted_create_looks_for_the_thing_first(clouded: World, cloud: Cloud):
    cloud.on["created"] = once(crash)
    uuid = clouded.create("s", {"a": cloud_thing()})
    with pytest.raises(Crash):
        clouded.deliver_all()
    clouded.forget_leases()
    clouded.delete("s")
    deliver_through(clouded)
    assert clouded.state(uuid) == "DELETE_COMPLETE"
    assert (cloud.made["a"], cloud.things) == (1, {})


def test_a_resource_deleted_by_an_older_traversal_blocks_no_node(clouded: World, cloud: Cloud):
    uuid = clouded.create("s", {"a": cloud_thing()})
    clouded.deliver_all()
    clouded.delete("s")

    def delete_again(_ctx: Context) -> None:
        clouded.delete("s")
        clouded.deliver(1)  # planned while the older visit is under way

    cloud.on["delete"] = once(delete_again)
    clouded.deliver_all(limit=500)
    assert clouded.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {}


def test_a_failure_of_a_visit_whose_node_was_thought_lost_is_a_failure(clouded: World, cloud: Cloud):
    def lost(_ctx: Context) -> None:
        clouded.forget_leases()
        clouded.messages += clouded.sweep.run()  # the node is queued again, and no worker has visited it yet

    cloud.on["observe"] = once(lost)
    uuid = clouded.create("s", {"a": cloud_thing(errors=100, final=True)})
    clouded.deliver_all()
    assert clouded.state(uuid) == "CREATE_FAILED"


def test_a_visit_with_an_expired_lease_still_writes_if_no_worker_took_over(clouded: World, cloud: Cloud):
    def lost(_ctx: Context) -> None:
        clouded.forget_leases()
        clouded.messages += clouded.sweep.run()

    cloud.on["observe"] = once(lost)
    uuid = clouded.create("s", {"a": cloud_thing()})
    clouded.deliver_all()
    assert clouded.state(uuid) == "CREATE_COMPLETE"
    assert cloud.calls == ["create a", "observe a"]


@pytest.mark.parametrize("error", [psycopg.errors.LockNotAvailable, psycopg.errors.ReadOnlySqlTransaction])
def test_a_database_that_fails_while_an_operation_is_opened_fails_no_resource(
    clouded: World, cloud: Cloud, error: type[psycopg.Error]
):
    def fail() -> None:
        raise error("not now")

    uuid = clouded.create("s", {"a": cloud_thing()})
    clouded.before("begin", fail)
    with suppress(*UNREACHABLE):  # a real broker would deliver again
        clouded.deliver_all()
    clouded.forget_leases()
    clouded.deliver_all()
    assert clouded.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}
