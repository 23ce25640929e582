"""Suspend, resume and snapshot during another operation: refused, or queued until it has ended
(docs/internals/engine-semantics.md §10).
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.errors import ActionInProgress
from orchestrator.operations.context import Body
from orchestrator.operations.queued_actions import ActionQueued
from orchestrator.operations.snapshots import snapshots
from tests.scenarios.fake_cloud import Crash, cloud_thing
from tests.scenarios.trees import CHILD, nested
from tests.scenarios.trees import text as template
from tests.scenarios.world import World, test_resource


def machines(value: str = "1") -> dict[str, Any]:
    return {
        "a": cloud_thing(type="Cloud::Machine", value=value),
        "b": cloud_thing(("a",), type="Cloud::Machine", value=value),
    }


def updating(world: World, *, messages: int = 2, **request: Any) -> str:
    """Return a stack whose update is in progress."""
    uuid = world.create("s", machines(), **request)
    world.deliver_all()
    world.update("s", machines("2"), **request)
    world.deliver(messages)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    return uuid


def take(world: World, *, wait: bool = False, name: str | None = None) -> Any:
    body = Body(orjson.dumps({} if name is None else {"name": name}))
    taken = snapshots.take(world.context, world.stack_row("s"), body, wait=wait)
    world.messages += taken.messages
    return taken.snapshot


def queued(world: World) -> str | None:
    return world.rows("SELECT queued_action FROM stack WHERE name = 's'")[0].queued_action


def outcomes(world: World) -> list[str | None]:
    return [row.outcome for row in world.rows("SELECT outcome FROM revision ORDER BY number")]


def interrupt(*_: Any) -> None:
    raise Crash


def own_events(world: World, uuid: str) -> list[str]:
    """Return the events of the stack's state, which clients follow."""
    query = """SELECT e.action, e.status FROM event e JOIN stack s ON s.id = e.stack_id
        WHERE s.uuid = :u AND e.physical_id = CAST(s.uuid AS text) ORDER BY e.id"""
    return [f"{row.action}_{row.status}" for row in world.rows(query, u=uuid)]


@pytest.mark.parametrize("request_", ["suspend", "resume", "snapshot"])
@pytest.mark.parametrize("rolled_back", [False, True])
def test_an_action_during_another_operation_is_refused_and_names_it(world, request_, rolled_back):
    uuid = updating(world)
    action = "UPDATE"
    if rolled_back:
        world.act("s", "cancel_update")
        action = "ROLLBACK"
    before = world.stack_row("s").traversal
    with pytest.raises(
        ActionInProgress, match=rf"^Stack s already has an action \({action}\) in progress\.$"
    ):
        take(world) if request_ == "snapshot" else world.act("s", request_)
    assert (world.stack_row("s").traversal, queued(world)) == (before, None)
    world.deliver_all()
    assert world.state(uuid) == f"{action}_COMPLETE"


@pytest.mark.parametrize("action", ["suspend", "resume"])
def test_a_repeated_action_joins_the_action_in_progress(world, action):
    uuid = world.create("s", machines())
    world.deliver_all()
    if action == "resume":
        world.act("s", "suspend")
        world.deliver_all()
    world.act("s", action)
    world.deliver(2)
    before = world.stack_row("s").traversal
    world.act("s", action)
    assert (world.stack_row("s").traversal, queued(world)) == (before, None)
    world.deliver_all()
    assert world.state(uuid) == f"{action.upper()}_COMPLETE"


@pytest.mark.parametrize("swept", [False, True])
def test_a_queued_suspend_starts_when_the_update_is_complete(world, cloud, swept):
    uuid = updating(world)
    world.act("s", "suspend", wait=True)
    world.act("s", "suspend", wait=True)  # idempotent
    assert (world.state(uuid), queued(world)) == ("UPDATE_IN_PROGRESS", "SUSPEND")
    if swept:  # the worker dies between the two transactions
        world.before("start_queued", interrupt)
        with pytest.raises(Crash):
            world.deliver_all()
        assert (world.state(uuid), queued(world)) == ("UPDATE_COMPLETE", "SUSPEND")
    world.deliver_all()
    assert (world.state(uuid), queued(world)) == ("SUSPEND_COMPLETE", None)
    assert cloud.paused == set(cloud.things)
    assert outcomes(world) == ["complete", "complete"]
    assert own_events(world, uuid)[-4:] == [
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
        "SUSPEND_IN_PROGRESS",
        "SUSPEND_COMPLETE",
    ]
    [reason] = [text for text in world.event_reasons(uuid, "s") if "queued" in text]
    assert reason == (
        "SUSPEND_IN_PROGRESS SUSPEND is queued: it starts when the UPDATE in progress is complete"
    )


def test_a_queued_action_of_another_kind_is_refused(world):
    uuid = updating(world)
    world.act("s", "suspend", wait=True)
    for refused in (lambda: world.act("s", "resume", wait=True), lambda: take(world, wait=True)):
        with pytest.raises(ActionQueued, match=r"^Stack s already has a queued action \(SUSPEND\)\.$"):
            refused()
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_COMPLETE"


def test_a_queued_action_is_dropped_when_the_operation_before_it_fails(world, cloud):
    uuid = updating(world, disable_rollback=True)

    def refuse(ctx):
        raise RuntimeError("no")

    cloud.on["update"] = refuse
    world.act("s", "suspend", wait=True)
    world.deliver_all()
    assert (world.state(uuid), queued(world), cloud.paused) == ("UPDATE_FAILED", None, set())
    assert world.event_reasons(uuid, "s")[-1] == (
        "SUSPEND_FAILED The queued SUSPEND was dropped: UPDATE before it ended with FAILED"
    )
    assert own_events(world, uuid)[-1] == "UPDATE_FAILED"


def test_a_queued_action_is_dropped_when_the_operation_is_cancelled_without_rollback(world):
    uuid = updating(world)
    world.act("s", "suspend", wait=True)
    world.act("s", "cancel_without_rollback")
    assert (world.state(uuid), queued(world)) == ("UPDATE_FAILED", None)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"


def test_a_queued_action_follows_the_rollback_of_a_failed_update(world, cloud):
    uuid = updating(world, disable_rollback=False)

    def refuse(ctx):
        if ctx.properties.get("value") == "2":
            raise RuntimeError("no")

    cloud.on["update"] = refuse
    world.act("s", "suspend", wait=True)
    world.deliver_all()
    assert (world.state(uuid), queued(world)) == ("SUSPEND_COMPLETE", None)
    assert own_events(world, uuid)[-5:] == [
        "UPDATE_FAILED",
        "ROLLBACK_IN_PROGRESS",
        "ROLLBACK_COMPLETE",
        "SUSPEND_IN_PROGRESS",
        "SUSPEND_COMPLETE",
    ]


def test_a_newer_update_postpones_a_queued_action(world, cloud):
    uuid = updating(world)
    world.act("s", "suspend", wait=True)
    world.update("s", machines("3"))
    assert queued(world) == "SUSPEND"
    world.deliver_all()
    assert (world.state(uuid), outcomes(world)) == (
        "SUSPEND_COMPLETE",
        ["complete", "superseded", "complete"],
    )
    assert cloud.paused == set(cloud.things)


def test_a_delete_drops_a_queued_action(world, cloud):
    uuid = updating(world)
    taken = take(world, wait=True)
    world.delete("s")
    assert queued(world) is None
    with pytest.raises(ActionInProgress, match=r"\(DELETE\)"):
        world.act("s", "suspend", wait=True)
    assert (
        "SNAPSHOT_FAILED The queued SNAPSHOT was dropped: the stack is being deleted"
        in world.event_reasons(uuid, "s")
    )
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})
    assert world.rows("SELECT 1 FROM snapshot WHERE uuid = :u", u=taken.uuid) == []


def test_a_queued_snapshot_has_an_id_at_once_and_the_newest_revision_in_the_end(world):
    uuid = updating(world)
    taken = take(world, wait=True, name="night")
    assert (taken.status, taken.name) == ("IN_PROGRESS", "night")
    assert take(world, wait=True).uuid == taken.uuid
    world.update("s", machines("3"))
    world.deliver_all()
    assert world.state(uuid) == "SNAPSHOT_COMPLETE"
    [row] = world.rows("SELECT x.*, v.number FROM snapshot x JOIN revision v ON v.id = x.revision_id")
    assert (row.uuid, row.name, row.status, row.number) == (taken.uuid, "night", "COMPLETE", 3)


def test_a_queued_snapshot_that_is_dropped_has_failed(world):
    updating(world)
    taken = take(world, wait=True)
    world.act("s", "cancel_without_rollback")
    world.deliver_all()
    row = snapshots.find(world.context, world.stack_row("s"), str(taken.uuid))
    assert row.status == "FAILED"
    assert row.status_reason == "The queued SNAPSHOT was dropped: UPDATE before it ended with FAILED"


def test_an_action_at_rest_is_not_queued(world):
    uuid = world.create("s", machines())
    world.deliver_all()
    world.act("s", "suspend", wait=True)
    assert world.state(uuid) == "SUSPEND_IN_PROGRESS"
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_COMPLETE"


def test_a_child_stack_is_suspended_when_its_own_operation_has_ended(world):
    files = {CHILD: template({"x": test_resource(wait_secs=60)})}
    uuid = world.create("s", {"t": nested(), "u": test_resource(requires=["t"])}, files=files)
    world.deliver(4)
    [child] = world.rows("SELECT * FROM stack WHERE owner_id IS NOT NULL")
    assert child.status == "IN_PROGRESS"
    with pytest.raises(ActionInProgress, match=r"\(CREATE\)"):
        world.act(child.name, "suspend")
    world.act(child.name, "suspend", wait=True)
    world.elapse(60, "operation")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.state(str(child.uuid)) == "SUSPEND_COMPLETE"
