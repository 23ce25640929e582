"""How deep and how large a tree of stacks may be: refused when it is asked for, and where it is made."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.errors import InvalidTemplate
from tests.scenarios.children.test_nested_stacks import URL, child_text, nested
from tests.scenarios.preview.test_preview_nested import OUTER, outer_text
from tests.scenarios.world import World, test_resource

SELF = "file:///self.yaml"
TOO_DEEP = "Request limit exceeded: Recursion depth exceeds "
TOO_MANY = "Request limit exceeded: Maximum resources per stack exceeded."


def allowed(world: World, **settings: Any) -> None:
    """Let the engine keep other limits than those by which stacks are accepted."""
    world.settings = world.settings.model_copy(update=settings)
    world.engine = world.new_engine()


def made_of_itself() -> dict[str, str]:
    text = {"heat_template_version": "2021-04-16", "resources": {"again": {"type": SELF}}}
    return {SELF: orjson.dumps(text).decode()}


def reason(world: World) -> str:
    return world.stack_row("s").status_reason


def test_a_template_that_includes_itself_is_refused(world: World) -> None:
    with pytest.raises(InvalidTemplate, match=f"{TOO_DEEP}10"):
        world.create("s", {"a": {"type": SELF}}, files=made_of_itself())
    assert world.rows("SELECT 1 FROM stack") == []


def test_excessive_depth_found_during_creation_fails_with_its_path(world: World) -> None:
    uuid = world.create("s", {"outer": {"type": OUTER}}, files={URL: child_text(), OUTER: outer_text()})
    allowed(world, max_nested_stack_depth=1)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert "resources.outer.resources.inner: " in reason(world)
    assert f"{TOO_DEEP}1." in reason(world)
    assert len(world.rows("SELECT 1 FROM stack")) == 2


def test_a_child_updated_by_itself_lies_as_deep_as_it_does(postgres_url: str) -> None:
    world = World(postgres_url, max_nested_stack_depth=1)
    try:
        world.create("s", {"child": nested()}, files={URL: child_text()})
        world.deliver_all()
        [child] = world.rows("SELECT name FROM stack WHERE owner_id IS NOT NULL")
        with pytest.raises(InvalidTemplate, match=f"{TOO_DEEP}1"):
            world.update(child.name, {"more": nested()}, files={URL: child_text()})
        world.update("s", {"child": nested("x")}, files={URL: child_text()})
        world.deliver_all()
        assert world.stack_row("s").state == "UPDATE_COMPLETE"
    finally:
        world.close()


def test_a_tree_with_too_many_resources_is_refused(postgres_url: str) -> None:
    world = World(postgres_url, max_resources_per_stack=7)
    try:
        two = {name: nested() for name in "ab"}
        with pytest.raises(InvalidTemplate, match=TOO_MANY):
            world.create("t", {**two, "c": nested()}, files={URL: child_text()})
        uuid = world.create("s", two, files={URL: child_text()})
        world.deliver_all()
        assert world.state(uuid) == "CREATE_COMPLETE"
    finally:
        world.close()


def test_excessive_resources_found_during_creation_fail_and_leave_no_child(world: World) -> None:
    uuid = world.create("s", {"a": nested(), "b": nested(requires=("a",))}, files={URL: child_text()})
    allowed(world, max_resources_per_stack=5)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert f"resources.b: {TOO_MANY}" in reason(world)
    assert len(world.rows("SELECT 1 FROM stack WHERE owner_id IS NOT NULL")) == 1


def test_a_child_that_is_changed_is_not_counted_twice(postgres_url: str) -> None:
    world = World(postgres_url, max_resources_per_stack=4)
    try:
        uuid = world.create("s", {"a": nested()}, files={URL: child_text()})
        world.deliver_all()
        world.update("s", {"a": nested("x")}, files={URL: child_text(more=test_resource())})
        world.deliver_all()
        assert world.state(uuid) == "UPDATE_COMPLETE", reason(world)
    finally:
        world.close()
