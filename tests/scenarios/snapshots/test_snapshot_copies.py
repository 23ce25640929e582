"""Copies of snapshots in a cloud: interrupted at any moment, restored, and deleted."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from orchestrator.errors import NotSupported, ProviderBusy, ProviderError
from orchestrator.operations.adoption import adopt_abandon, export
from orchestrator.operations.diagnosis.explain import explain
from orchestrator.operations.maintenance import purge
from orchestrator.operations.snapshots import snapshots
from orchestrator.resources.base import Context
from orchestrator.store.stacks import blockers
from tests.scenarios.fake_cloud import Crash, cloud_thing
from tests.scenarios.snapshots.snapshot_requests import found, restore, take
from tests.scenarios.world import World, test_resource


@pytest.fixture
def outside(postgres_url, cloud):
    """A world with a cloud outside."""
    made = World(postgres_url, types=cloud.types(), enable_stack_abandon=True)
    yield made
    made.close()


def machines(**options):
    a = cloud_thing(type="Cloud::Machine", value="1")
    return {"a": a, "b": cloud_thing(("a",), type="Cloud::Machine", value="2"), **options}


def ready(world, resources=None, **request):
    uuid = world.create("s", resources or machines(), **request)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def taken(world):
    snapshot = take(world)
    world.deliver_all()
    assert found(world, snapshot).status == "COMPLETE"
    return snapshot


def removing(world, snapshot):
    snapshots.remove(world.context, world.stack_row("s"), snapshot)


def data(world, snapshot):
    stack, row = world.stack_row("s"), found(world, snapshot)
    return orjson.loads(b"".join(export.export_snapshot(world.database, world.cipher, stack, row)))


def test_a_snapshot_has_the_state_of_the_stack_and_its_kept_data(outside, cloud):
    ready(outside, machines(pw={"type": "OS::Heat::RandomString"}, c=cloud_thing(value="3")))
    secret = outside.cipher.open(outside.rows("SELECT sealed FROM resource WHERE name = 'pw'")[0].sealed)[
        "data"
    ]["value"]
    snapshot = taken(outside)
    outside.update("s", {"a": cloud_thing(type="Cloud::Machine", value="new")})
    outside.deliver_all()
    shown = data(outside, snapshot)
    assert sorted(shown["resources"]) == sorted(shown["template"]["resources"]) == ["a", "b", "c", "pw"]
    assert set(cloud.copies) == {shown["resources"][name]["resource_data"]["copy"] for name in ("a", "b")}
    assert shown["resources"]["c"]["resource_data"] == {}
    assert shown["resources"]["pw"]["resource_data"] == {"value": "******"}
    assert secret not in str(shown)
    assert "sealed" not in shown
    assert (shown["action"], shown["status"]) == ("SNAPSHOT", "COMPLETE")


def test_a_restored_resource_is_created_from_its_copy_and_stays_unchanged(outside, cloud):
    uuid = ready(outside)
    snapshot = taken(outside)
    copy = data(outside, snapshot)["resources"]["a"]["resource_data"]["copy"]
    outside.update("s", {"b": cloud_thing(type="Cloud::Machine", value="2")})
    outside.deliver_all()
    restore(outside, snapshot)
    outside.deliver_all()
    assert outside.state(uuid) == "RESTORE_COMPLETE"
    query = "SELECT properties->>'source' AS source FROM resource WHERE name = 'a' AND NOT deposed"
    assert [row.source for row in outside.rows(query)] == [copy]
    calls = [call for call in cloud.calls if not call.startswith("observe")]
    outside.patch("s")
    outside.deliver_all()
    assert outside.state(uuid) == "UPDATE_COMPLETE"
    assert [call for call in cloud.calls if not call.startswith("observe")] == calls
    assert len(cloud.things) == 2


@pytest.mark.parametrize("verb", ["snapshot", "copied", "observe"])
def test_a_worker_that_dies_during_a_snapshot_leaves_a_single_copy_of_each(outside, cloud, verb):
    uuid = ready(outside)
    deaths = iter([True, False, True])

    def die(ctx: Context) -> None:
        if next(deaths, False):
            raise Crash

    cloud.on[verb] = die
    snapshot = take(outside)
    for _ in range(4):
        try:
            outside.deliver_all()
        except Crash:
            outside.engine = outside.new_engine()
            outside.forget_leases()
    assert (outside.state(uuid), found(outside, snapshot).status) == ("SNAPSHOT_COMPLETE", "COMPLETE")
    assert sorted(cloud.copies.values()) == sorted(cloud.things)


@pytest.mark.parametrize("verb", ["snapshot", "copied"])
def test_no_copy_is_left_of_a_snapshot_that_was_cut_short_in_the_middle(outside, cloud, verb):
    uuid = ready(outside)

    def die(ctx: Context) -> None:
        raise Crash

    cloud.on[verb] = die
    snapshot = take(outside)
    with pytest.raises(Crash):
        outside.deliver_all()
    del cloud.on[verb]
    outside.engine = outside.new_engine()
    outside.update("s", machines(c=test_resource("3")))
    removing(outside, snapshot)
    outside.sweep_once()
    assert outside.rows("SELECT 1 FROM snapshot")  # until the end of that copy is known
    outside.forget_leases()
    outside.deliver_all()
    assert outside.state(uuid) == "UPDATE_COMPLETE"
    outside.sweep_once()
    outside.sweep_once()
    assert outside.rows("SELECT 1 FROM snapshot") == []
    assert cloud.copies == {}


def test_the_copies_of_a_failed_snapshot_can_be_removed(outside, cloud):
    uuid = ready(outside)

    def refuse(ctx: Context) -> None:
        if ctx.name == "b":
            raise ProviderError("no room", kind="Full")

    cloud.on["snapshot"] = refuse
    snapshot = take(outside)
    outside.deliver_all()
    assert outside.state(uuid) == "SNAPSHOT_FAILED"
    assert found(outside, snapshot).status_reason == "Resource SNAPSHOT failed: Full: resources.b: no room"
    assert found(outside, snapshot).status == "FAILED"
    assert len(cloud.copies) == 1
    removing(outside, snapshot)
    outside.deliver_all()
    assert (cloud.copies, outside.rows("SELECT 1 FROM snapshot")) == ({}, [])


def test_a_removal_survives_the_death_of_the_worker(outside, cloud):
    ready(outside)
    snapshot = taken(outside)
    deaths = iter([True, False, True])

    def die(ctx: Context) -> None:
        if next(deaths, False):
            raise Crash

    cloud.on["delete_snapshot"] = die
    removing(outside, snapshot)
    for _ in range(2):
        with pytest.raises(Crash):
            outside.sweep_once()
    outside.sweep_once()
    assert (cloud.copies, outside.rows("SELECT 1 FROM snapshot")) == ({}, [])
    assert outside.rows("SELECT 1 FROM resource_snapshot") == []


def test_a_removal_that_is_refused_says_why_and_is_tried_again(outside, cloud):
    ready(outside)
    snapshot = taken(outside)
    removing(outside, snapshot)
    cloud.busy = True
    outside.sweep_once()
    assert found(outside, snapshot).status_reason == "a: ProviderError: nobody answers"
    later = "SELECT due_at > now() + interval '1.5 seconds' AS later, tries FROM snapshot"
    assert [tuple(row) for row in outside.rows(later)] == [(True, 1)]
    outside.sweep.run()
    assert outside.rows("SELECT tries FROM snapshot")[0].tries == 1
    cloud.busy = False
    outside.sweep_once()
    assert (cloud.copies, outside.rows("SELECT 1 FROM snapshot")) == ({}, [])


def test_a_stack_is_not_gone_before_the_copies_of_its_snapshots_are(outside, cloud):
    uuid = ready(outside)
    taken(outside)
    taken(outside)
    assert len(cloud.copies) == 4

    def refuse(ctx: Context) -> None:
        raise ProviderBusy("not now")

    cloud.on["delete_snapshot"] = refuse
    outside.delete("s")
    for _ in range(20):
        outside.deliver() or outside.sweep_once()
    assert (outside.state(uuid), cloud.things) == ("DELETE_IN_PROGRESS", {})
    stack = outside.stack_row("s")
    [node] = blockers.unfinished(outside.database, stack, None, 10).nodes
    assert explain(node, stack, 5).text.endswith("is being removed: a: ProviderError: not now")
    del cloud.on["delete_snapshot"]
    outside.deliver_all()
    assert outside.state(uuid) == "DELETE_COMPLETE"
    assert (cloud.copies, outside.rows("SELECT 1 FROM snapshot")) == ({}, [])


def test_a_deleted_stack_is_not_forgotten_before_its_copies_are_gone(outside, cloud):
    uuid = ready(outside)
    taken(outside)
    outside.delete("s")
    with outside.database.engine.begin() as connection:  # as if its snapshot had been overlooked
        connection.exec_driver_sql(
            "UPDATE stack SET action = 'DELETE', status = 'COMPLETE', deleted_at = now() - interval '1 year'"
        )
    policy = replace(purge.Policy.of(outside.settings), deleted_seconds=0)
    with outside.database.connect() as db:
        assert "deleted stacks" not in purge.purge(db, policy)
        outside.sweep_once()
        assert cloud.copies == {}
        assert purge.purge(db, policy)["deleted stacks"] == 1
    assert outside.rows("SELECT 1 FROM stack WHERE uuid = :u", u=uuid) == []


def test_the_copies_of_an_abandoned_stack_are_left_alone(outside, cloud):
    uuid = ready(outside)
    snapshot = taken(outside)
    copies = dict(cloud.copies)
    abandoned = adopt_abandon.abandon(outside.context, outside.stack_row("s"))
    abandoned.document.close()
    outside.messages += abandoned.messages
    outside.delete("s")  # abandoned objects stay
    outside.deliver_all()
    assert outside.state(uuid) == "DELETE_COMPLETE"
    assert (cloud.copies, len(cloud.things)) == (copies, 2)
    assert outside.rows("SELECT 1 FROM snapshot WHERE uuid = :u", u=snapshot)


def test_removing_again_while_it_is_removed_changes_nothing(outside, cloud):
    ready(outside)
    snapshot = taken(outside)
    removing(outside, snapshot)
    cloud.busy = True
    outside.sweep_once()
    removing(outside, snapshot)
    assert outside.rows("SELECT tries FROM snapshot")[0].tries == 1
    with pytest.raises(NotSupported, match="Restoring incomplete snapshot"):
        restore(outside, snapshot)


def test_a_newer_traversal_waits_for_the_copy_that_was_asked_for(outside, cloud):
    uuid = ready(outside)
    looked_for: list[str] = []

    def busy(ctx: Context) -> None:
        if ctx.action == "SNAPSHOT":
            looked_for.append(ctx.token)
            if len(looked_for) < 3:
                raise ProviderBusy("still copying")

    cloud.on["observe"] = busy
    take(outside)
    while not looked_for:
        outside.deliver(1)
    outside.update("s", machines(c=test_resource("3")))
    outside.deliver_all()
    assert outside.state(uuid) == "UPDATE_COMPLETE"
    assert len(looked_for) >= 3
    assert set(looked_for) <= set(cloud.copies)
