"""Stopped operations: cancelled, timed out, and deleted."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.errors import NotFound, NotSupported
from orchestrator.operations import stack_completion
from orchestrator.operations.stacks import actions, create_delete
from orchestrator.store.maintenance import sweep_queries
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.reconcile.failure_world import causes, outcomes, reason
from tests.scenarios.world import World, test_resource


def states(world: World) -> dict[str, str]:
    query = "SELECT name, action || '_' || status AS state FROM resource WHERE NOT deposed"
    return {row.name: row.state for row in world.rows(query)}


def late(world: World) -> None:
    """Let the stack's time be over."""
    world.elapse(2 * 3600, "action")


# Cancelling


def test_running_operations_of_a_cancelled_stack_finish(cloudy: World, cloud: Cloud):
    resources = {"a": cloud_thing(looks=2), "b": cloud_thing(("a",))}
    uuid = cloudy.create("s", resources)
    cloudy.deliver(2)
    cloudy.act("s", "cancel_without_rollback")
    assert cloudy.state(uuid) == "CREATE_FAILED"
    assert (reason(cloudy), outcomes(cloudy)) == ("Stack CREATE cancelled", ["cancelled"])
    cloudy.deliver_all()
    assert states(cloudy) == {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE"}
    assert cloud.made == {"a": 1}
    assert cloudy.state(uuid) == "CREATE_FAILED"
    assert cloudy.events(uuid)[-1] == "a CREATE_COMPLETE"
    cloudy.update("s", resources)
    cloudy.deliver_all()
    assert cloudy.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1, "b": 1}
    assert outcomes(cloudy) == ["cancelled", "complete"]


def test_a_worker_that_dies_after_a_cancel_loses_nothing(cloudy: World, cloud: Cloud):
    cloudy.create("s", {"a": cloud_thing(looks=2)})
    cloudy.deliver(2)
    cloudy.act("s", "cancel_without_rollback")
    with cloudy.database.engine.begin() as connection:  # it held the node, and is gone
        connection.execute(
            text("""UPDATE graph_node SET state = 'checking', due_at = NULL, enqueued_at = NULL, lease = 1,
                leased_until = now() - interval '1 s' WHERE label = 'a'""")
        )
    cloudy.deliver_all()
    assert states(cloudy) == {"a": "CREATE_COMPLETE"}


def test_cancelling_drops_queued_nodes_and_keeps_running_operations(cloudy: World):
    cloudy.create("s", {"a": cloud_thing(looks=2), "b": cloud_thing()})
    cloudy.deliver(2)
    cloudy.act("s", "cancel_without_rollback")
    with cloudy.database.engine.begin() as connection:  # it came due
        connection.execute(text("UPDATE graph_node SET state = 'queued', due_at = NULL WHERE label = 'a'"))
    [row] = cloudy.rows("SELECT id FROM stack")
    with cloudy.database.connect() as db:
        sweep_queries.drop_superseded(db, row.id, 100)
    rows = {row.label: row.state for row in cloudy.rows("SELECT label, state FROM graph_node")}
    assert (rows["a"], rows["b"]) == ("queued", "dropped")


def test_an_endless_operation_is_not_polled_forever(cloudy: World, cloud: Cloud):
    cloudy.create("s", {"a": cloud_thing(looks=1_000_000)})
    cloudy.deliver(2)
    cloudy.act("s", "cancel_without_rollback")
    cloudy.elapse(25 * 3600, "action")
    cloudy.deliver_all()
    assert [row.state for row in cloudy.rows("SELECT state FROM graph_node WHERE label = 'a'")] == ["dropped"]
    cloudy.delete("s")
    cloudy.deliver_all()
    assert cloud.things == {}


def test_cancelling_while_it_winds_down_says_cancelled(cloudy: World, cloud: Cloud):
    cloudy.create("s", {"a": cloud_thing(looks=3), "bad": cloud_thing(errors=9, final=True)})
    for _ in range(4):
        cloudy.deliver()
    assert cloudy.rows("SELECT 1 FROM stack WHERE halted_traversal = traversal AND status = 'IN_PROGRESS'")
    cloudy.act("s", "cancel_without_rollback")
    assert (reason(cloudy), outcomes(cloudy)) == ("Stack CREATE cancelled", ["cancelled"])
    assert causes(cloudy) == [("bad", 1)]


def test_cancelling_an_update_rolls_back_and_names_the_user(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("2"), "b": test_resource("1", wait_secs=-1)})
    world.deliver(3)
    world.act("s", "cancel_update")
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert outcomes(world) == ["complete", "cancelled", "complete"]
    [row] = world.rows("SELECT created_by, copy_of FROM revision WHERE number = 3")
    assert tuple(row) == ("tester", 1)


@pytest.mark.parametrize("cancel", [actions.cancel_update, actions.cancel_without_rollback])
def test_a_stack_that_has_just_ended_is_not_cancelled(world: World, cancel: Any):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("2")})
    as_it_was = world.stack_row("s")
    assert as_it_was.state == "UPDATE_IN_PROGRESS"
    world.deliver_all()
    reported = world.events(uuid)
    message = "^Cancelling update when stack is UPDATE_COMPLETE is not supported.$"
    with pytest.raises(NotSupported, match=message):
        cancel(world.context, as_it_was)
    assert world.events(uuid) == reported
    assert outcomes(world) == ["complete", "complete"]
    world.delete("s")
    world.deliver_all()
    with pytest.raises(NotFound):
        cancel(world.context, as_it_was)


def test_cancelling_cancels_the_newest_of_several_updates(world: World):
    world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("2")})
    as_it_was = world.stack_row("s")
    world.update("s", {"a": test_resource("3")})
    actions.cancel_without_rollback(world.context, as_it_was)
    assert (reason(world), outcomes(world)) == (
        "Stack UPDATE cancelled",
        ["complete", "superseded", "cancelled"],
    )


# Timing out


@pytest.mark.parametrize("action", ["CREATE", "UPDATE", "DELETE", "ROLLBACK", "CHECK"])
def test_every_action_times_out(cloudy: World, cloud: Cloud, action: str):
    slow = cloud_thing(type="Cloud::Server", value="1")
    cloudy.create("s", {"a": slow} if action != "CREATE" else {"a": cloud_thing(looks=9)}, timeout_mins=1)
    hanging = cloud_thing(type="Cloud::Server", value="2", looks=9)
    if action == "CREATE":
        cloudy.deliver(2)
    else:
        cloudy.deliver_all()
    if action in {"UPDATE", "ROLLBACK"}:
        cloudy.update("s", {"a": hanging})
        cloudy.deliver(2)
    if action == "ROLLBACK":
        cloudy.act("s", "cancel_update")
        cloudy.deliver(1)
    if action == "DELETE":
        cloudy.delete("s")
        cloudy.deliver(1)
    if action == "CHECK":
        cloudy.act("s", "check")
        cloudy.deliver(1)
    late(cloudy)
    cloudy.messages += cloudy.sweep.run()
    assert [tuple(row) for row in cloudy.rows("SELECT action, status, status_reason FROM stack")] == [
        (action, "FAILED", "Timed out")
    ]
    assert outcomes(cloudy)[-1] == ("complete" if action in {"DELETE", "CHECK"} else "failed")


def test_after_a_time_out_the_rollback_has_its_own_time(cloudy: World, cloud: Cloud):
    uuid = cloudy.create("s", {"a": cloud_thing()}, disable_rollback=False)
    cloudy.deliver_all()
    cloudy.update("s", {"a": cloud_thing(), "b": cloud_thing(looks=3)})
    cloudy.deliver(2)
    late(cloudy)
    cloudy.messages += cloudy.sweep.run()
    assert cloudy.state(uuid) == "ROLLBACK_IN_PROGRESS"
    cloudy.deliver_all()
    assert cloudy.state(uuid) == "ROLLBACK_COMPLETE"
    assert set(cloud.things.values()) == {token for token in cloud.things.values() if token}
    assert {thing.split("-")[0] for thing in cloud.things} == {"a"}
    assert outcomes(cloudy) == ["complete", "failed", "complete"]


def test_running_operations_of_a_timed_out_stack_finish(cloudy: World):
    uuid = cloudy.create("s", {"a": cloud_thing(looks=2), "b": cloud_thing(("a",))})
    cloudy.deliver(2)
    late(cloudy)
    cloudy.messages += cloudy.sweep.run()
    assert cloudy.state(uuid) == "CREATE_FAILED"
    cloudy.deliver_all()
    assert states(cloudy) == {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE"}


def test_a_stack_that_has_just_ended_does_not_time_out(world: World):
    uuid = world.create("s", {"a": test_resource("1")}, disable_rollback=False)
    world.deliver_all()
    [row] = world.rows("SELECT id FROM stack")
    assert stack_completion.fail(world.database, row.id, 1, stack_completion.TIMED_OUT) == []
    assert (world.state(uuid), outcomes(world)) == ("CREATE_COMPLETE", ["complete"])


# Deleting


def test_a_repeated_delete_continues_and_a_deleted_stack_is_404(world: World):
    uuid = world.create("s", {"a": test_resource("1", action_wait_secs={"delete": 1})})
    world.deliver_all()
    stack = world.stack_row("s")
    world.delete("s")
    world.deliver(2)
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    with pytest.raises(NotFound):
        create_delete.delete(world.context, stack)


@pytest.mark.parametrize("stop", ["cancel_without_rollback", "cancel_update", "time out"])
def test_a_stack_that_was_stopped_is_deleted_whole(cloudy: World, cloud: Cloud, stop: str):
    cloudy.create("s", {"a": cloud_thing()})
    cloudy.deliver_all()
    cloudy.update("s", {"a": cloud_thing(), "b": cloud_thing(looks=3), "c": cloud_thing(("b",))})
    cloudy.deliver(2)
    if stop == "time out":
        late(cloudy)
        cloudy.messages += cloudy.sweep.run()
    else:
        cloudy.act("s", stop)
    cloudy.deliver(1)
    stack = cloudy.stack_row("s")
    cloudy.delete("s")
    cloudy.deliver_all(shuffle=True, repeat=0.2)
    assert cloudy.state(str(stack.uuid)) == "DELETE_COMPLETE"
    assert cloud.things == {}
