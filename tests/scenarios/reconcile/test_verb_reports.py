"""The fact that each verb reports with its errors, as docs/plugins.md has it ("Facts and errors")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import pytest
from psycopg import OperationalError

from orchestrator.errors import (
    InvalidTemplate,
    ProviderBusy,
    ProviderError,
    ProviderQuotaExceeded,
    ProviderSilent,
    ProviderUnreachable,
)
from orchestrator.operations.context import Body
from orchestrator.operations.maintenance import orphans
from orchestrator.operations.reconcile.check import check_nodes
from orchestrator.operations.runtime.lease_keeper import new_lease
from orchestrator.operations.snapshots import snapshots
from orchestrator.resources.base import Context, Fault, Property, Value
from tests.scenarios.fake_cloud import Cloud, Crash, Machine, cloud_thing
from tests.scenarios.world import World

DESK = "Cloud::Desk"


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
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types={**cloud.types(), DESK: Desk(cloud)})
    yield world
    world.close()


def desk(**properties: object) -> dict[str, object]:
    return cloud_thing(type=DESK, **properties)


def attempt(world: World, times: int = 8) -> None:
    """Let the waiting nodes become due so many times."""
    for _ in range(times):
        while world.messages:
            world.deliver()
        world.sweep_once()
    while world.messages:
        world.deliver()


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


NO_ANSWER = [
    ProviderBusy("503"),
    ProviderUnreachable("no route"),
    ProviderQuotaExceeded("no quota"),
    ProviderSilent("no answer"),
    ConnectionResetError("by peer"),
    TimeoutError("20 s"),
]


@pytest.mark.parametrize("error", NO_ANSWER, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("moment", ["create", "created"])
def test_a_create_without_an_answer_creates_a_single_object(
    world: World, cloud: Cloud, error: Exception, moment: str
):
    cloud.on[moment] = fails(error)  # before or after the object was created
    uuid = world.create("s", {"a": desk()})
    attempt(world, 0)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    cloud.on.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})


@pytest.mark.parametrize("error", NO_ANSWER[:3], ids=lambda error: type(error).__name__)
def test_a_create_that_was_not_carried_out_is_repeated_by_a_type_without_find(
    world: World, cloud: Cloud, error: Exception
):
    cloud.on["create"] = fails(error)
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    attempt(world)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    cloud.on.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})


@pytest.mark.parametrize("error", NO_ANSWER[3:], ids=lambda error: type(error).__name__)
def test_a_create_without_an_answer_is_not_repeated_by_a_type_without_find(
    world: World, cloud: Cloud, error: Exception
):
    cloud.on["create"] = fails(error)
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    world.deliver_all()
    assert (world.state(uuid), cloud.calls.count("create a")) == ("CREATE_FAILED", 1)
    assert "OutcomeUnknown" in world.stack_row("s").status_reason


def test_a_refused_create_of_a_type_without_find_leaves_nothing_to_delete(world: World, cloud: Cloud):
    cloud.on["create"] = fails(ProviderError("no", "Forbidden"))
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    world.deliver_all()
    assert "Forbidden: resources.a: no" in world.stack_row("s").status_reason
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_a_worker_that_dies_after_a_refusal_leaves_the_outcome_unknown(world: World, cloud: Cloud):
    cloud.outage.add("create")
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    attempt(world, 2)
    cloud.outage.clear()
    cloud.on["created"] = fails(Crash())
    world.sweep_once()
    with pytest.raises(Crash):
        world.deliver()
    cloud.on.clear()
    world.forget_leases()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_FAILED", {"a": 1})


def test_a_create_that_the_database_interrupts_is_not_repeated_by_a_type_without_find(
    world: World, cloud: Cloud
):
    cloud.on["created"] = fails(OperationalError("the connection was closed"))
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    while not cloud.made:
        message = world.messages.pop(0)
        node, lease = [message.node_id], new_lease()
        try:
            world.messages += check_nodes(world.engine, node, message.traversal, durable=True, lease=lease)
        except OperationalError:
            cloud.on.clear()
            world.messages += check_nodes(
                world.engine, node, message.traversal, durable=True, lease=lease, again=True
            )
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_FAILED", {"a": 1})
    assert "OutcomeUnknown" in world.stack_row("s").status_reason


@pytest.mark.parametrize("error", [ProviderError("no", "Forbidden"), KeyError("status")])
def test_a_refusal_and_a_fault_of_the_type_fail_the_resource(world: World, cloud: Cloud, error: Exception):
    cloud.on["created"] = fails(error)
    uuid = world.create("s", {"a": desk()})
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_FAILED", {"a": 1})
    kind = "Forbidden" if isinstance(error, ProviderError) else "KeyError"
    assert f"{kind}: resources.a: " in world.stack_row("s").status_reason
    cloud.on.clear()
    world.patch("s")  # a replacement; the object of the failed create is found by its token and deleted
    world.deliver_all()
    assert (world.state(uuid), list(cloud.things)) == ("UPDATE_COMPLETE", ["a-2"])


def test_an_object_that_find_does_not_return_is_created_again(world: World, cloud: Cloud):
    cloud.on["created"] = fails(ProviderSilent("no answer"))
    uuid = world.create("s", {"a": desk()})
    attempt(world, 0)
    cloud.on.clear()
    cloud.things.clear()  # as if `find` reported an object of an unreachable provider as absent
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 2})


@pytest.mark.parametrize("verb", ["find", "observe"])
def test_an_outage_of_a_reading_verb_during_a_create_only_delays_it(world: World, cloud: Cloud, verb: str):
    cloud.on["created"] = fails(TimeoutError("20 s"))
    uuid = world.create("s", {"a": desk()})
    attempt(world, 0)
    cloud.on.clear()
    cloud.outage.add(verb)
    attempt(world)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})


@pytest.mark.parametrize("error", NO_ANSWER, ids=lambda error: type(error).__name__)
def test_an_update_without_an_answer_is_sent_again(world: World, cloud: Cloud, error: Exception):
    uuid = created(world, value="old")
    cloud.on["update"] = fails(error)
    world.update("s", {"a": desk(value="new")})
    attempt(world)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    cloud.on.clear()
    world.deliver_all()
    assert (world.state(uuid), [*cloud.values.values()]) == ("UPDATE_COMPLETE", ["new"])


def test_an_object_that_disappears_during_its_update_is_replaced_by_the_next(world: World, cloud: Cloud):
    uuid = created(world, value="old")
    cloud.on["update"] = lambda _ctx: cloud.things.clear()
    world.update("s", {"a": desk(value="new")})
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_FAILED", {"a": 1})
    cloud.on.clear()
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 2})


def test_an_object_that_disappears_during_its_create_is_created_again(world: World, cloud: Cloud):
    cloud.on["observe"] = lambda _ctx: cloud.things.clear() if cloud.made["a"] == 1 else None
    uuid = world.create("s", {"a": desk()})
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 2})


def test_an_outage_before_an_update_changes_nothing(world: World, cloud: Cloud):
    uuid = created(world, value="old")
    cloud.outage.add("must_replace")
    world.update("s", {"a": desk(value="new")})
    attempt(world)
    row = world.resource("a")
    assert (row.action, row.status, "update a" in cloud.calls) == ("CREATE", "COMPLETE", False)
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})


def test_a_failed_resource_whose_health_is_unknown_waits(world: World, cloud: Cloud):
    uuid = created(world, value="old")
    cloud.on["update"] = fails(ProviderError("no"))
    world.update("s", {"a": desk(value="new")})
    world.deliver_all()
    cloud.on.clear()
    cloud.outage.add("is_healthy_after_failure")
    world.patch("s")
    attempt(world)
    assert (world.state(uuid), cloud.made) == ("UPDATE_IN_PROGRESS", {"a": 1})
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})


@pytest.mark.parametrize("error", [ProviderError("no"), KeyError("x")])
def test_a_delete_that_is_refused_fails_and_is_sent_again_by_the_next(
    world: World, cloud: Cloud, error: Exception
):
    uuid = created(world)
    cloud.on["delete"] = fails(error)
    world.delete("s")
    world.deliver_all()
    assert (world.state(uuid), len(cloud.things)) == ("DELETE_FAILED", 1)
    cloud.on.clear()
    world.delete("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


@pytest.mark.parametrize("error", NO_ANSWER, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("action", ["suspend", "resume"])
def test_an_action_without_an_answer_is_requested_again(
    world: World, cloud: Cloud, action: str, error: Exception
):
    uuid = created(world)
    if action == "resume":
        world.act("s", "suspend")
        world.deliver_all()
    cloud.on[action] = fails(error)
    world.act("s", action)
    attempt(world)
    assert world.state(uuid) == f"{action.upper()}_IN_PROGRESS"
    cloud.on.clear()
    world.deliver_all()
    assert (world.state(uuid), bool(cloud.paused)) == (f"{action.upper()}_COMPLETE", action == "suspend")


@pytest.mark.parametrize("verb", ["check", "observe"])
@pytest.mark.parametrize("error", [*NO_ANSWER[:1], ProviderError("no"), KeyError("x")])
def test_a_check_concludes_nothing_from_an_error(world: World, cloud: Cloud, verb: str, error: Exception):
    uuid = created(world)
    cloud.on[verb] = fails(error)
    world.act("s", "check")
    world.deliver_all()
    row = world.resource("a")
    assert (world.state(uuid), row.status) == ("CHECK_FAILED", "COMPLETE")
    assert "a: could not be observed: " in world.stack_row("s").status_reason
    cloud.on.clear()
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})


def test_a_copy_is_made_and_deleted_once_the_provider_answers(world: World, cloud: Cloud):
    uuid = created(world)
    cloud.outage.add("snapshot")
    taken = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += taken.rings
    attempt(world)
    assert world.state(uuid) == "SNAPSHOT_IN_PROGRESS"
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), len(cloud.copies)) == ("SNAPSHOT_COMPLETE", 1)
    cloud.on["delete_snapshot"] = fails(ConnectionResetError("by peer"))
    snapshots.remove(world.context, world.stack_row("s"), str(taken.snapshot.uuid))
    world.sweep_once()
    assert len(cloud.copies) == 1
    cloud.on.clear()
    world.sweep_once()
    assert cloud.copies == {}


@pytest.mark.parametrize("error", NO_ANSWER[1:], ids=lambda error: type(error).__name__)
def test_a_signal_without_an_answer_is_tried_again(world: World, cloud: Cloud, error: Exception):
    world.create("s", {"b": cloud_thing(type="Cloud::Bell", rings=0)})
    world.deliver_all()
    cloud.on["signal"] = fails(error)
    world.signal("s", "b", {"n": 1})
    world.deliver(1)
    assert [row.tries for row in world.rows("SELECT tries FROM signal")] == [1]
    cloud.on.clear()
    world.deliver_all()
    assert world.resource("b").data["said"] == [{"n": 1}]


def test_a_signal_is_kept_when_the_observation_after_it_gets_no_answer(world: World, cloud: Cloud):
    world.create("s", {"b": cloud_thing(type="Cloud::Bell", rings=0)})
    world.deliver_all()
    cloud.on["observe"] = fails(ConnectionResetError("by peer"))
    world.signal("s", "b", {"n": 1})
    world.deliver_all()
    assert world.resource("b").data["said"] == [{"n": 1}]
    assert world.rows("SELECT id FROM signal") == []


def test_a_stack_is_accepted_when_its_provider_cannot_be_asked(world: World, cloud: Cloud):
    cloud.on["inquire"] = fails(ProviderUnreachable("no route"))
    uuid = world.create("s", {"a": desk()})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_refusal_of_the_provider_is_a_fault_of_the_request(world: World, cloud: Cloud):
    cloud.on["inquire"] = fails(ProviderError("the flavor is private"))
    with pytest.raises(InvalidTemplate, match="the flavor is private"):
        world.create("s", {"a": desk()})


@pytest.mark.parametrize("error", [ConnectionResetError("by peer"), KeyError("x")])
def test_an_orphan_that_cannot_be_deleted_now_is_deleted_later(world: World, cloud: Cloud, error: Exception):
    created(world)
    ctx = Context("late", "late", "token", "CREATE")
    for thing in ("lost", "late"):
        cloud.things[cloud.make(ctx)] = thing
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql(
            """INSERT INTO stray (stack_id, resource_id, token, type, physical_id)
            SELECT stack_id, id, 'lost', %s, unnest(ARRAY['late-2', 'late-3']) FROM resource""",
            (DESK,),
        )
    cloud.on["delete"] = fails(error)
    db = world.database.check_connection(durable=True)
    assert orphans.delete_orphans(db, world.types) == 0
    cloud.on.clear()
    assert orphans.delete_orphans(db, world.types) == 2
    assert [*cloud.things] == ["a-1"]


def test_a_cancel_without_an_answer_is_repeated(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": desk(looks=10_000)})
    attempt(world, 1)
    cloud.outage.add("cancel")
    world.update("s", {"a": desk(value="new")})
    attempt(world)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), len(cloud.things)) == ("UPDATE_COMPLETE", 1)
