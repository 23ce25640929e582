"""Pauses at hooks that updates, failures, cancels, timeouts, or worker deaths interrupt
(docs/internals/engine-semantics.md §11).
"""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from orchestrator.errors import InvalidHook
from orchestrator.operations import stack_completion
from orchestrator.store.nodes import hooks, repository
from orchestrator.store.traversals import traversals
from tests.e2e.running import eventually
from tests.scenarios.fake_cloud import cloud_thing
from tests.scenarios.reconcile.hook_world import KINDS, chain, hooked, states, thing
from tests.scenarios.world import test_resource


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_over_a_paused_create_goes_on_with_the_new_template(world, cloud, kind):
    environment = hooked(a="pre-create")
    uuid = world.create("s", chain(kind), environment=environment)
    world.deliver_all()
    world.update("s", chain(kind, value="new"), environment=environment)
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.paused("s") == []
    assert world.event_reasons(uuid, "a")[:2] == [
        "INIT_COMPLETE CREATE paused until Hook pre-create is cleared",
        "INIT_COMPLETE Failure occurred while waiting.",
    ]
    [a] = world.rows("SELECT properties->>'value' AS value FROM resource WHERE name = 'a'")
    assert a.value == "new"


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_over_a_paused_delete_takes_over(world, kind):
    environment = hooked(b=["pre-delete", "post-delete"])
    uuid = world.create("s", chain(kind), environment=environment)
    world.deliver_all()
    for clear in (False, True):
        world.delete("s")
        world.deliver_all()
        if clear:
            world.clear("s", "b", "pre-delete")
            world.deliver_all()
            assert world.paused("s") == [("b", "post-delete")]
        world.update("s", chain(kind), environment=environment)
        world.deliver_all()
        assert world.state(uuid) == "UPDATE_COMPLETE"
        assert states(world) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert [item for item in world.event_reasons(uuid, "b") if "DELETE_COMPLETE" in item] == [
        "DELETE_COMPLETE state changed",
        "DELETE_COMPLETE DELETE paused until Hook post-delete is cleared",
        "DELETE_COMPLETE Failure occurred while waiting.",
    ]


def test_a_failure_of_a_sibling_ends_the_wait(world):
    resources = {**chain("own"), "c": test_resource(), "x": test_resource(requires=["c"], fail=True)}
    uuid = world.create("s", resources, environment=hooked(a="pre-create"))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert world.paused("s") == []
    assert world.event_reasons(uuid, "a")[-1] == "INIT_COMPLETE Failure occurred while waiting."
    with pytest.raises(InvalidHook):
        world.clear("s", "a", "pre-create")


def test_a_stack_that_goes_on_after_failures_goes_on_waiting(world):
    resources = {**chain("own"), "c": test_resource(), "x": test_resource(requires=["c"], fail=True)}
    uuid = world.create("s", resources, environment=hooked(a="pre-create"), keep_going=True)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    assert world.paused("s") == [("a", "pre-create")]
    world.clear("s", "a", "pre-create")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert states(world) == {
        "a": "CREATE_COMPLETE",
        "b": "CREATE_COMPLETE",
        "c": "CREATE_COMPLETE",
        "x": "CREATE_FAILED",
    }


def test_cancelling_and_the_stacks_time_running_out_end_the_wait(world):
    for name, end in (("cancelled", "act"), ("late", "time")):
        uuid = world.create(name, chain("own"), environment=hooked(a="pre-create"), timeout_mins=1)
        world.deliver_all()
        if end == "act":
            world.act(name, "cancel_without_rollback")
        else:
            world.elapse(120, "action", where="name = :name", name=name)
        world.deliver_all()
        assert world.state(uuid) == "CREATE_FAILED"
        assert world.paused(name) == []
        events = world.events(uuid)
        assert world.event_reasons(uuid, "a")[-1] == "INIT_COMPLETE Failure occurred while waiting."
        assert events[-1] == f"{name} CREATE_FAILED"


def test_hooks_pause_an_update_cancel_goes_back_and_the_next_update_pauses_again(world):
    environment = hooked(a="pre-update")
    uuid = world.create("s", chain("own"))
    world.deliver_all()
    world.update("s", chain("own", value="2"), environment=environment)
    world.deliver_all()
    assert world.paused("s") == [("a", "pre-update")]
    world.act("s", "cancel_update")
    world.deliver_all()  # back to a revision whose environment has no hooks
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    world.update("s", chain("own", value="3"), environment=environment)
    world.deliver_all()
    assert world.paused("s") == [("a", "pre-update")]
    world.update("s", chain("own", value="3"))  # its own environment, without hooks
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_an_operation_of_an_older_update_ends_before_the_hook_of_a_newer_update(world, cloud):
    def resources(value):
        return {
            "a": cloud_thing(type="Cloud::Server", value=value, looks=1),
            "b": test_resource(requires=["a"]),
        }

    uuid = world.create("s", resources("1"))
    world.deliver_all()
    world.update("s", resources("2"))
    world.deliver(2)  # the plan, and the update is asked for
    assert states(world)["a"] == "UPDATE_IN_PROGRESS"
    world.update("s", resources("2"), environment=hooked(a=["pre-update", "post-update"]))
    world.deliver_all()
    assert world.paused("s") == [("a", "pre-update")]
    assert states(world)["a"] == "UPDATE_COMPLETE"
    world.clear("s", "a", "pre-update")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.calls.count("update a") == 1


def test_a_worker_that_dies_at_a_hook_leaves_a_single_pause_and_a_single_event(world, cloud):
    uuid = world.create("s", chain("cloud"), environment=hooked(a=["pre-create", "post-create"]))
    for hook in ("pre-create", "post-create"):
        world.deliver_all(shuffle=True, repeat=0.5, lose=0.2)
        assert world.paused("s") == [("a", hook)]
        for _ in range(3):
            world.forget_leases()
            world.sweep_once()
            world.deliver_all()
        paused = [item for item in world.event_reasons(uuid, "a") if f"Hook {hook}" in item]
        assert len(paused) == 1
        world.clear("s", "a", hook)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1, "b": 1}


def claimed(world, kind="cloud"):
    """A visit that has come to its hook and has not paused yet, with its lease."""
    world.create("s", {"a": thing(kind)}, environment=hooked(a=["pre-create"]))
    world.deliver(1)
    [message] = world.messages
    world.messages.clear()
    db = world.database.check_connection(durable=True)
    repository.claim(db, [message.node_id], message.traversal, 7, 30.0)
    [visit] = repository.read_claimed(db, [message.node_id], 7)
    return visit


def test_a_visit_that_comes_to_its_hook_too_late_does_not_pause(world):
    visit = claimed(world)
    world.update("s", {"a": thing("cloud")})
    assert not hooks.pause_before(world.database.check_connection(durable=True), visit, "pre-create", 7)
    assert world.paused("s") == []


def test_a_visit_that_comes_to_its_hook_while_its_traversal_is_superseded_is_not_overlooked(world):
    visit = claimed(world)
    stack, paused = world.stack_row("s"), []

    def pause():
        with world.database.connect() as db:
            paused.append(hooks.pause_before(db, visit, "pre-create", 7))

    with world.database.connect(name="superseding") as db:
        with db.transaction():
            traversals.start_traversal(db, stack.id, "UPDATE")
            worker = threading.Thread(target=pause)
            worker.start()
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            eventually(lambda: paused or world.rows(waiting)[0].count)
        worker.join()
    assert paused == [False]
    assert world.paused("s") == []


def test_an_outcome_that_comes_to_its_hook_too_late_is_kept_and_its_node_dropped(world, cloud):
    def superseded(ctx):
        del cloud.on["created"]
        world.update("s", {"a": thing("cloud")})

    cloud.on["created"] = superseded
    uuid = world.create("s", {"a": thing("cloud")}, environment=hooked(a=["post-create"]))
    world.deliver(2)
    assert states(world) == {"a": "CREATE_COMPLETE"}
    assert world.event_reasons(uuid, "a") == [
        "CREATE_IN_PROGRESS state changed",
        "CREATE_COMPLETE state changed",
    ]
    assert world.paused("s") == []
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_a_traversal_that_ends_while_another_begins_does_not_stand_in_its_way(world):
    uuid = world.create("s", {"a": thing("own"), "z": test_resource()}, environment=hooked(a="pre-create"))
    world.deliver_all()
    stack = world.stack_row("s")
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE stack SET halted_traversal = traversal"))
    ended = []

    def end():
        ended.append(stack_completion.drain(world.database, stack.id, 1))
        world.database.check_connection(durable=True).close()  # this thread's own

    with world.database.connect(name="superseding") as db:
        with db.transaction():
            traversals.lock(db, stack.id)
            worker = threading.Thread(target=end)
            worker.start()
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            eventually(lambda: ended or world.rows(waiting)[0].count)
            world.messages.append(traversals.start_traversal(db, stack.id, "DELETE").message)
        worker.join()
    assert ended == [[]]
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
