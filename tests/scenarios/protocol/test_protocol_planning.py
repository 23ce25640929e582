"""The protocol's rules about planning and about the state found by a later traversal
(docs/internals/protocol.md rules 6, 7, 9, 13): each test fails when its rule is taken out
(docs/protocol-tests.md says which).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.operations.planning import row_writer
from tests.scenarios.fake_cloud import Crash
from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator
from tests.scenarios.stacks.test_heat_scenarios import finished, objects

ALWAYS = float("inf")


@pytest.fixture(scope="module")
def installation(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


@pytest.fixture
def world(installation: Simulator) -> Simulator:
    installation.reset(3)
    return installation


def die() -> None:
    raise Crash


# 6. A planner that lost its lease writes nothing more.


def test_only_the_planner_with_the_lease_writes(world: Simulator, monkeypatch: pytest.MonkeyPatch):
    """The first stands between two slices for so long that another takes over and finishes."""
    resources = {f"r{n}": thing(*([f"r{n - 1}"] if n else [])) for n in range(7)}

    def be_overtaken() -> None:
        world.age()
        for _ in range(40):
            world.step()

    world.after("plan_slice", lambda: world.before("plan_slice", be_overtaken))
    monkeypatch.setattr(row_writer, "SLICE", 2)
    uuid = world.create("s", resources)
    world.rest()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.verify(resources)
    nodes = "SELECT label FROM graph_node WHERE kind = 'update' GROUP BY label HAVING count(*) > 1"
    assert world.rows(nodes) == []


def test_a_plan_resumed_after_its_first_nodes_were_visited_compares_again(world: Simulator):
    """The planner dies when all is written; b is replaced before another takes up the plan."""

    def wanted(value: str) -> dict[str, Any]:
        return {
            "b": thing(type="Sim::Rigid", a=value),
            "c": thing(a=value, on=[{"get_resource": "b"}]),
            "d": thing(a=value),
        }

    uuid = world.create("s", wanted("1"))
    world.rest()
    world.before("settle_nodes", die)
    world.update("s", wanted("2"))
    world.go("c", "d", until=lambda: world.done("create").count("b") == 2 and finished(world, "b"))
    assert world.crashes == 1
    world.age()
    world.go("c", "d")
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(wanted("2"))
    assert world.done("create").count("b") == 2


def test_a_plan_that_ends_its_planner_every_time_is_given_up(world: Simulator):
    world.create("s", {"a": thing()})
    world.rest()

    world.before("settle_nodes", die, times=ALWAYS)
    world.update("s", {"a": thing(a="1")})
    world.rest()
    assert (world.stack().action, world.stack().status) == ("UPDATE", "FAILED")
    assert "Planning failed repeatedly" in world.stack().status_reason


def test_a_finish_that_is_overtaken_while_it_plans_the_cleanup_leaves_that_to_the_newer_traversal(
    world: Simulator,
):
    world.create("s", {"a": thing(**{"!a": "1"}), "b": thing(on=[{"get_resource": "a"}])})
    world.rest()
    expected = {"a": thing(**{"!a": "2"}), "b": thing(on=[{"get_resource": "a"}])}
    world.update("s", expected)
    world.go("finish")

    def overtake() -> None:
        world.update("s", {**expected, "c": thing()})
        for _ in range(6):
            world.step()

    world.before("read_finish_node", overtake)
    world.rest()
    world.verify({**expected, "c": thing()})


# 6. The deletes of replaced resources are planned in slices, too.


def replaced(number: str) -> dict[str, Any]:
    """A row of things, each of which is replaced with another number."""
    return {
        f"r{n}": thing(**{"!a": number}, on=[{"get_resource": f"r{n - 1}"}] if n else []) for n in range(6)
    }


def at_the_second_slice_of_removals(
    world: Simulator, monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]
) -> list[int]:
    """Run an action there, once; return the size of each slice of deletes in the second traversal."""
    written = world.record("copy_nodes", "count", traversal=2, cleanup=True)
    world.after("copy_nodes", lambda: world.before("plan_slice", action), traversal=2, cleanup=True)
    monkeypatch.setattr(row_writer, "SLICE", 2)
    return written


def test_removals_are_planned_slice_by_slice(world: Simulator, monkeypatch: pytest.MonkeyPatch):
    world.create("s", replaced("1"))
    world.rest()
    written = at_the_second_slice_of_removals(world, monkeypatch, lambda: None)
    world.update("s", replaced("2"))
    world.rest()
    world.verify(replaced("2"))
    assert written == [2, 2, 2]
    assert world.done("delete") == ["r5", "r4", "r3", "r2", "r1", "r0"]


def test_a_cleanup_plan_whose_planner_dies_is_restarted(world: Simulator, monkeypatch: pytest.MonkeyPatch):
    """The nodes of its first slice are visited with the rest."""

    uuid = world.create("s", replaced("1"))
    world.rest()
    written = at_the_second_slice_of_removals(world, monkeypatch, die)
    world.update("s", replaced("2"))
    world.rest()
    assert (world.crashes, written, world.stack().traversal) == (1, [2], 3)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(replaced("2"))
    assert world.done("delete") == ["r5", "r4", "r3", "r2", "r1", "r0"]


def test_a_plan_of_removals_that_died_before_its_first_slice_is_taken_up(world: Simulator):
    uuid = world.create("s", replaced("1"))
    world.rest()
    world.before("read_deposed", die)
    world.update("s", replaced("2"))
    world.rest()
    assert (world.crashes, world.stack().traversal) == (1, 2)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(replaced("2"))


def test_a_superseded_plan_of_removals_stops_at_its_next_slice(
    world: Simulator, monkeypatch: pytest.MonkeyPatch
):
    world.create("s", replaced("1"))
    world.rest()
    written = at_the_second_slice_of_removals(
        world, monkeypatch, lambda: world.update("s", {**replaced("2"), "c": thing()})
    )
    world.update("s", replaced("2"))
    world.rest()
    assert written == [2]
    world.verify({**replaced("2"), "c": thing()})


# 7. Dirty resources are found by comparison with the definition that each was built with.


def test_a_value_that_a_superseded_update_left_half_way_arrives_with_the_next(world: Simulator):
    """a has its new value, c has not been visited, and the next template has nothing new for c."""

    def wanted(value: str, **options: Any) -> dict[str, Any]:
        return {"a": thing(a=value), "c": thing(a={"get_attr": ["a", "a"]}), **options}

    world.create("s", wanted("1"))
    world.rest()
    world.update("s", wanted("2"))
    world.go("c", until=lambda: world.done("update") == ["a"] and finished(world, "a"))
    world.update("s", wanted("2", d=thing()))
    world.rest()
    world.verify(wanted("2", d=thing()))
    assert world.done("update") == ["a", "c"]


def test_an_operation_that_was_left_open_is_found_though_its_definition_is_as_wanted(world: Simulator):
    resources = {"a": thing(a="1", looks=3)}
    world.create("s", resources)
    world.go(until=lambda: objects(world) == {"a"})
    world.update("s", {**resources, "b": thing()})
    world.rest()
    world.verify({**resources, "b": thing()})
    assert world.done("create").count("a") == 1


@pytest.mark.parametrize("action", ["suspend", "resume"])
@pytest.mark.parametrize("verb", ["create", "delete"])
def test_operations_on_a_deposed_resource_end_also_in_suspend_or_resume(
    world: Simulator, action: str, verb: str
):
    world.create("s", {"a": thing(looks=9), "b": thing()})
    if verb == "delete":
        world.rest()
        world.update("s", {"b": thing()})
    world.go(until=lambda: "a" in world.done(verb) and finished(world, "b"))
    if verb == "create":
        world.update("s", {"b": thing()})
        world.go("a", "finish", until=lambda: world.rows("SELECT 1 FROM resource WHERE deposed"))
    world.act("s", "cancel_without_rollback")
    world.act("s", action)
    world.rest()
    assert (world.stack().action, world.stack().status) == (action.upper(), "COMPLETE")
    world.sound()
    assert objects(world) == {"b"}


def test_a_removal_that_a_halted_plan_had_not_come_to_is_followed_to_its_end(
    world: Simulator, monkeypatch: pytest.MonkeyPatch
):
    """The plan stops at its first slice, because a node of that slice has failed by then."""
    world.create("s", {"a": thing(looks=5)})
    world.rest()
    world.update("s", {})
    world.go(until=lambda: world.done("delete"))
    world.provider.fate = lambda verb, ctx: "dead" if verb == "create" else "done"

    def let_it_fail() -> None:
        for _ in range(30):
            world.step()

    monkeypatch.setattr(row_writer, "SLICE", 1)
    world.after("plan_slice", lambda: world.before("plan_slice", let_it_fail))
    world.update("s", {"bad": thing()})
    world.rest()
    assert (world.stack().action, world.stack().status) == ("UPDATE", "FAILED")
    world.sound()
    assert objects(world) == {"bad"}


# 4. However often a lease is lost.


def test_a_node_whose_lease_was_lost_very_often_stops_no_sweep(world: Simulator):
    uuid = world.create("s", {"a": thing(), "b": thing()})
    world.provider.fate = lambda verb, ctx: "killed" if ctx.name == "a" else "done"
    world.go(until=lambda: world.crashes)
    world.age()
    with world.database.connect() as db:
        db.execute("UPDATE graph_node SET lost_leases = 32767 WHERE state = 'checking'")
    world.provider.fate = world.fate
    world.rest()
    assert world.state(uuid) == "CREATE_FAILED"
    assert "Worker went down during resource CREATE" in world.stack().status_reason


# 9. A possible requirement of a running update is not deleted.


def test_a_requirement_of_a_failed_update_is_deleted_after_it(world: Simulator):
    """b was to leave a and failed, so it may still use a; a is deleted after b is updated again."""
    world.create("s", {"a": thing(), "b": thing(on=[{"get_resource": "a"}])})
    world.rest()
    world.provider.fate = lambda verb, ctx: "refused" if verb == "update" else "done"
    world.update("s", {"b": thing(a="2")})
    world.rest()
    assert world.stack().status == "FAILED"
    world.provider.fate = world.fate
    world.update("s", {"b": thing(a="2")})
    world.rest()
    world.verify({"b": thing(a="2")})
    assert world.done("delete") == ["a"]
    assert [verb for verb, _, _ in world.provider.log][-2:] == ["update", "delete"]
