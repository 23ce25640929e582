"""A resource that waits for its child stack reports this, with the child's name as the next place to look."""

from __future__ import annotations

from typing import Any

import orjson

from orchestrator.operations.diagnosis.explain import Explanation, explain
from orchestrator.store.stacks import blockers
from tests.scenarios.world import World, test_resource

URL = "file:///child.yaml"


def nodes(world: World, name: str) -> dict[str, blockers.Unfinished]:
    page = blockers.unfinished(world.database, world.stack_row(name), None, 100)
    return {node.name: node for node in page.nodes}


def because(world: World, resource: str, name: str = "s") -> Explanation:
    return explain(nodes(world, name)[resource], world.stack_row(name), 5)


def at_rest(world: World) -> None:
    """Deliver all messages, without letting time pass."""
    while world.deliver():
        pass


def nested_in(world: World) -> Any:
    """Begin a stack whose child is at work; return the child's row."""
    endless = {"slow": test_resource("w", wait_secs=-1)}
    child = orjson.dumps({"heat_template_version": "2021-04-16", "resources": endless}).decode()
    after = test_resource(requires=["child"])
    world.create("s", {"child": {"type": URL}, "after": after}, files={URL: child})
    at_rest(world)
    [row] = world.rows("SELECT uuid::text, name FROM stack WHERE owner_id IS NOT NULL")
    return row


def test_a_node_that_waits_for_its_stack_names_it(world: World) -> None:
    child = nested_in(world)
    reported = because(world, "child")
    assert reported.word == "waiting-for-its-stack"
    assert reported.text.startswith("CREATE is in progress since ")
    assert reported.text.endswith(f": waits for its stack {child.name} (CREATE_IN_PROGRESS)")
    assert nodes(world, "s")["child"].child_uuid == child.uuid
    assert because(world, "after").text == "waits for child"
    assert because(world, "slow", child.name).word == "waiting-to-be-told"


def test_the_removal_of_a_nested_resource_waits_for_its_stack_too(world: World) -> None:
    child = nested_in(world)
    world.update("s", {"after": test_resource()})
    while world.stack_row(child.name).state != "DELETE_IN_PROGRESS":
        assert world.deliver()
    assert because(world, "child").text.endswith(f"waits for its stack {child.name} (DELETE_IN_PROGRESS)")
