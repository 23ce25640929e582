"""Operations of an older traversal are continued to their end, also by a traversal that failed before."""

from __future__ import annotations

from orchestrator.errors import ProviderBusy
from orchestrator.resources.base import Context
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World


def audit(world: World) -> None:
    """Let it be time for the next audit, and everything come to rest after it."""
    world.audit_soon()
    world.sweep_once()
    world.deliver_all()


def open_ends(world: World) -> list[str]:
    return [row.name for row in world.rows("SELECT name FROM resource WHERE op IS NOT NULL")]


def test_a_failed_update_continues_the_operations_of_an_earlier_create(world: World, cloud: Cloud):
    uuid = world.create("s", {"b": cloud_thing(looks=8)})
    world.deliver(2)
    assert open_ends(world) == ["b"]
    bad = cloud_thing(errors=99, final=True)
    world.update("s", {"x": bad, "b": cloud_thing(("x",), looks=8)})
    world.deliver_all()
    audit(world)
    assert world.state(uuid) == "UPDATE_FAILED"
    assert open_ends(world) == []
    assert cloud.made == {"b": 1, "x": 1}
    world.update("s", {"b": cloud_thing(looks=8)})
    world.deliver_all()
    assert (world.state(uuid), list(cloud.things)) == ("UPDATE_COMPLETE", ["b-1"])


def test_a_cancelled_update_does_so_too(world: World, cloud: Cloud):
    uuid = world.create("s", {"b": cloud_thing(looks=1)})
    world.deliver(2)
    world.update("s", {"x": cloud_thing(looks=8), "b": cloud_thing(("x",), looks=1)})
    world.deliver(1)
    world.act("s", "cancel_without_rollback")
    world.deliver_all()
    assert (world.state(uuid), open_ends(world)) == ("UPDATE_FAILED", [])
    assert cloud.made == {"b": 1}


def test_a_removal_that_an_update_began_is_followed_as_a_removal_by_a_failed_suspend(
    world: World, cloud: Cloud
):
    machine = cloud_thing(type="Cloud::Machine")
    uuid = world.create("s", {"a": machine, "x": cloud_thing()})
    world.deliver_all()
    reluctant = [True] * 3

    def refuse(_ctx: Context) -> None:
        if reluctant:
            reluctant.pop()
            raise ProviderBusy("not yet")

    cloud.on["delete"] = refuse

    def fail(_ctx: Context) -> None:
        raise RuntimeError("no")

    cloud.on["suspend"] = fail
    world.update("s", {"a": machine})
    world.deliver(2)
    assert open_ends(world) == ["x"]
    world.act("s", "cancel_without_rollback")
    world.act("s", "suspend")
    world.deliver_all()
    audit(world)
    assert (world.state(uuid), open_ends(world)) == ("SUSPEND_FAILED", [])
    assert list(cloud.things) == ["a-1"]
    assert not [event for event in world.events(uuid) if event.startswith("x SUSPEND")]
    assert world.rows("SELECT 1 FROM resource WHERE name = 'x'") == []
