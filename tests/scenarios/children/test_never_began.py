"""Resources that never began have nothing to delete: neither their type nor their template is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.operations.adoption import adopt_abandon
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from orchestrator.store.stacks import stacks
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.groups.test_groups import group
from tests.scenarios.trees import deliver_until, nested, text
from tests.scenarios.world import World, test_resource

INNER = {"a": test_resource("a")}
RESOURCES: dict[str, dict[str, Any]] = {
    "relative": nested("slow", url="kid.yaml"),
    "bare": nested("slow", url="x.template"),
    "url": nested("slow", url="file:///kid.yaml"),
    "alias": {"type": "My::Kid", "depends_on": "slow"},
    "group": group(2, resource_def={"type": "kid.yaml"}) | {"depends_on": "slow"},
    "scaled": {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 2, "resource": {"type": "kid.yaml"}},
        "depends_on": "slow",
    },
    "uninstalled": cloud_thing(("slow",), type="Cloud::Bell"),
    "builtin": test_resource("b", ("slow",)),
}


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    """An installation that can abandon stacks."""
    made = World(postgres_url, types=cloud.types(), enable_stack_abandon=True)
    yield made
    made.close()


def cancel(world: World) -> None:
    world.act("s", "cancel_without_rollback")
    world.deliver_all()


def suspend(world: World) -> None:
    cancel(world)
    world.act("s", "suspend")
    world.deliver_all()


def resume(world: World) -> None:
    suspend(world)
    world.act("s", "resume")
    world.deliver_all()


def check(world: World) -> None:
    cancel(world)
    world.act("s", "check")
    world.deliver_all()


def snapshot(world: World) -> None:
    cancel(world)
    world.messages += snapshots.take(world.context, world.stack_row("s"), Body(b"{}")).messages
    world.deliver_all()


def update_to_nothing(world: World) -> None:
    world.update("s", {"slow": cloud_thing(looks=50)})


STATES: dict[str, Callable[[World], None]] = {
    "in progress": lambda world: None,
    "cancelled": cancel,
    "suspended": suspend,
    "resumed": resume,
    "checked": check,
    "snapshot": snapshot,
    "removed by an update": update_to_nothing,
}


def begun(world: World, name: str) -> None:
    """Create the stack; the resource waits for another one, which is never ready."""
    world.create(
        "s",
        {"slow": cloud_thing(looks=50), "kid": RESOURCES[name]},
        files={"kid.yaml": text(INNER), "x.template": text(INNER), "file:///kid.yaml": text(INNER)},
        environment={"resource_registry": {"My::Kid": "kid.yaml"}},
    )
    deliver_until(world, "slow", "waiting")
    assert world.resource("kid").action == "INIT"
    if name == "uninstalled":
        uninstall(world)


def uninstall(world: World, name: str = "Cloud::Bell") -> None:
    del world.types._kinds[name]
    world.engine = world.new_engine()


CASES = [
    *((name, "suspended", True) for name in RESOURCES),
    *((name, state, False) for name in ("relative", "uninstalled") for state in STATES),
    ("relative", "in progress", True),
    ("uninstalled", "in progress", True),
]


@pytest.mark.parametrize(("name", "state", "marked"), CASES)
def test_a_stack_is_deleted_with_a_resource_that_never_began(
    world: World, name: str, state: str, marked: bool
) -> None:
    begun(world, name)
    if marked:
        world.mark("s", "kid")
    STATES[state](world)
    assert "not be found" not in world.stack_row("s").status_reason
    world.delete("s")
    world.deliver_all()
    assert stacks.find(world.database, world.caller.project_id, "s") is None


@pytest.mark.parametrize("name", ["relative", "uninstalled"])
def test_a_stack_is_abandoned_with_a_resource_that_never_began(world: World, name: str) -> None:
    begun(world, name)
    world.mark("s", "kid")
    cancel(world)
    abandoned = adopt_abandon.abandon(world.context, world.stack_row("s"))
    abandoned.document.close()
    world.messages += abandoned.messages
    world.deliver_all()
    assert stacks.find(world.database, world.caller.project_id, "s") is None


def test_a_stack_is_abandoned_with_an_object_of_an_uninstalled_type(world: World) -> None:
    world.create("s", {"bell": cloud_thing(type="Cloud::Bell")})
    world.deliver_all()
    uninstall(world)
    abandoned = adopt_abandon.abandon(world.context, world.stack_row("s"))
    abandoned.document.close()
    world.messages += abandoned.messages
    world.deliver_all()
    assert stacks.find(world.database, world.caller.project_id, "s") is None


def test_an_object_of_an_uninstalled_type_is_not_forgotten(world: World) -> None:
    uuid = world.create("s", {"thing": cloud_thing()})
    world.deliver_all()
    uninstall(world, "Cloud::Thing")
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_FAILED"
    assert "Cloud::Thing" in world.stack_row("s").status_reason
