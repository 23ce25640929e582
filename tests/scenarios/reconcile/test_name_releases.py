"""A replaced object gives up a name that its replacement has, too (orchestrator/operations/adr/0013)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.provider import Thing, thing
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


@pytest.fixture(params=["Sim::Titled", "Sim::Renamed"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def named(kind: str, version: str, dock: str = "pier", **properties: Any) -> dict[str, Any]:
    return {"x": thing(type=kind, a=version, dock=dock, **properties)}


def holders(world: Simulator) -> list[tuple[str, Any]]:
    """Return the docks and versions of the things."""
    return [(str(item.dock), item.properties.get("a")) for item in world.provider.things.values()]


def requests(world: Simulator) -> list[tuple[str, str]]:
    return [(verb, id_) for verb, _, id_ in world.provider.log]


def settled(world: Simulator, uuid: str, state: str) -> None:
    world.rest()
    assert world.state(uuid) == state


def test_an_object_with_the_name_is_deleted_before_its_replacement_is_created(world: Simulator) -> None:
    uuid = world.create("s", named("Sim::Titled", "1", looks=2))
    settled(world, uuid, "CREATE_COMPLETE")
    world.update("s", named("Sim::Titled", "2", looks=2))
    settled(world, uuid, "UPDATE_COMPLETE")
    assert requests(world) == [("create", "x-1"), ("delete", "x-1"), ("create", "x-2")]
    world.verify(named("Sim::Titled", "2", looks=2))


def test_an_object_that_was_deleted_first_is_not_deleted_again(world: Simulator) -> None:
    uuid = world.create("s", named("Sim::Titled", "1"))
    settled(world, uuid, "CREATE_COMPLETE")
    world.update("s", named("Sim::Titled", "2"))
    settled(world, uuid, "UPDATE_COMPLETE")
    assert world.provider.calls["delete", "x"] == 1


def test_an_object_with_the_name_is_renamed_before_its_replacement_is_created(world: Simulator) -> None:
    uuid = world.create("s", named("Sim::Renamed", "1"))
    settled(world, uuid, "CREATE_COMPLETE")
    world.update("s", named("Sim::Renamed", "2"))
    settled(world, uuid, "UPDATE_COMPLETE")
    expected = [("create", "x-1"), ("rename", "x-1"), ("create", "x-2"), ("delete", "x-1")]
    assert requests(world) == expected
    world.verify(named("Sim::Renamed", "2"))


def test_an_object_with_another_name_gives_up_nothing(world: Simulator, kind: str) -> None:
    uuid = world.create("s", named(kind, "1"), disable_rollback=False)
    settled(world, uuid, "CREATE_COMPLETE")
    second = {**named(kind, "2", dock="quay"), "z": thing("x")}
    world.provider.fate = lambda verb, ctx: "refused" if (verb, ctx.name) == ("create", "z") else "done"
    world.update("s", second, disable_rollback=False)
    settled(world, uuid, "ROLLBACK_COMPLETE")
    assert requests(world) == [("create", "x-1"), ("create", "x-2"), ("delete", "x-2")]
    assert world.ids() == {"x": "x-1"}


def test_a_retained_object_gives_up_nothing(world: Simulator, kind: str) -> None:
    resources = named(kind, "1")
    uuid = world.create("s", {"x": {**resources["x"], "deletion_policy": "Retain"}})
    settled(world, uuid, "CREATE_COMPLETE")
    world.update("s", named(kind, "2"))
    settled(world, uuid, "UPDATE_FAILED")
    assert "pier is in use" in world.rows("SELECT reason FROM failure")[0].reason
    assert holders(world) == [("pier", "1")]


def test_a_rollback_leaves_the_object_of_the_old_definition(world: Simulator, kind: str) -> None:
    uuid = world.create("s", named(kind, "1"), disable_rollback=False)
    settled(world, uuid, "CREATE_COMPLETE")
    second = {**named(kind, "2"), "z": thing("x")}
    world.provider.fate = lambda verb, ctx: "refused" if (verb, ctx.name) == ("create", "z") else "done"
    world.update("s", second, disable_rollback=False)
    settled(world, uuid, "ROLLBACK_COMPLETE")
    assert holders(world) == [("pier", "1")]
    assert (world.ids()["x"] == "x-1") == (kind == "Sim::Renamed")
    world.verify(named(kind, "1"))


def test_a_refused_replacement_is_followed_by_the_old_definition(world: Simulator, kind: str) -> None:
    uuid = world.create("s", named(kind, "1"))
    settled(world, uuid, "CREATE_COMPLETE")
    world.provider.fate = lambda verb, ctx: "refused" if verb == "create" else "done"
    world.update("s", named(kind, "2"))
    settled(world, uuid, "UPDATE_FAILED")
    world.provider.fate = world.fate
    world.update("s", named(kind, "1"))
    settled(world, uuid, "UPDATE_COMPLETE")
    assert holders(world) == [("pier", "1")]
    world.delete("s")
    settled(world, uuid, "DELETE_COMPLETE")
    assert holders(world) == []


def test_an_update_during_the_release_leaves_the_object_of_its_definition(
    world: Simulator, kind: str
) -> None:
    uuid = world.create("s", named(kind, "1"))
    settled(world, uuid, "CREATE_COMPLETE")

    def change_back(verb: str, _ctx: Any) -> None:
        if verb in ("delete", "rename"):
            world.provider.meanwhile = lambda verb, ctx: None
            world.update("s", named(kind, "1"))

    world.provider.meanwhile = change_back
    world.update("s", named(kind, "2"))
    settled(world, uuid, "UPDATE_COMPLETE")
    assert holders(world) == [("pier", "1")]
    world.verify(named(kind, "1"))


@pytest.mark.parametrize("fate", ["refused", "silent"])
def test_an_object_of_another_owner_stays(world: Simulator, fate: str) -> None:
    foreign = Thing("foreign", "", "", {"a": "0"}, None, 0, dock="pier")
    world.provider.things["foreign"] = foreign
    world.provider.fate = lambda verb, ctx: fate if verb == "create" else "done"
    uuid = world.create("s", named("Sim::Searched", "1"))
    settled(world, uuid, "CREATE_FAILED")
    world.update("s", named("Sim::Searched", "2"))
    settled(world, uuid, "UPDATE_FAILED")
    world.delete("s")
    settled(world, uuid, "DELETE_COMPLETE")
    assert list(world.provider.things.values()) == [foreign]
    assert requests(world) == []


def test_an_object_of_a_lost_create_is_found_by_its_name(world: Simulator) -> None:
    fates = iter(["lost"])
    world.provider.fate = lambda verb, ctx: next(fates, "done") if verb == "create" else "done"
    uuid = world.create("s", named("Sim::Searched", "1"))
    settled(world, uuid, "CREATE_COMPLETE")
    assert requests(world) == [("create", "x-1")]
    world.delete("s")
    settled(world, uuid, "DELETE_COMPLETE")
    assert holders(world) == []


PARTS = 6


def live(world: Simulator, kind: str, crash_at: int | None) -> None:
    """Create, replace, cancel another replacement, delete; with a death at any moment."""
    world.reset(1)
    world.crash_at = crash_at
    uuid = world.create("s", named(kind, "1"))
    settled(world, uuid, "CREATE_COMPLETE")
    world.update("s", named(kind, "2", looks=1))
    settled(world, uuid, "UPDATE_COMPLETE")
    assert holders(world) == [("pier", "2")]
    world.update("s", named(kind, "3"))
    for _ in range(7):
        world.step()
    if world.state(uuid) == "UPDATE_IN_PROGRESS":
        world.act("s", "cancel_update")
        settled(world, uuid, "ROLLBACK_COMPLETE")
        assert holders(world) == [("pier", "2")]
    assert len(holders(world)) == 1
    world.delete("s")
    settled(world, uuid, "DELETE_COMPLETE")
    assert holders(world) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_may_die_at_any_moment(kept_world: Simulator, kind: str, part: int) -> None:
    live(kept_world, kind, None)
    live(kept_world, kind, 1 + part * kept_world.moments // PARTS)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_may_die_at_every_moment(kept_world: Simulator, kind: str, part: int) -> None:
    live(kept_world, kind, None)
    for moment in range(1 + part, kept_world.moments, PARTS):
        live(kept_world, kind, moment)
