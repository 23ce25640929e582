"""A tree of stacks: each child its own stack, made, changed, stopped and removed by its own tasks."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.operations.adoption.export import shown_environment
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.revisions import desired
from tests.scenarios.world import World, test_resource

URL = "file:///child.yaml"
OTHER = "file:///other.yaml"


def child_text(value: str = "v", fail: bool = False, **options: Any) -> str:
    """A template with a parameter, two resources and an output."""
    return orjson.dumps(
        {
            "heat_template_version": "2021-04-16",
            "parameters": {"size": {"type": "string", "default": "small"}},
            "resources": {
                "first": test_resource(value, fail=fail),
                "second": test_resource({"get_param": "size"}, requires=["first"]),
                **options,
            },
            "outputs": {"size": {"value": {"get_attr": ["second", "output"]}}},
        }
    ).decode()


def nested(size: Any = "large", requires: tuple[str, ...] = ()) -> dict[str, Any]:
    snippet: dict[str, Any] = {"type": URL, "properties": {"size": size}}
    if requires:
        snippet["depends_on"] = list(requires)
    return snippet


def stacks_below(world: World, name: str) -> list[Any]:
    return world.rows(
        """SELECT c.name, c.uuid::text, c.action || '_' || c.status AS state, c.status_reason, c.depth,
            c.deleted_at, c.traversal
        FROM stack c JOIN stack r ON r.id = c.root_id WHERE r.name = :n AND c.id <> r.id ORDER BY c.id""",
        n=name,
    )


def test_a_child_is_made_by_tasks_of_its_own(world: World) -> None:
    uuid = world.create(
        "s",
        {"child": nested(), "after": test_resource({"get_attr": ["child", "size"]})},
        files={URL: child_text()},
        outputs={"id": {"value": {"get_resource": "child"}}},
    )
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    [child] = stacks_below(world, "s")
    assert child.state == "CREATE_COMPLETE"
    assert child.depth == 1
    assert child.name.startswith("s-child-")
    [row] = world.rows("SELECT physical_id, properties FROM resource WHERE name = 'child'")
    assert row.physical_id == child.uuid
    assert world.outputs("s")["id"] == f"arn:openstack:heat::p1:stacks/{child.name}/{child.uuid}"
    [after] = world.rows("SELECT properties->>'value' AS value FROM resource WHERE name = 'after'")
    assert after.value == "large"
    assert world.events(uuid) == [
        "s CREATE_IN_PROGRESS",
        "child CREATE_IN_PROGRESS",
        "child CREATE_COMPLETE",
        "after CREATE_IN_PROGRESS",
        "after CREATE_COMPLETE",
        "s CREATE_COMPLETE",
    ]


def test_a_parent_is_not_visited_while_its_child_is_created(world: World) -> None:
    uuid = world.create(
        "s", {"child": nested()}, files={URL: child_text(slow=test_resource("w", wait_secs=-1))}
    )
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    [node] = world.rows("SELECT state, due_at = 'infinity' AS for_ever FROM graph_node WHERE label = 'child'")
    assert (node.state, node.for_ever) == ("waiting", True)


def test_a_changed_property_updates_the_child_and_nothing_else(world: World) -> None:
    uuid = world.create("s", {"child": nested(), "other": nested("x")}, files={URL: child_text()})
    world.deliver_all()
    before = {row.name: row.traversal for row in stacks_below(world, "s")}
    world.update("s", {"child": nested("huge"), "other": nested("x")}, files={URL: child_text()})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    after = {row.name: row.traversal for row in stacks_below(world, "s")}
    assert sorted(after[name] - before[name] for name in before) == [0, 1]
    values = world.rows("SELECT properties->>'value' AS v FROM resource WHERE name = 'second'")
    assert sorted(row.v for row in values) == ["huge", "x"]


def test_an_attribute_of_a_nested_resource_can_be_requested_by_path_or_by_name(world: World) -> None:
    requests = {
        "path": ["child", "resource.second", "output"],
        "name": ["child", "resource.second.output"],
        "whole": ["child", "resource.second"],
        "none": ["child", "resource.second", "nothing"],
    }
    outputs = {name: {"value": {"get_attr": path}} for name, path in requests.items()}
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()}, outputs=outputs)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    [inside] = world.rows("SELECT physical_id FROM resource WHERE name = 'second'")
    assert world.outputs("s") == {
        "path": "large",
        "name": "large",
        "whole": inside.physical_id,
        "none": None,
    }


def test_a_parameter_that_a_template_lost_changes_the_child_in_place(world: World) -> None:
    def text(*names: str) -> str:
        parameters = {name: {"type": "string"} for name in names}
        return orjson.dumps({"heat_template_version": "2021-04-16", "parameters": parameters}).decode()

    def child(**properties: str) -> dict[str, Any]:
        return {"child": {"type": URL, "properties": properties}}

    uuid = world.create("s", child(one="1", two="2"), files={URL: text("one", "two")})
    world.deliver_all()
    before = world.rows("SELECT physical_id FROM resource")
    world.update("s", child(one="1"), files={URL: text("one")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.rows("SELECT physical_id FROM resource") == before


def test_a_changed_file_updates_the_children_made_from_it(world: World) -> None:
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()})
    world.deliver_all()
    world.update("s", {"child": nested()}, files={URL: child_text("new")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [first] = world.rows("SELECT properties->>'value' AS v FROM resource WHERE name = 'first'")
    assert first.v == "new"
    assert [row.state for row in stacks_below(world, "s")] == ["UPDATE_COMPLETE"]


@pytest.mark.parametrize("registered", [True, False])
def test_a_different_template_updates_the_child_in_place(world: World, registered: bool) -> None:
    def asked(url: str, value: str) -> dict[str, Any]:
        kind = "My::Part" if registered else url
        request: dict[str, Any] = {"resources": {"child": {"type": kind}}, "files": {url: child_text(value)}}
        if registered:
            request["environment"] = {"resource_registry": {"My::Part": url}}
        return request

    things = "SELECT name, physical_id FROM resource ORDER BY name"
    uuid = world.create("s", **asked(URL, "old"))
    world.deliver_all()
    before = world.rows(things)
    for url, value in ((OTHER, "new"), (URL, "old again")):
        world.update("s", **asked(url, value))
        world.deliver_all()
        assert world.state(uuid) == "UPDATE_COMPLETE"
        assert world.rows(things) == before
        [first] = world.rows("SELECT properties->>'value' AS v FROM resource WHERE name = 'first'")
        assert first.v == value
        [child] = world.rows("SELECT type, runs_as FROM resource WHERE name = 'child'")
        assert (child.type, child.runs_as) == (("My::Part", url) if registered else (url, None))
    assert [row.state for row in stacks_below(world, "s")] == ["UPDATE_COMPLETE"]


def test_another_template_that_fails_goes_back_in_place_too(world: World) -> None:
    uuid = world.create("s", {"child": {"type": URL}}, files={URL: child_text()})
    world.deliver_all()
    before = world.rows("SELECT name, physical_id, type, runs_as FROM resource ORDER BY name")
    files = {OTHER: child_text("new", fail=True)}
    world.update("s", {"child": {"type": OTHER}}, files=files, disable_rollback=False)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    after = world.rows("SELECT name, physical_id, type, runs_as FROM resource ORDER BY name")
    assert [row for row in after if row.name != "first"] == [row for row in before if row.name != "first"]
    assert [row.state for row in stacks_below(world, "s")] == ["UPDATE_COMPLETE"]


@pytest.mark.parametrize("back", [True, False])
def test_a_template_and_another_kind_of_type_replace_each_other(world: World, back: bool) -> None:
    nest, plain = ({"child": {"type": URL}}, {URL: child_text()}), ({"child": test_resource()}, {})
    (first, files), (second, other_items) = (plain, nest) if back else (nest, plain)
    uuid = world.create("s", first, files=files)
    world.deliver_all()
    world.update("s", second, files=other_items)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert [row.deleted_at is None for row in stacks_below(world, "s")] == [back]


def test_a_failure_is_reported_upwards_as_a_flat_path(world: World) -> None:
    outer = orjson.dumps(
        {"heat_template_version": "2021-04-16", "resources": {"inner": {"type": URL}}}
    ).decode()
    uuid = world.create(
        "s",
        {"outer": {"type": "file:///outer.yaml"}},
        files={URL: child_text(fail=True), "file:///outer.yaml": outer},
    )
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [row] = world.rows("SELECT status_reason FROM stack WHERE uuid = :u", u=uuid)
    expected = "ValueError: resources.outer.resources.inner.resources.first: Test Resource failed first"
    assert row.status_reason == f"Resource CREATE failed: {expected}"


def test_every_cause_in_a_child_is_reported(world: World) -> None:
    additional = {f"bad{n}": test_resource("x", fail=True) for n in range(3)}
    uuid = world.create("s", {"child": nested()}, files={URL: child_text(**additional)}, keep_going=True)
    world.deliver_all()
    reasons = [
        row.reason
        for row in world.rows(
            "SELECT reason FROM failure f JOIN stack s ON s.id = f.stack_id WHERE s.uuid = :u", u=uuid
        )
    ]
    assert len(reasons) == 3
    assert all(reason.startswith("ValueError: resources.child.resources.bad") for reason in reasons)


def test_deleting_the_stack_deletes_the_child_first(world: World) -> None:
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()})
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    [child] = stacks_below(world, "s")
    assert child.state == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []


def test_a_delete_goes_over_a_child_that_is_being_made(world: World) -> None:
    uuid = world.create(
        "s", {"child": nested()}, files={URL: child_text(slow=test_resource("w", wait_secs=-1))}
    )
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert [row.state for row in stacks_below(world, "s")] == ["DELETE_COMPLETE"]


def test_a_newer_template_goes_over_a_child_that_is_being_made(world: World) -> None:
    slow = {"slow": test_resource("w", wait_secs=-1)}
    uuid = world.create("s", {"child": nested()}, files={URL: child_text(**slow)})
    world.deliver_all()
    world.update("s", {"child": nested("tiny")}, files={URL: child_text()})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [child] = stacks_below(world, "s")
    assert child.state == "UPDATE_COMPLETE"
    assert world.outputs("s") == {}
    [second] = world.rows("SELECT properties->>'value' AS v FROM resource WHERE name = 'second'")
    assert second.v == "tiny"


def test_rollback_goes_down_the_tree(world: World) -> None:
    uuid = world.create(
        "s", {"child": nested(), "b": test_resource()}, files={URL: child_text()}, disable_rollback=False
    )
    world.deliver_all()
    world.update(
        "s",
        {"child": nested("huge"), "b": test_resource("w", fail=True, requires=["child"])},
        files={URL: child_text("w")},
        disable_rollback=False,
    )
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    rows = world.rows(
        "SELECT name, properties->>'value' AS v FROM resource WHERE name IN ('first', 'second')"
    )
    assert {row.name: row.v for row in rows} == {"first": "v", "second": "large"}


@pytest.mark.parametrize("action", ["suspend", "check"])
def test_actions_go_down_the_tree(world: World, action: str) -> None:
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()})
    world.deliver_all()
    world.act("s", action)
    world.deliver_all()
    assert world.state(uuid) == f"{action.upper()}_COMPLETE"
    assert [row.state for row in stacks_below(world, "s")] == [f"{action.upper()}_COMPLETE"]
    if action == "suspend":
        world.act("s", "resume")
        world.deliver_all()
        assert world.state(uuid) == "RESUME_COMPLETE"
        assert [row.state for row in stacks_below(world, "s")] == ["RESUME_COMPLETE"]


def test_a_cancelled_stack_stops_its_children(world: World) -> None:
    slow = {"slow": test_resource("w", wait_secs=5), "later": test_resource("w", requires=["slow"])}
    uuid = world.create("s", {"child": nested()}, files={URL: child_text(**slow)})
    for _ in range(12):
        world.deliver()
    world.act("s", "cancel_without_rollback")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [child] = stacks_below(world, "s")
    assert child.state == "CREATE_FAILED"
    [later] = world.rows("SELECT action FROM resource WHERE name = 'later'")
    assert later.action == "INIT"


def test_a_child_that_was_changed_directly_is_repaired_by_the_next_update(world: World) -> None:
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()})
    world.deliver_all()
    [child] = stacks_below(world, "s")
    world.mark(child.uuid, "first")
    world.update("s", {"child": nested()}, files={URL: child_text()})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    firsts = world.rows("SELECT status, deposed FROM resource WHERE name = 'first'")
    assert [(row.status, row.deposed) for row in firsts] == [("COMPLETE", False)]


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_ends_the_same_in_any_order_of_messages(world: World, seed: int) -> None:
    world.random.seed(seed)
    children = {f"c{n}": nested(f"size{n}", requires=(f"c{n - 1}",) if n % 2 else ()) for n in range(6)}
    uuid = world.create("s", children, files={URL: child_text()})
    world.deliver_all(shuffle=True, repeat=0.2, lose=0.1)
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.update("s", {**children, "c0": nested("other")}, files={URL: child_text("w")})
    world.deliver(world.random.randrange(30))
    world.update("s", {name: children[name] for name in list(children)[:4]}, files={URL: child_text("x")})
    world.deliver_all(shuffle=True, repeat=0.2, lose=0.1)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    live = [row for row in stacks_below(world, "s") if row.deleted_at is None]
    assert len(live) == 4
    values = world.rows("SELECT properties->>'value' AS v FROM resource WHERE name = 'first'")
    assert [row.v for row in values] == ["x"] * 4
    sizes = world.rows("SELECT properties->>'value' AS v FROM resource WHERE name = 'second'")
    assert sorted(row.v for row in sizes) == ["size0", "size1", "size2", "size3"]


def test_a_type_that_is_a_template_is_shown_as_mapped_to_itself_and_may_be_sent_so(world: World) -> None:
    world.create("s", {"child": nested(), "plain": test_resource()}, files={URL: child_text()})
    world.deliver_all()
    stack = world.stack_row("s")
    revision = desired(world.database, stack)
    assert revision is not None
    environment = shown_environment(revision)
    assert environment["resource_registry"] == {URL: URL, "resources": {}}
    before = stacks_below(world, "s")
    world.update("s", {"child": nested(), "plain": test_resource()}, files={URL: child_text()},
                 environment=environment)  # fmt: skip
    world.deliver_all()
    assert world.state(str(stack.uuid)) == "UPDATE_COMPLETE"
    assert [(item.uuid, item.traversal) for item in stacks_below(world, "s")] == [
        (item.uuid, item.traversal) for item in before
    ]
    [child] = world.rows("SELECT id FROM stack WHERE owner_id IS NOT NULL")
    row = stacks.by_ids(world.database, {child.id})[child.id]
    inner = desired(world.database, row)
    assert inner is not None
    assert URL not in shown_environment(inner)["resource_registry"]
