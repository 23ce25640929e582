"""An action of a parent stack does not end an operation that a user or a signal has started in a child stack
(operations/adr/0009).
"""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.trees import CHILD, child, deliver, nested, text
from tests.scenarios.world import World

UNFINISHED = 1_000


def machine(value: str, **options: Any) -> dict[str, Any]:
    return cloud_thing(type="Cloud::Machine", value=value, **options)


def updating_child(world: World, cloud: Cloud) -> str:
    """Return a complete stack whose child is in its own update."""
    uuid = world.create("s", {"child": nested()}, files={CHILD: text({"a": machine("1")})})
    world.deliver_all()
    world.update(child(world).name, {"a": machine("2", looks=UNFINISHED)})
    while world.messages:
        world.deliver()
    assert (world.state(uuid), child(world).state) == ("CREATE_COMPLETE", "UPDATE_IN_PROGRESS")
    cloud.calls.clear()
    return uuid


def finish(world: World, cloud: Cloud) -> None:
    for thing in cloud.looks:
        cloud.looks[thing] = UNFINISHED
    world.deliver_all()


def outcomes(world: World) -> list[str | None]:
    query = """SELECT v.outcome FROM revision v JOIN stack s ON s.id = v.stack_id
        WHERE s.owner_id IS NOT NULL ORDER BY v.number"""
    return [row.outcome for row in world.rows(query)]


@pytest.mark.parametrize("action", ["suspend", "snapshot"])
def test_an_action_waits_for_the_update_of_a_child(world: World, cloud: Cloud, action: str) -> None:
    uuid = updating_child(world, cloud)
    if action == "snapshot":
        world.messages += snapshots.take(world.context, world.stack_row("s"), Body(b"{}")).messages
    else:
        world.act("s", action)
    deliver(world)
    assert child(world).state == "UPDATE_IN_PROGRESS"
    assert world.state(uuid) == f"{action.upper()}_IN_PROGRESS"
    finish(world, cloud)
    assert (world.state(uuid), child(world).state) == (f"{action.upper()}_COMPLETE",) * 2
    assert outcomes(world) == ["complete", "complete"]
    assert world.resource("a").properties["value"] == "2"


def test_a_check_observes_the_resources_of_a_child_beside_its_update(world: World, cloud: Cloud) -> None:
    uuid = updating_child(world, cloud)
    world.act("s", "check")
    world.retry(3)
    assert world.state(uuid) == "CHECK_COMPLETE"
    assert child(world).state == "UPDATE_IN_PROGRESS"
    assert world.resource("child").status_reason == (
        "Its stack is UPDATE_IN_PROGRESS: its resources are observed beside it"
    )
    assert world.resource("a").observed == "not-ready"
    finish(world, cloud)
    assert (child(world).state, outcomes(world)) == ("UPDATE_COMPLETE", ["complete", "complete"])
