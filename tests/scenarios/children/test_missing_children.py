"""Child stacks that were deleted directly: `check` of the parent reports them, and the next update creates
them again.
"""

from __future__ import annotations

from typing import Any

from tests.scenarios.children.test_nested_stacks import stacks_below
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.groups.test_groups import group
from tests.scenarios.trees import CHILD, child, deliver, nested, text
from tests.scenarios.world import World, test_resource

INNER = "file:///inner.yaml"
PLAIN = {CHILD: text({"a": test_resource("a")})}
DEEP = {CHILD: text({"inner": nested(url=INNER)}), INNER: text({"a": test_resource("a")})}


def check(world: World) -> None:
    world.act("s", "check")
    world.deliver_all()


def repair(world: World, resources: dict[str, Any], **options: Any) -> None:
    world.update("s", resources, **options)
    world.deliver_all()


def test_a_deleted_child_is_reported_and_created_again(world: World) -> None:
    resources = {"child": nested(), "other": test_resource("o")}
    uuid = world.create("s", resources, files=PLAIN)
    world.deliver_all()
    world.delete(child(world).uuid)
    world.deliver_all()
    check(world)
    assert world.state(uuid) == "CHECK_FAILED"
    assert "its stack no longer exists" in world.stack_row("s").status_reason.lower()
    row = world.resource("child")
    assert (row.action, row.status) == ("CHECK", "FAILED")
    assert "its stack no longer exists" in row.status_reason.lower()
    assert (world.resource("other").action, world.resource("other").status) == ("CHECK", "COMPLETE")
    repair(world, resources, files=PLAIN)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert [stack.state for stack in stacks_below(world, "s") if stack.deleted_at is None] == [
        "CREATE_COMPLETE"
    ]
    check(world)
    assert world.state(uuid) == "CHECK_COMPLETE"


def test_a_deleted_grandchild_is_reported_with_its_path(world: World) -> None:
    uuid = world.create("s", {"child": nested()}, files=DEEP)
    world.deliver_all()
    world.delete(child(world, "inner").uuid)
    world.deliver_all()
    check(world)
    assert world.state(uuid) == "CHECK_FAILED"
    reason = world.stack_row("s").status_reason
    assert "resources.child.resources.inner" in reason
    assert "its stack no longer exists" in reason.lower()
    repair(world, {"child": nested()}, files=DEEP)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    check(world)
    assert world.state(uuid) == "CHECK_COMPLETE"


def test_a_deleted_child_of_a_group_is_reported(world: World) -> None:
    uuid = world.create("s", {"g": group(2)})
    world.deliver_all()
    world.delete(child(world, "g").uuid)
    world.deliver_all()
    check(world)
    assert world.state(uuid) == "CHECK_FAILED"
    repair(world, {"g": group(2)})
    assert world.state(uuid) == "UPDATE_COMPLETE"
    rows = world.rows(
        "SELECT r.name FROM resource r JOIN stack c ON c.id = r.stack_id WHERE c.owner_id IS NOT NULL"
    )
    assert sorted(row.name for row in rows) == ["0", "1"]


def test_a_check_does_not_stop_the_delete_of_a_child(world: World, cloud: Cloud) -> None:
    files = {CHILD: text({"a": cloud_thing()})}
    uuid = world.create("s", {"child": nested()}, files=files)
    world.deliver_all()
    cloud.busy = True
    world.delete(child(world).uuid)
    deliver(world)
    assert child(world).state == "DELETE_IN_PROGRESS"
    world.act("s", "check")
    deliver(world)
    assert world.state(uuid) == "CHECK_FAILED"
    assert "its stack is being deleted" in world.stack_row("s").status_reason.lower()
    assert child(world).state == "DELETE_IN_PROGRESS"
    cloud.busy = False
    world.deliver_all()
    assert cloud.things == {}
    repair(world, {"child": nested()}, files=files)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(cloud.things) == 1
