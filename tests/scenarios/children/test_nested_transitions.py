"""Settings passed down a tree and results passed up: timeouts, credentials, the policy after failures,
released children, and stopped children.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from sqlalchemy import text as sql

from orchestrator.operations.adoption import adopt_abandon
from orchestrator.resources.base import Context, Property
from orchestrator.resources.nested_type import (
    ChildTemplate,
    ChildView,
    NestedStep,
    NestedType,
    SetChild,
    Settled,
)
from orchestrator.store.traversals import children
from orchestrator.template.environment import Environment
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.trees import CHILD, child, deliver, nested, text
from tests.scenarios.world import World

MIDDLE = "file:///middle.yaml"
PLAIN = {"a": cloud_thing(type="Cloud::Server", value={"get_param": "value"})}
BELL = {"bell": cloud_thing(type="Cloud::Bell"), "later": cloud_thing(("bell",))}
FAULTY = {"a": cloud_thing(value="x", errors=9, final=True)}


class Brief(NestedType):
    """A stack with little time, made in two steps."""

    name = "Sim::Brief"
    properties: ClassVar = {"text": Property("string", "Its template.", update_allowed=True)}

    def step(self, ctx: Context, props: Any, view: ChildView, turn: int) -> NestedStep:
        if turn == 2:
            return Settled()
        return SetChild(ChildTemplate("", props["text"], Environment(), timeout_mins=7))


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    made = World(
        postgres_url,
        types={**cloud.types(), Brief.name: Brief()},
        enable_stack_abandon=True,
        enable_stack_adopt=True,
    )
    yield made
    made.close()


def sets(world: World, columns: str, where: str = "owner_id IS NULL") -> None:
    with world.database.engine.begin() as connection:
        connection.execute(sql(f"UPDATE stack SET {columns} WHERE {where}"))


def enqueue(world: World) -> None:
    world.signal(child(world).uuid, "bell", {})
    deliver(world)


# Down.


def test_settings_of_the_parent_are_inherited_by_a_new_child(world: World):
    world.create("s", {"child": nested()}, files={CHILD: text(PLAIN)}, timeout_mins=11, keep_going=True)
    sets(world, "username = 'u', user_project_id = 'up', credentials = '\\x01'")
    deliver(world)
    made = child(world)
    assert (made.timeout_mins, made.keep_going, made.disable_rollback) == (11, True, True)
    assert (made.username, made.user_project_id, bytes(made.credentials)) == ("u", "up", b"\x01")
    [revision] = world.rows("SELECT created_by FROM revision WHERE stack_id = :id", id=made.id)
    assert revision.created_by == "u"


@pytest.mark.parametrize("deed", ["update", "suspend", "delete"])
def test_settings_of_the_parent_are_inherited_with_every_child_transition(world: World, deed: str):
    world.create("s", {"child": nested(value="1")}, files={CHILD: text(PLAIN)}, timeout_mins=11)
    deliver(world)
    world.patch(child(world).uuid, disable_rollback=False, timeout_mins=1)
    deliver(world)
    if deed == "update":
        resources = {"child": nested(value="2")}
        world.update("s", resources, files={CHILD: text(PLAIN)}, timeout_mins=12, keep_going=True)
    else:
        sets(world, "timeout_mins = 12, keep_going = true")
        world.delete("s") if deed == "delete" else world.act("s", deed)
    sets(world, "username = 'u', user_project_id = 'up', credentials = '\\x02'")
    deliver(world)
    made = child(world)
    assert (made.timeout_mins, made.keep_going, made.disable_rollback) == (12, True, True)
    assert (made.username, made.user_project_id, bytes(made.credentials)) == ("u", "up", b"\x02")


def test_a_child_with_rollback_enabled_does_not_fail_and_restart_endlessly(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(PLAIN)})
    deliver(world)
    world.patch(child(world).uuid, disable_rollback=False)
    deliver(world)
    world.update("s", {"child": nested()}, files={CHILD: text(PLAIN | {"b": FAULTY["a"]})})
    world.deliver_all(limit=500)
    assert (world.state(uuid), child(world).state) == ("UPDATE_FAILED", "UPDATE_FAILED")


def test_converging_a_tree_puts_drift_in_a_child_right(world: World, cloud: Cloud):
    machine = {"a": cloud_thing(type="Cloud::Machine", value="right")}
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(machine)})
    deliver(world)
    [thing] = cloud.things
    cloud.values[thing] = "drifted"
    world.patch("s", converge=True)
    deliver(world)
    assert (world.state(uuid), cloud.values) == ("UPDATE_COMPLETE", {thing: "right"})


# Time.


def test_a_childs_own_time_is_its_own(world: World):
    uuid = world.create("s", {"child": {"type": Brief.name, "properties": {"text": text(BELL)}}})
    deliver(world)
    assert child(world).timeout_mins == 7
    world.elapse(8 * 60, "action")
    world.messages += world.sweep.run()
    deliver(world)
    assert (child(world).state, child(world).status_reason) == ("CREATE_FAILED", "Timed out")
    [row] = world.rows(
        "SELECT action || '_' || status AS state, status_reason FROM stack WHERE uuid = :u", u=uuid
    )
    assert row.state == "CREATE_FAILED"
    assert row.status_reason == "Resource CREATE failed: Error: resources.child: Timed out"


@pytest.mark.parametrize("rollback", [False, True])
def test_a_parents_timeout_ends_it_and_stops_the_tree(world: World, cloud: Cloud, rollback: bool):
    files = {MIDDLE: text({"child": nested()}), CHILD: text(BELL)}
    request = {"timeout_mins": 5, "disable_rollback": not rollback}
    uuid = world.create("s", {"middle": nested(url=MIDDLE)}, files=files, **request)
    deliver(world)
    world.elapse(6 * 60, "action", where="owner_id IS NULL")
    world.messages += world.sweep.run()
    if not rollback:
        assert world.state(uuid) == "CREATE_FAILED"
        assert {row.h for row in world.rows("SELECT halted_traversal = traversal AS h FROM stack")} == {True}
        enqueue(world)
        world.deliver_all()
        assert (child(world).state, child(world, "middle").state) == ("CREATE_FAILED", "CREATE_FAILED")
        assert "later" not in cloud.made
    else:
        deliver(world)
        world.deliver_all()
        assert world.state(uuid) == "ROLLBACK_COMPLETE"
        assert (child(world).state, child(world, "middle").state) == ("DELETE_COMPLETE", "DELETE_COMPLETE")
        assert cloud.things == {}


def test_a_progressed_stack_is_not_stopped_for_its_earlier_state(world: World):
    """A timeout is noted; before it comes to the children, the user has updated the stack."""
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(BELL)})
    deliver(world)
    [before] = world.rows("SELECT id, traversal FROM stack WHERE uuid = :u", u=uuid)
    world.update("s", {"child": nested()}, files={CHILD: text(PLAIN)})
    for _ in range(2):
        world.deliver(1)
    with world.database.connect() as db:
        children.halt_below(db, before.id, before.traversal)
    deliver(world)
    assert (world.state(uuid), child(world).state) == ("UPDATE_COMPLETE", "UPDATE_COMPLETE")


# Failures.


def test_a_broken_child_does_not_hold_up_its_siblings(world: World, cloud: Cloud):
    files = {CHILD: text(FAULTY), MIDDLE: text({"good": cloud_thing(looks=2)})}
    resources = {
        "bad": nested(),
        **{f"good{n}": nested(url=MIDDLE) for n in range(3)},
        "after": nested("bad"),
    }
    uuid = world.create("s", resources, files=files, keep_going=True)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    rows = world.rows("SELECT parent_resource AS r, action || '_' || status AS s FROM stack WHERE depth = 1")
    good = {f"good{n}": "CREATE_COMPLETE" for n in range(3)}
    assert {row.r: row.s for row in rows} == {"bad": "CREATE_FAILED", **good}
    assert cloud.made["good"] == 3


def test_siblings_at_work_finish_when_a_child_breaks(world: World, cloud: Cloud):
    files = {CHILD: text(FAULTY), MIDDLE: text(BELL)}
    uuid = world.create("s", {"bad": nested(), "slow": nested(url=MIDDLE)}, files=files)
    deliver(world)
    assert (child(world, "bad").state, child(world, "slow").state) == ("CREATE_FAILED", "CREATE_IN_PROGRESS")
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.signal(child(world, "slow").uuid, "bell", {})
    deliver(world)
    assert (world.state(uuid), child(world, "slow").state) == ("CREATE_FAILED", "CREATE_COMPLETE")
    assert cloud.made["later"] == 1


def test_a_check_goes_on_over_a_faulty_child(world: World, cloud: Cloud):
    files = {CHILD: text(PLAIN), MIDDLE: text({"b": cloud_thing()})}
    uuid = world.create("s", {"child": nested(), "other": nested("child", url=MIDDLE)}, files=files)
    deliver(world)
    del cloud.things[next(thing for thing in cloud.things if thing.startswith("a-"))]
    world.act("s", "check")
    deliver(world)
    assert world.state(uuid) == "CHECK_FAILED"
    assert (child(world).state, child(world, "other").state) == ("CHECK_FAILED", "CHECK_COMPLETE")
    [row] = world.rows("SELECT status_reason FROM stack WHERE uuid = :u", u=uuid)
    reported = (
        "Resource CHECK failed: child: NotFound: resources.child.resources.a: There is no a-1 any more."
    )
    assert row.status_reason == reported
    world.patch("s")
    deliver(world)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert sorted(thing[0] for thing in cloud.things) == ["a", "b"]


# Letting go.


def test_a_retained_child_is_a_stack_of_its_own(world: World, cloud: Cloud):
    files = {MIDDLE: text({"child": nested()}), CHILD: text(PLAIN)}
    uuid = world.create("s", {"middle": nested(url=MIDDLE, deletion_policy="Retain")}, files=files)
    deliver(world)
    world.delete("s")
    deliver(world)
    assert world.state(uuid) == "DELETE_COMPLETE"
    middle, below = child(world, "middle"), child(world)
    assert (middle.state, middle.owner_id, middle.depth, middle.root_id) == (
        "CREATE_COMPLETE",
        None,
        0,
        middle.id,
    )
    assert (below.owner_id, below.depth, below.root_id) == (middle.id, 1, middle.id)
    assert len(cloud.things) == 1
    world.patch(middle.uuid)
    deliver(world)
    assert world.state(middle.uuid) == "UPDATE_COMPLETE"
    world.delete(middle.uuid)
    deliver(world)
    assert (world.state(middle.uuid), cloud.things) == ("DELETE_COMPLETE", {})


def test_a_retained_child_keeps_its_verdicts(world: World):
    uuid = world.create("s", {"child": nested(deletion_policy="Retain")}, files={CHILD: text(PLAIN)})
    deliver(world)
    common = "resource_id, stack_id, root_id, project_id, name, type, service, verdict, physical_id"
    values = "r.id, r.stack_id, s.root_id, 'p1', r.name, r.type, 'x', 'MISSING', 'x'"
    found = "FROM resource r JOIN stack s ON s.id = r.stack_id WHERE s.owner_id IS NOT NULL"
    with world.database.engine.begin() as connection:
        connection.execute(
            sql(
                f"""INSERT INTO resource_verdict ({common}, group_id, confirmed, since, observed_at)
                SELECT {values}, 0, true, now(), now() {found}"""
            )
        )
        connection.execute(
            sql(
                f"""INSERT INTO verdict_history ({common}, fault_id, first_seen_at, last_seen_at)
                SELECT {values}, 1, now(), now() {found}"""
            )
        )
    world.delete("s")
    deliver(world)
    assert world.state(uuid) == "DELETE_COMPLETE"
    for table in ("resource_verdict", "verdict_history"):
        assert [row.root_id for row in world.rows(f"SELECT root_id FROM {table}")] == [child(world).id]


def test_a_retained_child_is_let_go_of_also_when_its_removal_pauses_at_a_hook(world: World, cloud: Cloud):
    hooks = {"resource_registry": {"resources": {"child": {"hooks": "post-delete"}}}}
    retained = {"child": nested(deletion_policy="Retain")}
    uuid = world.create("s", retained, files={CHILD: text(PLAIN)}, environment=hooks)
    deliver(world)
    world.delete("s")
    deliver(world)
    assert world.paused("s") == [("child", "post-delete")]
    assert (child(world).owner_id, len(cloud.things)) == (None, 1)
    world.clear("s", "child", "post-delete")
    deliver(world)
    assert (world.state(uuid), child(world).state) == ("DELETE_COMPLETE", "CREATE_COMPLETE")


def test_a_retained_child_at_work_goes_on_by_itself(world: World, cloud: Cloud):
    uuid = world.create("s", {"child": nested(deletion_policy="Retain")}, files={CHILD: text(BELL)})
    deliver(world)
    world.delete("s")
    deliver(world)
    assert (world.state(uuid), child(world).state) == ("DELETE_COMPLETE", "CREATE_IN_PROGRESS")
    roots = world.rows("SELECT DISTINCT root_id FROM graph_node WHERE state IN ('waiting', 'blocked')")
    assert [row.root_id for row in roots] == [child(world).id]  # or no sweep would find them
    enqueue(world)
    world.deliver_all(lose=0.5)
    assert (child(world).state, child(world).root_id) == ("CREATE_COMPLETE", child(world).id)
    assert dict(cloud.made) == {"bell": 1, "later": 1}


def test_an_update_that_wants_a_retained_child_again_finds_it_there(world: World):
    """The release of a child and the deletion of its resource are atomic: if overtaken, neither happens."""
    keeping = {"child": nested(deletion_policy="Retain")}
    uuid = world.create("s", keeping, files={CHILD: text(PLAIN)})
    deliver(world)
    before = child(world).uuid
    world.update("s", {})
    deleted = world.record("write_outcome", outcome="settle_deleted")
    world.before(
        "write_outcome",
        lambda: world.update("s", keeping, files={CHILD: text(PLAIN)}),
        outcome="settle_deleted",
    )
    deliver(world)
    assert deleted
    assert (world.state(uuid), child(world).uuid) == ("UPDATE_COMPLETE", before)
    assert child(world).owner_id is not None


def test_an_abandoned_tree_leaves_everything_where_it_is(world: World, cloud: Cloud):
    files = {MIDDLE: text({"child": nested(), "b": cloud_thing()}), CHILD: text(PLAIN)}
    uuid = world.create("s", {"middle": nested(url=MIDDLE)}, files=files)
    deliver(world)
    things = dict(cloud.things)
    abandoned = adopt_abandon.abandon(world.context, world.stack_row("s"))
    abandoned.document.close()
    world.messages += abandoned.messages
    deliver(world)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert (child(world).state, child(world, "middle").state) == ("DELETE_COMPLETE", "DELETE_COMPLETE")
    assert cloud.things == things
    assert world.rows("SELECT 1 FROM resource") == []
