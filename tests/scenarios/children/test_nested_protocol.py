"""docs/internals/protocol.md rule 12, clause by clause, where a stack is in a stack: each test fails when its
rule is taken out.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text as sql

from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.trees import CHILD, child, deliver, nested, node, text
from tests.scenarios.world import World

BELL = {"bell": cloud_thing(type="Cloud::Bell", value={"get_param": "value"})}
PLAIN = {"a": cloud_thing(value={"get_param": "value"})}
FAULTY = {"a": cloud_thing(value="x", errors=9, final=True)}


def before_the_transition(world: World, verb: str, action: Callable[[], None]) -> list[str]:
    """Run an action once between a visit's first read of a child and the transition that follows; return
    the transitions.
    """
    verbs = world.record("child_transition", "verb")
    world.before("child_transition", action, verb=verb)
    return verbs


def wake(world: World, label: str) -> None:
    """Let a waiting node be visited for no reason."""
    row = node(world, label)
    with world.database.engine.begin() as connection:
        connection.execute(sql("UPDATE graph_node SET due_at = now() WHERE id = :id"), {"id": row.id})
    world.messages += world.sweep.run()


def enqueue(world: World, times: int = 1) -> None:
    """Signal the bell in the child: an open create is continued to its end, even if the desired state has
    changed.
    """
    for _ in range(times):
        world.signal(child(world).uuid, "bell", {})
        deliver(world)


# A released node is visited.


def test_a_parent_woken_while_its_child_is_at_work_goes_on_waiting(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(BELL)})
    deliver(world)
    wake(world, "child")
    deliver(world)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    assert (node(world, "child").state, node(world, "child").for_ever) == ("waiting", True)
    enqueue(world)
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_parent_whose_child_failed_fails(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(FAULTY)})
    deliver(world)
    assert (world.state(uuid), child(world).state) == ("CREATE_FAILED", "CREATE_FAILED")


def test_a_child_with_a_different_template_is_requested_again(world: World):
    uuid = world.create("s", {"child": nested(value="ours")}, files={CHILD: text(BELL)})
    deliver(world)
    world.patch(child(world).uuid, parameters={"value": "theirs"})
    deliver(world)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    enqueue(world, 3)  # the first bell, theirs, and ours
    assert world.state(uuid) == "CREATE_COMPLETE"
    [bell] = world.rows("SELECT properties->>'value' AS value FROM resource WHERE name = 'bell'")
    assert bell.value == "ours"


def test_a_check_of_a_child_leaves_the_request_of_its_parent_alone(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(BELL)})
    deliver(world)
    requests = child(world).traversal
    world.act(child(world).uuid, "check")
    deliver(world)
    enqueue(world)
    assert child(world).state == "CREATE_COMPLETE"
    assert child(world).traversal == requests
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_child_gone_while_it_is_made_is_a_failure(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(BELL)})
    deliver(world)
    world.delete(child(world).uuid)
    deliver(world)
    assert child(world).state == "DELETE_COMPLETE"
    assert world.state(uuid) == "CREATE_FAILED"
    world.update("s", {"child": nested()}, files={CHILD: text(PLAIN)})
    deliver(world)
    assert (world.state(uuid), child(world).state) == ("UPDATE_COMPLETE", "CREATE_COMPLETE")


def test_a_child_that_disappears_during_its_delete_counts_as_deleted(world: World, cloud: Cloud):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(PLAIN)})
    deliver(world)

    def others() -> None:
        world.delete(child(world).uuid)
        deliver(world)

    before_the_transition(world, "delete", others)
    world.delete("s")
    deliver(world)
    assert (world.state(uuid), child(world).state) == ("DELETE_COMPLETE", "DELETE_COMPLETE")
    assert cloud.things == {}


# A single child per resource.


def test_a_worker_that_is_thought_dead_makes_no_second_child(world: World, cloud: Cloud):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(PLAIN)})
    world.deliver()

    def others() -> None:
        world.forget_leases()
        assert world.sweep_once()
        deliver(world)
        assert world.state(uuid) == "CREATE_COMPLETE"

    moves = before_the_transition(world, "create", others)
    deliver(world)
    assert moves[:2] == ["create", "create"]
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.rows("SELECT count(*) AS n FROM stack WHERE owner_id IS NOT NULL")[0].n == 1
    assert dict(cloud.made) == {"a": 1}


def test_only_the_first_of_two_concurrent_visits_replaces_a_child(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(PLAIN)})
    deliver(world)
    group = {"count": 1, "resource_def": {"type": "OS::Heat::TestResource"}}
    world.update("s", {"child": {"type": "OS::Heat::ResourceGroup", "properties": group}})
    world.deliver(1)
    [message] = world.messages
    replaced = world.record("write_outcome", outcome="replace")
    world.before("write_outcome", lambda: world.deliver_one(message), outcome="replace")
    deliver(world)
    assert len(replaced) == 2
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(world.rows("SELECT 1 FROM resource WHERE name = 'child'")) == 1


def test_a_late_visit_does_not_drop_an_operation_that_a_cancelled_stack_follows(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(BELL)})
    world.deliver(1)
    [message] = world.messages

    def others() -> None:
        world.deliver_one(message)
        deliver(world)
        world.act("s", "cancel_without_rollback")
        assert node(world, "child").state == "queued"

    before_the_transition(world, "create", others)
    deliver(world)
    assert world.state(uuid) == "CREATE_FAILED"
    enqueue(world)
    world.deliver_all()
    assert child(world).state == "CREATE_FAILED"
    assert child(world).status_reason == "Stack CREATE cancelled"
    [resource] = world.resources("child")
    assert (resource.op, resource.status) == (None, "FAILED")


# The end of a child, by any outcome, and the release of its parent's node are a single statement.


@pytest.mark.parametrize("how", ["completes", "fails", "is cancelled", "times out", "is deleted"])
def test_a_childs_end_queues_its_parents_node_with_no_message_needed(world: World, how: str):
    resources = FAULTY if how == "fails" else PLAIN if how in ("completes", "is deleted") else BELL
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(resources)})
    if how == "is deleted":
        deliver(world)
        world.delete("s")
    for _ in range(100):
        world.deliver(1)
        if how in ("is cancelled", "times out") and not world.messages:
            if how == "is cancelled":
                world.act(child(world).uuid, "cancel_without_rollback")
            else:
                with world.database.engine.begin() as connection:
                    connection.execute(sql("UPDATE stack SET timeout_mins = 1 WHERE owner_id IS NOT NULL"))
                world.elapse(3600, "action", where="owner_id IS NOT NULL")
                world.messages += world.sweep.run()
        rows = world.rows("SELECT status FROM stack WHERE owner_id IS NOT NULL")
        if rows and rows[0].status != "IN_PROGRESS" and world.state(uuid).endswith("IN_PROGRESS"):
            break
    assert node(world, "child").state == "queued"
    world.messages.clear()
    world.deliver_all()
    assert not world.state(uuid).endswith("IN_PROGRESS")


# Before a node waits for a child it is looked at once more, under its lock.


def test_a_child_that_ends_before_its_parent_waits_is_not_waited_for(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(BELL)})
    deliver(world)

    def others() -> None:
        world.signal(child(world).uuid, "bell", {})
        deliver(world)
        assert child(world).state == "CREATE_COMPLETE"

    moves = before_the_transition(world, "wait", others)
    wake(world, "child")
    deliver(world)
    assert moves == ["wait"]
    assert world.state(uuid) == "CREATE_COMPLETE"


@pytest.mark.parametrize("verb", ["update", "act"])
def test_a_child_that_is_gone_before_it_is_moved_is_looked_at_again(world: World, verb: str):
    uuid = world.create("s", {"child": nested(value="1")}, files={CHILD: text(PLAIN)})
    deliver(world)

    def others() -> None:
        world.delete(child(world).uuid)
        deliver(world)

    moves = before_the_transition(world, verb, others)
    if verb == "update":
        world.update("s", {"child": nested(value="2")}, files={CHILD: text(PLAIN)})
        deliver(world)
        assert moves == ["update", "create"]
        assert (world.state(uuid), child(world).state) == ("UPDATE_COMPLETE", "CREATE_COMPLETE")
    else:
        world.act("s", "suspend")
        deliver(world)
        assert moves == ["act"]
        assert world.state(uuid) == "SUSPEND_FAILED"


def test_a_newer_plan_takes_over_a_node_that_waits_for_a_child(world: World):
    """Both traversals have a node that waits for the same child; its end releases the remaining node."""
    uuid = world.create("s", {"child": nested(value="1")}, files={CHILD: text(BELL)})
    deliver(world)
    world.update("s", {"child": nested(value="2")}, files={CHILD: text(BELL)})
    deliver(world)
    enqueue(world, 2)  # the old bell, and the new bell
    assert (world.state(uuid), child(world).state) == ("UPDATE_COMPLETE", "UPDATE_COMPLETE")
    [bell] = world.rows("SELECT properties->>'value' AS value FROM resource WHERE name = 'bell'")
    assert bell.value == "2"


# Concurrent changes to a child are not lost to a visit that had read it before.


@pytest.mark.parametrize("deed", ["delete", "mark", "patch"])
def test_a_change_to_a_child_while_its_parent_settles_is_repaired_by_the_next_update(world: World, deed: str):
    uuid = world.create("s", {"child": nested(value="ours")}, files={CHILD: text(PLAIN)})

    def change_the_child() -> None:
        if deed == "delete":
            world.delete(child(world).uuid)
        elif deed == "mark":
            world.mark(child(world).uuid, "a")
        else:
            world.patch(child(world).uuid, parameters={"value": "theirs"})

    settled = world.record("write_outcome", outcome="settle", resource="child")
    world.before("write_outcome", change_the_child, outcome="settle", resource="child")
    deliver(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert settled
    world.patch("s")
    deliver(world)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    rows = world.rows("SELECT status, properties->>'value' AS value FROM resource WHERE name = 'a'")
    assert [(row.status, row.value) for row in rows] == [("COMPLETE", "ours")]
    assert (
        world.rows("SELECT 1 FROM stale_child d JOIN stack s ON s.id = d.stack_id WHERE s.deleted_at IS NULL")
        == []
    )
