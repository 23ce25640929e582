"""A replaced object gives up what its replacement needs, and takes it back in a rollback
(orchestrator/operations/adr/0013).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator


@pytest.fixture(scope="module")
def kept_world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


@pytest.fixture
def world(kept_world: Simulator) -> Simulator:
    kept_world.reset(1)
    return kept_world


def docked(version: str, **properties: Any) -> dict[str, Any]:
    return thing(type="Sim::Docked", a=version, dock="pier", **properties)


def holder(world: Simulator) -> list[str]:
    """Return the ids of the things at the dock."""
    return [item.id for item in world.provider.things.values() if item.dock == "pier"]


def requests(world: Simulator) -> list[tuple[str, str]]:
    return [(verb, id_) for verb, _, id_ in world.provider.log]


def came_to_rest(world: Simulator, uuid: str, state: str, resources: dict[str, Any]) -> None:
    world.rest()
    assert world.state(uuid) == state
    world.verify(resources)


@pytest.mark.parametrize("looks", [0, 2])
def test_a_replaced_object_releases_before_its_replacement_is_created(world: Simulator, looks: int) -> None:
    uuid = world.create("s", {"x": docked("1", looks=looks)})
    came_to_rest(world, uuid, "CREATE_COMPLETE", {"x": docked("1", looks=looks)})
    world.update("s", {"x": docked("2", looks=looks)})
    came_to_rest(world, uuid, "UPDATE_COMPLETE", {"x": docked("2", looks=looks)})
    assert requests(world) == [("create", "x-1"), ("release", "x-1"), ("create", "x-2"), ("delete", "x-1")]
    assert holder(world) == ["x-2"]


def test_the_mark_is_on_disk_before_the_release_is_requested(world: Simulator) -> None:
    world.create("s", {"x": docked("1")})
    world.rest()
    seen: list[Any] = []

    def look(verb: str, _ctx: Any) -> None:
        if verb == "release":
            seen.extend(row.released for row in world.resources("x"))

    world.provider.meanwhile = look
    world.update("s", {"x": docked("2")})
    world.rest()
    assert seen == [False, None]  # the old incarnation, the new


def test_a_rollback_returns_what_was_released(world: Simulator) -> None:
    first = {"x": docked("1"), "y": thing(on=[{"get_resource": "x"}])}
    uuid = world.create("s", first, disable_rollback=False)
    world.rest()
    world.provider.fate = lambda verb, ctx: "refused" if (verb, ctx.name) == ("create", "z") else "done"
    second = {"x": docked("2"), "y": first["y"], "z": thing("y")}
    world.update("s", second, disable_rollback=False)
    world.rest()
    world.provider.fate = world.fate
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    world.verify(first)
    [old] = holder(world)
    assert old == world.ids()["x"]
    released = [id_ for verb, id_ in requests(world) if verb == "release"]
    assert released[0] == old
    assert released[1:] == [id_ for verb, id_ in requests(world) if verb == "create" and id_[0] == "x"][1:]
    assert world.resource("x").released is None


def test_a_refused_replacement_is_rolled_back(world: Simulator) -> None:
    uuid = world.create("s", {"x": docked("1")}, disable_rollback=False)
    world.rest()
    world.provider.fate = lambda verb, ctx: "refused" if verb == "create" else "done"
    world.update("s", {"x": docked("2")}, disable_rollback=False)
    world.rest()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert holder(world) == ["x-1"]


def test_the_next_update_returns_what_a_failed_update_released(world: Simulator) -> None:
    uuid = world.create("s", {"x": docked("1")})
    world.rest()
    world.provider.fate = lambda verb, ctx: "refused" if verb == "create" else "done"
    world.update("s", {"x": docked("2")})
    world.rest()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert holder(world) == []
    world.provider.fate = world.fate
    world.update("s", {"x": docked("1")})
    came_to_rest(world, uuid, "UPDATE_COMPLETE", {"x": docked("1")})
    assert holder(world) == ["x-1"]


def test_an_update_during_the_release_returns_what_was_released(world: Simulator) -> None:
    uuid = world.create("s", {"x": docked("1")})
    world.rest()

    def change_back(verb: str, _ctx: Any) -> None:
        if verb == "release":
            world.provider.meanwhile = lambda verb, ctx: None
            world.update("s", {"x": docked("1")})

    world.provider.meanwhile = change_back
    world.update("s", {"x": docked("2")})
    came_to_rest(world, uuid, "UPDATE_COMPLETE", {"x": docked("1")})
    assert holder(world) == ["x-1"]
    assert ("create", "x-2") not in requests(world)


def test_a_refused_release_fails_the_replacement_and_the_object_stays(world: Simulator) -> None:
    uuid = world.create("s", {"x": docked("1")}, disable_rollback=False)
    world.rest()
    world.provider.fate = lambda verb, ctx: "refused" if verb == "release" else "done"
    world.update("s", {"x": docked("2")}, disable_rollback=False)
    world.rest()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert holder(world) == ["x-1"]
    assert "resources.x: it is not allowed" in world.rows("SELECT reason FROM failure")[0].reason


def test_a_released_object_is_deleted_with_its_stack(world: Simulator) -> None:
    uuid = world.create("s", {"x": docked("1")})
    world.rest()
    world.provider.fate = lambda verb, ctx: "refused" if verb == "create" else "done"
    world.update("s", {"x": docked("2")})
    world.rest()
    world.provider.fate = world.fate
    world.delete("s")
    came_to_rest(world, uuid, "DELETE_COMPLETE", {})


def test_a_failed_replacement_releases_before_the_next(world: Simulator) -> None:
    uuid = world.create("s", {"x": docked("1")})
    world.rest()
    world.provider.fate = lambda verb, ctx: "dead" if verb == "create" else "done"
    world.update("s", {"x": docked("2", looks=3)})
    world.rest()
    assert world.state(uuid) == "UPDATE_FAILED"
    world.provider.fate = world.fate
    world.update("s", {"x": docked("3")})
    came_to_rest(world, uuid, "UPDATE_COMPLETE", {"x": docked("3")})
    assert len(holder(world)) == 1


FIRST = {"x": docked("1"), "y": thing("x", on=[{"get_resource": "x"}])}
SECOND = {"x": docked("2", looks=1), "y": FIRST["y"]}
THIRD = {"x": docked("3"), "y": FIRST["y"]}
PARTS = 8


def live(world: Simulator, crash_at: int | None) -> None:
    """Create, replace, cancel another replacement, delete; with a death at any moment."""
    world.reset(1)
    world.crash_at = crash_at
    uuid = world.create("s", FIRST)
    came_to_rest(world, uuid, "CREATE_COMPLETE", FIRST)
    world.update("s", SECOND)
    came_to_rest(world, uuid, "UPDATE_COMPLETE", SECOND)
    before = world.ids()
    world.update("s", THIRD)
    for _ in range(7):
        world.step()
    if world.state(uuid) == "UPDATE_IN_PROGRESS":
        world.act("s", "cancel_update")
        came_to_rest(world, uuid, "ROLLBACK_COMPLETE", SECOND)
        assert world.ids() == before
    assert holder(world) == [world.ids()["x"]]
    world.delete("s")
    came_to_rest(world, uuid, "DELETE_COMPLETE", {})


@pytest.fixture(scope="module")
def moments(kept_world: Simulator) -> int:
    """Return how many there are in the whole life."""
    live(kept_world, None)
    assert [verb for verb, _ in requests(kept_world)].count("reclaim")
    return kept_world.moments


@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_may_die_at_any_moment(kept_world: Simulator, moments: int, part: int) -> None:
    live(kept_world, 1 + part * moments // PARTS)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_may_die_at_every_moment(kept_world: Simulator, moments: int, part: int) -> None:
    for moment in range(1 + part, moments, PARTS):
        live(kept_world, moment)
