"""Repairs in nested stacks cost as much as the damage, too (operations/adr/0019)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.scenarios.observation.test_repairs import BOX, Healer, healer

__all__ = ["healer"]  # a fixture

URL = "file:///inner.yaml"


def make(healer: Healer, resources: dict[str, Any], *, hidden: bool = False) -> Any:
    """Create a stack with a nested stack `inner`, observe it, and return the nested stack."""
    inner = {
        "heat_template_version": "2021-04-16",
        "parameters": {"P": {"type": "string", "default": "blue", "hidden": hidden}},
        "resources": {
            "a": BOX,
            "b": BOX,
            "c": {"type": "Shelf::Box", "properties": {"label": {"get_param": "P"}}},
        },
    }
    healer.world.create("s", resources, files={URL: orjson.dumps(inner).decode()})
    healer.deliver()
    healer.discover()
    healer.round()
    healer.policy("heal")
    [child] = child_of(healer)
    return child


def child_of(healer: Healer) -> list[Any]:
    return healer.world.rows("SELECT id, traversal FROM stack WHERE owner_id IS NOT NULL")


def visited(healer: Healer) -> list[str]:
    """Return the resources that the last traversal of the nested stack has visited."""
    [child] = child_of(healer)
    nodes = healer.world.nodes(stack_id=child.id, traversal=child.traversal)
    return sorted(node.label for node in nodes if node.kind == "update")


def revisions(healer: Healer, child: Any) -> int:
    return len(healer.world.rows("SELECT 1 FROM revision WHERE stack_id = :id", id=child.id))


@pytest.mark.parametrize("hidden", [False, True])
def test_the_repair_of_a_nested_stack_visits_the_damage_only(healer: Healer, hidden: bool):
    resources = {"inner": {"type": URL, "properties": {"P": "green"}}}
    child = make(healer, resources, hidden=hidden)
    healer.remove("a")
    healer.round()
    healer.shelf.calls.clear()
    assert healer.heal() == [("a", "recreate", "started")]
    assert healer.settle() == [("a", "recreate", "done")]
    assert visited(healer) == ["a"]
    assert revisions(healer, child) == 1
    assert f"get {healer.id('b')}" not in healer.shelf.calls


def test_a_repair_that_changes_the_input_of_a_nested_stack_updates_it(healer: Healer):
    inner = {"type": URL, "properties": {"P": {"get_resource": "outer"}}}
    child = make(healer, {"outer": BOX, "inner": inner})
    healer.remove("outer")
    healer.round()
    assert healer.heal() == [("outer", "recreate", "started")]
    assert visited(healer) == ["c"]
    assert healer.shelf.objects[healer.id("c")]["label"] == healer.id("outer")
    assert revisions(healer, child) == 2


def test_a_nested_stack_that_others_changed_gets_the_content_of_its_parent(healer: Healer):
    child = make(healer, {"inner": {"type": URL, "properties": {"P": "green"}}})
    [row] = healer.world.rows("SELECT uuid::text AS uuid FROM stack WHERE id = :id", id=child.id)
    healer.world.patch(row.uuid, parameters={"P": "red"})
    healer.deliver()
    assert healer.shelf.objects[healer.id("c")]["label"] == "red"
    healer.remove("a")
    healer.round()
    assert ("a", "recreate", "started") in healer.heal()
    assert healer.shelf.objects[healer.id("c")]["label"] == "green"
