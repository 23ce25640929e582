"""No way for a stack to stand still goes unnoticed: rows are damaged, and the audit moves it again."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.store.maintenance import stalled, sweep_queries
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World, test_resource


def damage(world: World, statement: str, **values: Any) -> None:
    with world.database.engine.begin() as connection:
        connection.execute(text(statement), values)


def audit(world: World) -> None:
    """Let half a minute pass, and sweep with the audit."""
    world.elapse(60, "action")
    world.messages.clear()
    world.audit_soon()
    world.messages += world.sweep.run()
    world.audit_soon()


def chain(world: World) -> str:
    """A stack whose first resource is made and whose second is queued."""
    uuid = world.create("s", {"a": cloud_thing(), "b": cloud_thing(("a",)), "c": cloud_thing(("a", "b"))})
    world.deliver(2)
    return uuid


def test_a_count_that_is_too_high_is_put_right(world: World, cloud: Cloud):
    uuid = chain(world)
    damage(world, "UPDATE graph_node SET blocked_by = blocked_by + 1 WHERE label = 'c'")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    audit(world)
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1, "b": 1, "c": 1})


def test_an_end_that_nothing_holds_back_any_more_is_reached(world: World):
    uuid = chain(world)
    damage(world, "UPDATE graph_node SET blocked_by = 7 WHERE kind = 'finish'")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    audit(world)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    "loss",
    [
        "DELETE FROM graph_node WHERE kind = 'plan'",
        "UPDATE graph_node SET state = 'dropped', enqueued_at = NULL WHERE kind = 'plan'",
        "UPDATE graph_node SET state = 'failed', enqueued_at = NULL WHERE kind = 'plan'",
        "DELETE FROM graph_node",
    ],
)
def test_a_lost_plan_is_made_again(world: World, cloud: Cloud, loss: str):
    uuid = world.create("s", {"a": cloud_thing(), "b": cloud_thing(("a",))})
    damage(world, loss)
    audit(world)
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1, "b": 1})
    assert world.events(uuid).count("s CREATE_IN_PROGRESS") == 1


@pytest.mark.parametrize(
    "loss",
    [
        "UPDATE graph_node SET state = 'dropped', enqueued_at = NULL WHERE label = 'b'",
        "DELETE FROM graph_node WHERE label = 'b'",
        "DELETE FROM graph_node WHERE kind = 'finish'",
        "UPDATE graph_node SET state = 'dropped', blocked_by = 0 WHERE kind = 'finish'",
    ],
)
def test_a_lost_node_is_planned_again_and_nothing_is_created_twice(world: World, cloud: Cloud, loss: str):
    uuid = chain(world)
    damage(world, loss)
    world.deliver_all()
    audit(world)
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1, "b": 1, "c": 1})


def test_a_restarted_traversal_keeps_its_action_and_timeout(world: World):
    uuid = chain(world)
    damage(world, "DELETE FROM graph_node")
    audit(world)
    before = world.rows("SELECT action_started_at, updated_at, revision_id FROM stack")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.rows("SELECT action_started_at, updated_at, revision_id FROM stack") == before


def test_a_paused_or_waiting_stack_is_not_stalled(world: World):
    world.create("s", {"a": test_resource(), "b": test_resource(requires=["a"])})
    world.deliver()
    for state, due in (("paused", None), ("waiting", "infinity")):
        damage(
            world,
            "UPDATE graph_node SET state = :state, due_at = CAST(:due AS timestamptz), enqueued_at = NULL"
            " WHERE label = 'a'",
            state=state,
            due=due,
        )
        audit(world)
        assert world.rows("SELECT traversal FROM stack") == [(1,)]


def test_an_endless_wait_of_an_older_traversal_hides_no_stall(world: World):
    uuid = chain(world)
    damage(
        world,
        """INSERT INTO graph_node (stack_id, root_id, traversal, kind, queue, label, state, due_at)
        SELECT id, id, 0, 'join', 'bulk', 'old', 'waiting', 'infinity' FROM stack""",
    )
    damage(world, "DELETE FROM graph_node WHERE label IN ('b', 'c', 'finish')")
    audit(world)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_failed_stack_does_not_wait_for_an_abandoned_operation(world: World, cloud: Cloud):
    server = "Cloud::Server"
    first = {"a": cloud_thing(type=server, value="1"), "b": cloud_thing(("a",), type=server, value="1")}
    uuid = world.create("s", first)
    world.deliver_all()
    world.update("s", {**first, "a": cloud_thing(type=server, value="2", looks=99)})
    world.deliver(2)
    assert world.rows("SELECT op FROM resource WHERE name = 'a'") == [("UPDATE",)]
    world.update("s", {"b": cloud_thing(type=server, value="2", errors=9, final=True)})
    while world.messages:
        world.deliver()
    world.sweep.run()  # has it followed
    damage(
        world, "UPDATE graph_node SET state = 'dropped', enqueued_at = NULL, due_at = NULL WHERE label = 'a'"
    )
    assert world.rows("SELECT op FROM resource WHERE name = 'a'") == [("UPDATE",)]
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    audit(world)
    assert world.state(uuid) == "UPDATE_FAILED"
    assert world.rows("SELECT status_reason FROM stack") == [
        ("Resource UPDATE failed: ResourceInError: resources.b: it broke",)
    ]
    world.delete("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


def test_many_draining_stacks_do_not_hide_a_finished_stack(world: World):
    for number in range(3):
        world.create(f"busy{number}", {"a": cloud_thing(looks=99)})
    world.create("done", {"a": cloud_thing()})
    while world.messages:
        world.deliver()
    damage(
        world,
        "UPDATE stack SET status = 'IN_PROGRESS', halted_traversal = traversal, good_revision_id = NULL",
    )
    db = world.database.connect(hot=True, replan=True)
    ids = dict(world.rows("SELECT name, id FROM stack"))
    assert sweep_queries.drained(db, limit=1) == [(ids["done"], 1)]
    db.close()


def test_only_stalled_stacks_are_found(world: World):
    chain(world)
    db = world.database.connect(hot=True, replan=True)
    assert stalled.stalled_stacks(db, 0.0) == []
    damage(
        world,
        "UPDATE graph_node SET state = 'blocked', blocked_by = 1, enqueued_at = NULL WHERE state = 'queued'",
    )
    assert len(stalled.stalled_stacks(db, 0.0)) == 1
    assert stalled.stalled_stacks(db, 3_600.0) == []
    db.close()
