"""The facts that verbs other than create report with their errors (docs/plugins.md "Facts and errors")."""

from __future__ import annotations

import pytest

from orchestrator.errors import InvalidTemplate, ProviderError, ProviderUnreachable
from orchestrator.operations.context import Body
from orchestrator.operations.maintenance import orphans
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from orchestrator.operations.snapshots import snapshots
from orchestrator.resources.base import Context
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.reconcile.desks import DESK, NO_ANSWER, created, desk, fails, world
from tests.scenarios.world import World

__all__ = ["world"]  # fixtures


@pytest.mark.parametrize("error", NO_ANSWER, ids=lambda error: type(error).__name__)
def test_an_update_without_an_answer_is_sent_again(world: World, cloud: Cloud, error: Exception):
    uuid = created(world, value="old")
    cloud.on["update"] = fails(error)
    world.update("s", {"a": desk(value="new")})
    world.retry(8)
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


def test_an_outage_before_an_update_changes_nothing(world: World, cloud: Cloud):
    uuid = created(world, value="old")
    cloud.outage.add("must_replace")
    world.update("s", {"a": desk(value="new")})
    world.retry(8)
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
    world.retry(8)
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
    world.retry(8)
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
    world.messages += taken.messages
    world.retry(8)
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
            """INSERT INTO orphan (stack_id, resource_id, token, type, physical_id)
            SELECT stack_id, id, 'lost', %s, unnest(ARRAY['late-2', 'late-3']) FROM resource""",
            (DESK,),
        )
    cloud.on["delete"] = fails(error)
    db = world.database.check_connection(durable=True)
    assert orphans.delete_orphans(db, OrphanAccess(world.types)) == 0
    cloud.on.clear()
    assert orphans.delete_orphans(db, OrphanAccess(world.types)) == 2
    assert [*cloud.things] == ["a-1"]


def test_a_cancel_without_an_answer_is_repeated(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": desk(looks=10_000)})
    world.retry(1)
    cloud.outage.add("cancel")
    world.update("s", {"a": desk(value="new")})
    world.retry(8)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), len(cloud.things)) == ("UPDATE_COMPLETE", 1)
