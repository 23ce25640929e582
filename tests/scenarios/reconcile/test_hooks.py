"""Hooks: the place of the pause, the waiting resources, and the end of the wait
(docs/internals/engine-semantics.md §11).
"""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from orchestrator.errors import InvalidHook, NotFound, NotSupported
from orchestrator.operations import stack_completion
from orchestrator.store.maintenance import stalled
from orchestrator.store.nodes import hooks, repository
from orchestrator.store.traversals import traversals
from tests.e2e.running import eventually
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World, test_resource

KINDS = ["own", "cloud"]


@pytest.fixture
def cloud():
    return Cloud()


@pytest.fixture
def world(postgres_url, cloud):
    made = World(postgres_url, types=cloud.types())
    yield made
    made.close()


def hooked(**hooks):
    """An environment that has these resources pause."""
    return {
        "resource_registry": {"resources": {name: {"hooks": keywords} for name, keywords in hooks.items()}}
    }


def thing(kind, requires=(), value="v"):
    if kind == "own":
        return test_resource(value, requires=requires)
    return cloud_thing(requires=tuple(requires), type="Cloud::Server", value=value)


def chain(kind, value="v"):
    return {"a": thing(kind, value=value), "b": thing(kind, ["a"])}


def states(world):
    return {r.name: f"{r.action}_{r.status}" for r in world.rows("SELECT name, action, status FROM resource")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_pauses_before_its_create_and_only_its_dependents_wait(world, kind):
    uuid = world.create("s", {**chain(kind), "c": thing(kind)}, environment=hooked(a="pre-create"))
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.paused("s") == [("a", "pre-create")]
    assert states(world) == {"a": "INIT_COMPLETE", "b": "INIT_COMPLETE", "c": "CREATE_COMPLETE"}
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    assert world.event_reasons(uuid, "a") == ["INIT_COMPLETE CREATE paused until Hook pre-create is cleared"]
    assert world.rows("SELECT 1 FROM resource WHERE lease IS NOT NULL") == []
    world.clear("s", "a", "pre-create")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.event_reasons(uuid, "a") == [
        "INIT_COMPLETE CREATE paused until Hook pre-create is cleared",
        "INIT_COMPLETE Hook pre-create is cleared",
        "CREATE_IN_PROGRESS state changed",
        "CREATE_COMPLETE state changed",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_pauses_after_it_was_made_and_before_its_dependents_are(world, cloud, kind):
    uuid = world.create("s", chain(kind), environment=hooked(a="post-create"))
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.paused("s") == [("a", "post-create")]
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE"}
    assert world.event_reasons(uuid, "a") == [
        "CREATE_IN_PROGRESS state changed",
        "CREATE_COMPLETE state changed",
        "CREATE_COMPLETE CREATE paused until Hook post-create is cleared",
    ]
    world.clear("s", "a", "post-create")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert world.event_reasons(uuid, "a")[3:] == ["CREATE_COMPLETE Hook post-create is cleared"]
    assert kind == "own" or cloud.made == {"a": 1, "b": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_pauses_also_before_unchanged_resources(world, kind):
    uuid = world.create("s", chain(kind), environment=hooked(**{"*": ["pre-update"]}))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    reported = len(world.event_reasons(uuid, "a"))
    world.patch("s")
    world.deliver_all()
    assert world.paused("s") == [("a", "pre-update")]
    world.clear("s", "a", "pre-update")
    world.deliver_all()
    assert world.paused("s") == [("b", "pre-update")]
    world.clear("s", "b", "pre-update")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.event_reasons(uuid, "a")[reported:] == [
        "CREATE_COMPLETE UPDATE paused until Hook pre-update is cleared",
        "CREATE_COMPLETE Hook pre-update is cleared",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_after_an_update_the_dependents_get_the_new_value_when_the_hook_is_cleared(world, kind):
    def resources(value):
        return {"a": thing(kind, value=value), "b": test_resource({"get_attr": ["a", attribute]})}

    attribute = "output" if kind == "own" else "value"
    environment = hooked(a=["pre-update", "post-update"])
    uuid = world.create("s", resources("1"), environment=environment)
    world.deliver_all()
    world.update("s", resources("2"), environment=environment)
    world.deliver_all()
    world.clear("s", "a", "pre-update")
    world.deliver_all()
    assert world.paused("s") == [("a", "post-update")]
    assert states(world) == {"a": "UPDATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.clear("s", "a", "post-update")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [b] = world.rows("SELECT attributes->>'output' AS value FROM resource WHERE name = 'b'")
    assert b.value == "2"


def test_there_is_no_pause_after_an_update_that_changed_nothing_or_replaced_it(world):
    environment = hooked(a=["post-update"], r=["pre-create", "post-create", "post-update"])
    resources = {"a": test_resource(), "r": test_resource(update_replace_value="1")}
    uuid = world.create("s", resources)
    world.deliver_all()
    world.update("s", resources, environment=environment)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.update(
        "s", {"r": test_resource(update_replace_value="2"), "new": test_resource()}, environment=environment
    )
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_resources_added_by_an_update_are_created_without_a_pause(world):
    uuid = world.create("s", {"a": test_resource()})
    world.deliver_all()
    world.update("s", chain("own"), environment=hooked(b=["pre-create", "pre-update", "post-create"]))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert states(world)["b"] == "CREATE_COMPLETE"


@pytest.mark.parametrize("kind", KINDS)
def test_a_deletion_pauses_before_and_after_each(world, cloud, kind):
    environment = hooked(b=["pre-delete", "post-delete"])
    uuid = world.create("s", chain(kind), environment=environment)
    world.deliver_all()
    reported = len(world.event_reasons(uuid, "b"))
    world.delete("s")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.paused("s") == [("b", "pre-delete")]
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    world.clear("s", "b", "pre-delete")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.paused("s") == [("b", "post-delete")]
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "DELETE_COMPLETE"}
    assert not [item for item in cloud.things if item.startswith("b")]
    world.clear("s", "b", "post-delete")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []
    assert world.event_reasons(uuid, "b")[reported:] == [
        "CREATE_COMPLETE DELETE paused until Hook pre-delete is cleared",
        "CREATE_COMPLETE Hook pre-delete is cleared",
        "DELETE_IN_PROGRESS state changed",
        "DELETE_COMPLETE state changed",
        "DELETE_COMPLETE DELETE paused until Hook post-delete is cleared",
        "DELETE_COMPLETE Hook post-delete is cleared",
    ]


def test_removing_a_resource_in_an_update_pauses_nowhere(world):
    uuid = world.create("s", chain("own"), environment=hooked(b=["pre-delete", "post-delete"]))
    world.deliver_all()
    world.update("s", {"a": test_resource("v")}, environment=hooked(b=["pre-delete", "post-delete"]))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert set(states(world)) == {"a"}


def test_a_resource_that_was_never_created_is_dropped_without_a_pause(world):
    uuid = world.create("s", chain("own"), environment=hooked(a=["pre-create", "pre-delete", "post-delete"]))
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


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
    world.update("s", chain("own", value="3"))  # an environment of its own, without hooks
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


def test_a_paused_stack_is_not_taken_for_stalled_and_nothing_rings_for_it(world):
    world.create("s", chain("own"), environment=hooked(a="pre-create"))
    world.deliver_all()
    world.elapse(600, "action")
    world.sweep._audited_at = -1000.0
    world.sweep_once()
    assert world.messages == []
    with world.database.connect() as db:
        assert stalled.stalled_stacks(db) == []


def test_clearing_an_unknown_or_inactive_hook_is_refused_with_heats_message(world):
    uuid = world.create("s", chain("own"), environment=hooked(a="pre-create"))
    with pytest.raises(NotFound, match=r"^The Resource \(a\) is not available.$"):
        world.clear("s", "a", "pre-create")
    world.deliver_all()
    with pytest.raises(InvalidHook) as refused:
        world.clear("s", "a", "nope")
    assert str(refused.value) == f'Invalid hook type "nope" for TestResource "a" Stack "s" [{uuid}]'
    with pytest.raises(InvalidHook) as refused:
        world.clear("s", "a", "pre-update")
    assert (
        str(refused.value) == f'The "pre-update" hook is not defined on TestResource "a" Stack "s" [{uuid}]'
    )
    with pytest.raises(
        NotSupported, match=r"^signal is not supported for resource\. \(resource: a, type: \S+\)$"
    ):
        world.signal("s", "a", {"x": 1})
    with pytest.raises(NotFound, match=r"^The Resource \(zz\) could not be found in Stack s.$"):
        world.clear("s", "zz", "pre-create")
    assert world.paused("s") == [("a", "pre-create")]


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
