"""Snapshots: taken at rest, limited in number, restored, and deleted."""

from __future__ import annotations

import pytest

from orchestrator.errors import ActionInProgress, LimitExceeded, NotFound, NotSupported
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.snapshots.snapshots import SnapshotNotFound
from tests.scenarios.snapshots.snapshot_requests import found, restore, take
from tests.scenarios.world import World, test_resource


def value(world: World, name: str = "a"):
    query = "SELECT attributes->>'output' AS value FROM resource WHERE NOT deposed AND name = :n"
    return [row.value for row in world.rows(query, n=name)]


def test_a_snapshot_ends_with_its_traversal(world):
    uuid = world.create("s", {"a": test_resource("v")})
    world.deliver_all()
    snapshot = take(world)
    assert (found(world, snapshot).status, world.state(uuid)) == ("IN_PROGRESS", "SNAPSHOT_IN_PROGRESS")
    world.deliver_all()
    assert (found(world, snapshot).status, world.state(uuid)) == ("COMPLETE", "SNAPSHOT_COMPLETE")
    assert found(world, snapshot).status_reason == "Stack SNAPSHOT completed successfully"


def test_an_update_cuts_a_snapshot_short(world):
    uuid = world.create("s", {"a": test_resource("v")})
    world.deliver_all()
    snapshot = take(world)
    world.update("s", {"a": test_resource("w")})
    assert found(world, snapshot).status == "FAILED"
    assert found(world, snapshot).status_reason == "Stack UPDATE began before it was complete"
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert found(world, snapshot).status == "FAILED"
    with pytest.raises(NotSupported, match="Restoring incomplete snapshot is not supported"):
        restore(world, snapshot)


def test_a_busy_stack_has_no_snapshot_taken(world):
    world.create("s", {"a": test_resource("v")})
    with pytest.raises(ActionInProgress, match=r"Stack s already has an action \(CREATE\) in progress\."):
        take(world)
    assert world.rows("SELECT 1 FROM snapshot") == []


def test_there_are_only_so_many(postgres_url):
    world = World(postgres_url, quotas={"snapshots_per_stack": 1})
    uuid = world.create("s", {"a": test_resource("v")})
    world.deliver_all()
    first = take(world)
    world.deliver_all()
    with pytest.raises(LimitExceeded, match=r"reached the maximum snapshots per stack, 1\. Please"):
        take(world)
    assert world.state(uuid) == "SNAPSHOT_COMPLETE"
    snapshots.remove(world.context, world.stack_row("s"), first)
    take(world)
    world.close()


def test_a_restore_brings_back_the_previous_state(world):
    uuid = world.create("s", {"a": test_resource("v"), "b": test_resource({"get_attr": ["a", "output"]})})
    world.deliver_all()
    snapshot = take(world)
    world.deliver_all()
    world.update("s", {"a": test_resource("w"), "c": test_resource("c")})
    world.deliver_all()
    restore(world, snapshot)
    assert world.state(uuid) == "RESTORE_IN_PROGRESS"
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "RESTORE_COMPLETE"
    assert (value(world), value(world, "b"), value(world, "c")) == (["v"], ["v"], [])
    assert [row.action for row in world.rows("SELECT action FROM revision ORDER BY number")] == [
        "CREATE",
        "UPDATE",
        "RESTORE",
    ]


def test_a_restore_that_fails_is_rolled_back(world):
    failing = {"a": test_resource("v"), "b": test_resource("b", fail=True)}
    uuid = world.create("s", failing)
    world.deliver_all()
    snapshot = take(world)
    world.deliver_all()
    assert found(world, snapshot).status in {"COMPLETE", "FAILED"}
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE snapshot SET status = 'COMPLETE'")
    world.update("s", {"a": test_resource("w")}, disable_rollback=False)
    world.deliver_all()
    restore(world, snapshot)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert (value(world), value(world, "b")) == (["w"], [])


def test_impossible_restores_and_deletes_are_refused(world):
    uuid = world.create("s", {"a": test_resource("v")})
    world.deliver_all()
    for unknown in ("5d5ba3a5-4d55-4ac1-a1ba-8f4fb5ee4a6a", "nonsense"):
        with pytest.raises(SnapshotNotFound, match=rf"^The Snapshot \({unknown}\) for Stack \(s\) could not"):
            restore(world, unknown)
        with pytest.raises(NotFound):
            snapshots.remove(world.context, world.stack_row("s"), unknown)
    snapshot = take(world)
    with pytest.raises(NotSupported, match=r"^Deleting in-progress snapshot is not supported\.$"):
        snapshots.remove(world.context, world.stack_row("s"), snapshot)
    with pytest.raises(NotSupported, match=r"^Restoring incomplete snapshot is not supported\.$"):
        restore(world, snapshot)
    world.deliver_all()
    assert world.state(uuid) == "SNAPSHOT_COMPLETE"


def test_a_removed_snapshot_is_gone_and_no_other(world):
    world.create("s", {"a": test_resource("v")})
    world.deliver_all()
    first, second = take(world), ""
    world.deliver_all()
    second = take(world)
    world.deliver_all()
    snapshots.remove(world.context, world.stack_row("s"), first)
    snapshots.remove(world.context, world.stack_row("s"), first)
    assert (found(world, first).action, found(world, first).status) == ("DELETE", "IN_PROGRESS")
    world.deliver_all()
    with pytest.raises(SnapshotNotFound):
        found(world, first)
    assert found(world, second).status == "COMPLETE"


def test_deleting_the_stack_removes_its_snapshots(world):
    uuid = world.create("s", {"a": test_resource("v")})
    world.deliver_all()
    take(world)
    world.deliver_all()
    take(world)
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM snapshot") == []
