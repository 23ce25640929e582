"""Files of nested templates, and readers of trees for tests."""

from __future__ import annotations

from typing import Any

import orjson

from tests.scenarios.world import World

CHILD = "file:///child.yaml"


def text(resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> str:
    """Return a nested template with the parameter `value`."""
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": {"value": {"type": "string", "default": "v"}},
        "resources": resources,
        "outputs": {name: {"value": value} for name, value in (outputs or {}).items()},
    }
    return orjson.dumps(template).decode()


def nested(*requires: str, url: str = CHILD, **snippet: Any) -> dict[str, Any]:
    """A nested stack as a template has it; properties apart, all that is given is of the snippet."""
    value = snippet.pop("value", None)
    made: dict[str, Any] = {"type": url, **snippet}
    if value is not None:
        made["properties"] = {"value": value}
    return made | ({"depends_on": list(requires)} if requires else {})


def child(world: World, resource: str = "child") -> Any:
    """Return the youngest stack that stands, or stood, for a resource of that name."""
    query = """SELECT *, uuid::text AS uuid, action || '_' || status AS state FROM stack
        WHERE parent_resource = :r ORDER BY id DESC LIMIT 1"""
    return world.rows(query, r=resource)[0]


def node(world: World, label: str) -> Any:
    """Return the youngest node of that label."""
    query = """SELECT id, state, due_at = 'infinity' AS for_ever FROM graph_node WHERE label = :l
        ORDER BY id DESC LIMIT 1"""
    return world.rows(query, l=label)[0]


def deliver_until(world: World, label: str, state: str) -> None:
    """Deliver, oldest first, until the youngest node of that label is in a state."""
    for _ in range(200):
        rows = world.rows("SELECT state FROM graph_node WHERE label = :l ORDER BY id DESC LIMIT 1", l=label)
        if rows and rows[0].state == state:
            return
        assert world.messages, f"{label} is never {state}"
        world.deliver(1)
    raise AssertionError(f"{label} is never {state}")


def deliver(world: World) -> None:
    """Deliver all messages, and those that follow; no clock, no sweep."""
    while world.messages:
        world.deliver(1)
