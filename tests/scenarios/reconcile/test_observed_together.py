"""Operations that are due together are observed in one task, if a list shows all of them (adr/0022)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import ClassVar

import pytest

from orchestrator.engine.messages import CheckMessage
from orchestrator.operations.reconcile import batch
from orchestrator.operations.reconcile.check import check_external
from orchestrator.resources.base import Attribute, Context, Observation, Property
from tests.scenarios.fake_cloud import Cloud, Crash, Thing
from tests.scenarios.world import World, test_resource


class Listed(Thing):
    """A thing that a list shows while it is created or deleted."""

    name = "Cloud::Listed"
    lists = "things"
    properties: ClassVar = {**Thing.properties, "alone": Property("boolean", "Not in a list.", default=False)}
    attributes: ClassVar = {"value": Attribute("The text."), "seen": Attribute("Read alone.", live=True)}

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        if ctx.properties.get("alone"):
            ctx.calls.note_request("cloud")
        return super().observe(ctx, physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: Iterable[str]) -> dict[str, object]:
        ctx.calls.note_request("cloud")
        return {"seen": f"seen {ctx.name}"}


@pytest.fixture
def world(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types() | {Listed.name: Listed(cloud)})
    yield world
    world.close()


def deliver_together(world: World) -> list[int]:
    """Deliver all messages, those with a list together as the publisher does; return the sizes of these."""
    groups: dict[tuple[int, str], list[CheckMessage]] = defaultdict(list)
    for message in list(world.messages):
        if isinstance(message, CheckMessage) and message.shared_list:
            world.messages.remove(message)
            groups[message.traversal, message.shared_list].append(message)
    for (traversal, _), group in groups.items():
        ids = [message.node_id for message in group]
        world.messages += check_external(world.engine, ids, traversal)
    while any(not getattr(message, "shared_list", "") for message in world.messages):
        world.deliver()
    return [len(group) for group in groups.values()]


def thing(**properties: object) -> dict[str, object]:
    return {"type": Listed.name, "properties": {"looks": 1, **properties}}


def start(world: World, **resources: object) -> str:
    """Create a stack; its things are requested and not ready."""
    uuid = world.create("s", resources)
    deliver_together(world)
    return uuid


def test_operations_that_are_due_together_end_in_one_task(world: World, cloud: Cloud) -> None:
    local = test_resource(requires=["a", "b", "c"])
    uuid = start(world, a=thing(), b=thing(), c=thing(), after=local)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.sweep_once()
    assert deliver_together(world) == [3]
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1, "b": 1, "c": 1}
    assert cloud.looks.total() == 6


def test_deletes_are_observed_together(world: World, cloud: Cloud) -> None:
    uuid = start(world, a=thing(looks=0), b=thing(looks=0), c=thing(looks=0))
    cloud.on["delete"] = lambda ctx: cloud.things.update({f"kept {ctx.name}": ctx.token})
    world.delete("s")
    deliver_together(world)
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_an_object_that_needs_a_request_of_its_own_delays_no_other(world: World, cloud: Cloud) -> None:
    start(world, a=thing(), b=thing(alone=True), c=thing())
    world.sweep_once()
    messages = [message for message in world.messages if isinstance(message, CheckMessage)]
    before = list(cloud.calls)
    world.messages = check_external(world.engine, [m.node_id for m in messages], 1)
    assert sorted(cloud.calls[len(before) :]) == ["observe a", "observe c"]
    assert [(m.label, m.shared_list) for m in world.messages if isinstance(m, CheckMessage)] == [("b", "")]
    assert {row.name: row.lease for row in world.resources()} == {"a": None, "b": None, "c": None}
    world.deliver_all()
    assert cloud.made == {"a": 1, "b": 1, "c": 1}
    assert world.status("b") == "CREATE_COMPLETE"


def test_a_live_attribute_is_read_in_a_task_of_its_own(world: World, cloud: Cloud) -> None:
    start(world, a=thing(), b=thing(), after=test_resource({"get_attr": ["a", "seen"]}))
    world.sweep_once()
    assert deliver_together(world) == [2]
    world.deliver_all()
    [after] = world.resources("after")
    assert after.properties["value"] == "seen a"


def test_a_create_in_such_a_task_is_left_to_a_task_of_its_own(world: World, cloud: Cloud) -> None:
    uuid = world.create("s", {"a": thing(looks=0), "b": thing(looks=0)})
    while any(message.queue != "provider" for message in world.messages):  # type: ignore[union-attr]
        world.deliver()
    ids = [message.node_id for message in world.messages]  # type: ignore[union-attr]
    world.messages = list(check_external(world.engine, ids, 1))
    assert cloud.calls == []
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1, "b": 1}


def test_a_task_whose_time_is_over_leaves_the_others_to_tasks_of_their_own(
    world: World, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = start(world, a=thing(), b=thing(), c=thing())
    world.sweep_once()
    monkeypatch.setattr(batch, "TOGETHER_SECONDS", 0.0)
    before = len(cloud.calls)
    ids = [message.node_id for message in world.messages]  # type: ignore[union-attr]
    world.messages = list(check_external(world.engine, ids, 1))
    assert cloud.calls[before:] == ["observe a"]
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_operations_with_faults_are_observed_alone(world: World, cloud: Cloud) -> None:
    start(world, a=thing(looks=3), b=thing(looks=3), c=thing(looks=3))
    cloud.outage.add("observe")
    world.sweep_once()
    deliver_together(world)
    cloud.outage.clear()
    world.sweep_once()
    assert deliver_together(world) == []


def test_the_nodes_of_a_dead_worker_are_observed_alone(world: World, cloud: Cloud) -> None:
    uuid = start(world, a=thing(), b=thing(), c=thing())
    world.sweep_once()

    def die(_: Context) -> None:
        raise Crash

    cloud.on["observe"] = die
    with pytest.raises(Crash):
        deliver_together(world)
    del cloud.on["observe"]
    world.engine = world.new_engine()
    world.forget_leases()
    world.sweep_once()
    assert deliver_together(world) == []
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1, "b": 1, "c": 1}
