"""The remaining scenarios of the engine (docs/internals/engine-semantics.md §18), besides the scenarios of
Heat's own simulator: failures with siblings running, timeouts, cancelling at any phase, conditions, things
that vanish, wide and long graphs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.faults import Faults
from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator
from tests.scenarios.stacks.test_heat_scenarios import before, finished, objects, t5

ANY_ORDER = Faults(repeat=0.15, lose=0.1)


@pytest.fixture(scope="module")
def installation(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


@pytest.fixture
def world(installation: Simulator) -> Simulator:
    installation.reset(7)
    installation.faults = ANY_ORDER
    return installation


def fails(world: Simulator, *which: tuple[str, str], how: str = "dead") -> None:
    """Let some calls fail."""
    world.provider.fate = lambda verb, ctx: how if (verb, ctx.name) in which else "done"


def reason(world: Simulator) -> str:
    return str(world.stack().status_reason)


def a_long_time_passes(world: Simulator) -> None:
    world.elapse(2 * 3600, "action")


# 19. A failure in the middle, siblings running.


def test_siblings_of_a_failure_finish_and_its_dependents_are_not_begun(world: Simulator):
    resources = {
        "slow": thing(looks=4),
        "bad": thing(),
        "after": thing("bad"),
        "also": thing("slow"),
    }
    fails(world, ("create", "bad"))
    uuid = world.create("s", resources)
    world.go("bad", until=lambda: "slow" in objects(world))
    world.rest()
    assert world.state(uuid) == "CREATE_FAILED"
    assert "ResourceInError: resources.bad: it is dead" in reason(world)
    assert objects(world) == {"slow", "bad"}
    world.sound()
    events = world.events(uuid)
    assert events.index("slow CREATE_COMPLETE") < events.index("s CREATE_FAILED")
    fails(world)
    slow = world.ids()["slow"]
    world.patch("s")
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(resources)
    assert world.ids()["slow"] == slow


def test_every_cause_is_reported(world: Simulator):
    fails(world, ("create", "A"), ("create", "B"))
    uuid = world.create("s", t5())
    world.go(until=lambda: {"A", "B"} <= objects(world))
    world.rest()
    assert world.state(uuid) == "CREATE_FAILED"
    assert {row.resource_name for row in world.rows("SELECT resource_name FROM failure")} <= {"A", "B"}
    for row in world.rows("SELECT reason FROM failure"):
        assert row.reason in reason(world)


def test_operations_of_an_older_template_end_although_a_newer_update_failed_early(world: Simulator):
    """c is being made by a worker that died; the update that is to go on with it fails at b."""
    uuid = world.create("s", {"b": thing(), "c": thing()})
    world.go("c", until=lambda: finished(world, "b"))
    world.faults, world.provider.fate = (
        Faults(),
        lambda verb, ctx: "killed after" if (verb, ctx.name) == ("create", "c") else "done",
    )
    world.go(until=lambda: "c" in objects(world))
    assert world.crashes
    fails(world, ("update", "b"))
    expected = {"b": thing(a="new"), "c": thing("b")}
    world.update("s", expected)
    world.rest()
    assert world.state(uuid) == "UPDATE_FAILED"
    world.sound()
    assert objects(world) == {"b", "c"}
    assert world.rows("SELECT op, status FROM resource WHERE name = 'c'") == [(None, "COMPLETE")]
    fails(world)
    world.update("s", expected)
    world.rest()
    world.verify(expected)


# 22. A timeout while things run.


@pytest.mark.parametrize("rollback", [False, True], ids=["left", "rolled back"])
def test_a_timeout_ends_the_update_and_running_operations_finish(world: Simulator, rollback: bool):
    uuid = world.create("s", t5())
    world.rest()
    ids = world.ids()
    changed = t5(A=thing(a="new", looks=5), F=thing("A"))
    world.update("s", changed, disable_rollback=not rollback)
    world.go(until=lambda: any(item.opened == "update" for item in world.provider.things.values()))
    a_long_time_passes(world)
    world.sweep_once()
    if not rollback:
        assert (world.state(uuid), reason(world)) == ("UPDATE_FAILED", "Timed out")
        world.rest()
        world.sound()
        assert objects(world) == set("ABCDE")
        assert world.provider.things[ids["A"]].properties["a"] == "new"
        world.update("s", changed)
        world.rest()
        world.verify(changed)
        return
    world.rest()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    world.verify(t5())
    assert world.ids() == ids
    assert "s UPDATE_FAILED" in world.events(uuid)


@pytest.mark.parametrize("action", ["create", "delete", "cancel_update", "check"])
def test_every_action_can_time_out(world: Simulator, action: str):
    uuid = world.create("s", t5())
    if action != "create":
        world.rest()
    if action == "cancel_update":
        world.update("s", t5(A=thing(a="2")))
        world.act("s", "cancel_update")
    elif action == "delete":
        world.delete("s")
    elif action == "check":
        world.act("s", "check")
    a_long_time_passes(world)
    world.sweep_once()
    begun = {"cancel_update": "ROLLBACK"}.get(action, action.upper())
    assert (world.state(uuid), reason(world)) == (f"{begun}_FAILED", "Timed out")
    world.rest()
    world.sound()
    world.delete("s")
    world.rest()
    world.verify({})


# 24. Cancelling, with and without rollback, at each phase of an update.

PHASES = [*range(0, 30, 6), *(pytest.param(n, marks=pytest.mark.long) for n in range(60) if n % 6 or n >= 30)]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("how", ["cancel_update", "cancel_without_rollback"])
def test_an_update_is_cancelled_at_any_phase(world: Simulator, how: str, phase: int):
    first = t5(A=thing(a="1"), B=thing(type="Sim::Rigid", a={"get_attr": ["A", "a"]}))
    second = t5(A=thing(a="2", looks=2), B=first["B"], E=None, F=thing("B"))
    uuid = world.create("s", first)
    world.rest()
    ids = world.ids()
    world.reset_order(phase)
    world.update("s", second)
    for _ in range(phase):
        world.step()
    if world.state(uuid) != "UPDATE_IN_PROGRESS":
        pytest.skip("it had ended")
    going = {*world.done("delete"), "E"}
    world.act("s", how)
    if how == "cancel_without_rollback":
        assert (world.state(uuid), reason(world)) == ("UPDATE_FAILED", "Stack UPDATE cancelled")
        world.rest()
        world.sound()
        assert world.state(uuid) == "UPDATE_FAILED"
        world.patch("s")
        world.rest()
        world.verify(second)
        return
    world.rest()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    world.verify(first)
    now = world.ids()
    assert {name for name in ids if now[name] != ids[name]} <= going  # a pending delete is not revoked


# 25. Missing resources, and resources marked unhealthy, are created again.


def test_a_resource_missing_in_a_check_is_recreated_by_the_next_update(world: Simulator):
    uuid = world.create("s", t5())
    world.rest()
    ids = world.ids()
    del world.provider.things[ids["C"]]
    world.act("s", "check")
    world.rest()
    assert world.state(uuid) == "CHECK_FAILED"
    world.patch("s")
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(t5())
    now = world.ids()
    assert {name for name in now if now[name] != ids[name]} == {"C"}


# 27. Conditions that flip, also while the last flip is being carried out.


@pytest.mark.parametrize("at_once", [False, True])
def test_a_condition_that_flips_makes_and_removes(world: Simulator, at_once: bool):
    resources = {
        "always": thing(),
        "on": {**thing("always", a="1"), "condition": "c"},
        "off": {**thing("always", a="2"), "condition": {"not": "c"}},
        "either": thing(a={"if": ["c", {"get_attr": ["on", "a"]}, {"get_attr": ["off", "a"]}]}),
    }
    shared = {"conditions": {"c": {"get_param": "p"}}, "parameters": {"p": {"type": "boolean"}}}
    world.create("s", resources, **shared, environment={"parameters": {"p": False}})
    world.rest()
    for flag in (True, False, True, True, False):
        world.patch("s", parameters={"p": flag})
        if at_once:
            for _ in range(4):
                world.step()
            continue
        world.rest()
        assert objects(world) == {"always", "either", "on" if flag else "off"}
    world.rest()
    world.sound()
    assert objects(world) == {"always", "either", "off"}
    [either] = [item for item in world.provider.things.values() if item.name == "either"]
    assert either.properties["a"] == "2"


# 28. Wide and long graphs, with work in proportion.


@pytest.mark.parametrize("shape", ["wide", "long"])
def test_a_check_costs_the_same_however_wide_or_long_the_graph(world: Simulator, shape: str):
    def cost(size: int) -> float:
        world.reset(1)
        names = [f"r{n}" for n in range(size)]
        resources: dict[str, Any] = {
            name: {"type": "OS::Heat::Value", "properties": {"value": name}} for name in names
        }
        if shape == "wide":
            resources["all"] = {
                "type": "OS::Heat::Value",
                "properties": {"value": "x"},
                "depends_on": names,
            }
        else:
            for item, other in itertools.pairwise(names):
                resources[other]["depends_on"] = item
        uuid = world.create("s", resources)
        world.rest()
        assert world.state(uuid) == "CREATE_COMPLETE"
        return world.moments / size

    small, large = cost(40), cost(400)
    assert large <= small * 1.1


def test_inverted_dependencies_of_things_that_stay_are_turned_round(world: Simulator):
    """14, in place: nothing is replaced, and each is moved to its new place before its dependents."""
    first = {"A": thing(a="1"), "B": thing("A", a="1"), "C": thing("B", a="1")}
    turned = {"C": thing(a="2"), "B": thing("C", a="2"), "A": thing("B", a="2")}
    world.create("s", first)
    world.rest()
    ids = world.ids()
    world.update("s", turned)
    world.rest()
    world.verify(turned)
    assert world.ids() == ids
    assert before(world, "update", "C", "B", "A")
    world.delete("s")
    world.rest()
    assert world.done("delete") == ["A", "B", "C"]
