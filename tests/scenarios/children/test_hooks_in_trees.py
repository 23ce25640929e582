"""Hooks by the path of a resource: set in the environment of the root, cleared where the resource is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.children.test_nested_stacks import URL, child_text, nested
from tests.scenarios.preview.test_preview_nested import OUTER, outer_text
from tests.scenarios.world import World


def hooked(*path: str, hook: str) -> dict[str, Any]:
    """An environment that sets a hook for the resource at the end of a path."""
    entry: dict[str, Any] = {"hooks": hook}
    for name in reversed(path):
        entry = {name: entry}
    return {"resource_registry": {"resources": entry}}


def stack_of(world: World, resource: str) -> str:
    """Return the name of the live stack that a resource stands for."""
    [row] = world.rows("SELECT name FROM stack WHERE parent_resource = :r AND deleted_at IS NULL", r=resource)
    return str(row.name)


def test_a_hook_in_a_child_pauses_that_resource_and_the_stacks_around_wait(world: World) -> None:
    environment = hooked("child", "second", hook="pre-create")
    uuid = world.create(
        "s", {"child": nested(), "other": nested()}, files={URL: child_text()}, environment=environment
    )
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    child = stack_of(world, "child")
    assert world.paused(child) == [("second", "pre-create")]
    assert world.paused("s") == []
    assert world.stack_row(stack_of(world, "other")).state == "CREATE_COMPLETE"
    [reported] = world.event_reasons(str(world.stack_row(child).uuid), "second")
    assert reported.endswith("CREATE paused until Hook pre-create is cleared")
    world.clear(child, "second", "pre-create")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


@pytest.mark.parametrize("path", [("outer", "inner", "first"), ("out*", "inner", "fir*")])
def test_a_hook_reaches_as_deep_as_its_path(world: World, path: tuple[str, ...]) -> None:
    uuid = world.create(
        "s",
        {"outer": {"type": OUTER}},
        files={URL: child_text(), OUTER: outer_text()},
        environment=hooked(*path, hook="post-create"),
    )
    world.deliver_all()
    assert world.paused(stack_of(world, "inner")) == [("first", "post-create")]
    world.clear(stack_of(world, "inner"), "first", "post-create")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_hook_of_an_update_in_a_child_is_come_to(world: World) -> None:
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()})
    world.deliver_all()
    environment = hooked("child", "first", hook="pre-update")
    world.update("s", {"child": nested()}, files={URL: child_text("w")}, environment=environment)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    child = stack_of(world, "child")
    assert world.paused(child) == [("first", "pre-update")]
    world.clear(child, "first", "pre-update")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [first] = world.rows("SELECT properties->>'value' AS v FROM resource WHERE name = 'first'")
    assert first.v == "w"


def test_a_hook_in_a_child_holds_up_its_removal(world: World) -> None:
    environment = hooked("child", "first", hook="pre-delete")
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()}, environment=environment)
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    child = stack_of(world, "child")
    assert world.paused(child) == [("first", "pre-delete")]
    world.clear(child, "first", "pre-delete")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


@pytest.mark.parametrize("hook", ["pre-create", "post-create"])
def test_the_resource_that_stands_for_a_stack_pauses_itself(world: World, hook: str) -> None:
    uuid = world.create(
        "s", {"child": nested()}, files={URL: child_text()}, environment=hooked("child", hook=hook)
    )
    world.deliver_all()
    assert world.paused("s") == [("child", hook)]
    made = world.rows("SELECT 1 FROM stack WHERE owner_id IS NOT NULL AND status = 'COMPLETE'")
    assert len(made) == (0 if hook == "pre-create" else 1)
    world.clear("s", "child", hook)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_newer_template_without_the_hook_goes_on(world: World) -> None:
    environment = hooked("child", "second", hook="pre-create")
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()}, environment=environment)
    world.deliver_all()
    world.update("s", {"child": nested()}, files={URL: child_text()})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.stack_row(stack_of(world, "child")).state == "UPDATE_COMPLETE"
