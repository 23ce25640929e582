"""An open operation belongs to the template and the requirements of its start; both may be
obsolete by now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.store.traversals import traversals
from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator


@pytest.fixture(scope="module")
def simulator(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


@pytest.fixture
def world(simulator: Simulator) -> Simulator:
    simulator.reset(1)
    return simulator


def test_an_update_begun_for_a_replacement_does_not_count_for_the_old_requirement(world: Simulator):
    above = thing(on=[{"get_resource": "below"}], looks=5)
    first = {"below": thing(type="Sim::Rigid", a="1"), "above": above}
    uuid = world.create("s", first)
    world.rest()
    world.update("s", {"below": thing(type="Sim::Rigid", a="2"), "above": above})
    world.go(until=lambda: "above" in world.done("update"))
    world.update("s", first)  # the change is still open, and for another than `below` is again
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.ids()["below"] == "below-1"
    world.verify(first)


def test_a_create_that_a_check_sends_again_is_that_of_the_template_it_was_begun_for(world: Simulator):
    def asked_for(value: str) -> dict[str, Any]:
        return {"parameters": {"p": {"type": "string", "default": value}}}

    resources = {"slow": thing(looks=9), "a": thing("slow", a={"get_param": "p"})}
    fates = iter(["silent"])
    world.provider.fate = lambda verb, ctx: (
        next(fates, "done") if (verb, ctx.name) == ("create", "a") else "done"
    )
    world.create("s", resources, **asked_for("1"))
    world.go(until=lambda: world.provider.calls["create", "a"])
    world.update("s", resources | {"slow": thing(looks=9, a="2")}, **asked_for("2"))
    world.go("a", until=lambda: "slow" in world.done("update"))
    world.act("s", "cancel_without_rollback")
    world.act("s", "resume")
    world.rest()
    assert world.provider.things["a-2"].properties["a"] == "1"
    world.update("s", resources, **asked_for("1"))
    world.rest()
    world.verify(resources | {"a": thing("slow", a="1")})


def test_a_create_that_a_failed_update_sends_again_is_that_of_the_template_it_was_begun_for(world: Simulator):
    fates = {"a": ["silent"], "x": ["refused"]}
    world.provider.fate = lambda verb, ctx: (
        fates[ctx.name].pop() if verb == "create" and fates.get(ctx.name) else "done"
    )
    uuid = world.create("s", {"a": thing(a="1")})
    world.go(until=lambda: world.provider.calls["create", "a"])
    world.update("s", {"x": thing(), "a": thing(a="2", on=[{"get_resource": "x"}])})
    world.go(until=lambda: world.provider.calls["create", "x"])
    traversals.enqueue_open_operations(
        world.database.check_connection(durable=True), world.stack().id, world.stack().traversal
    )
    world.rest()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert world.provider.things["a-1"].properties["a"] == "1"
    world.sound()


def test_a_resource_with_a_failed_update_is_updated_again_after_it_is_marked_healthy(
    world: Simulator,
):
    world.create("s", {"a": thing(a="1")})
    world.rest()
    world.provider.fate = lambda verb, _ctx: "dead" if verb == "update" else "done"
    world.update("s", {"a": thing(a="2")})
    world.rest()
    assert world.stack().status == "FAILED"
    world.provider.fate = lambda _verb, _ctx: "done"
    world.mark("s", "a")
    world.mark("s", "a", unhealthy=False)
    world.update("s", {"a": thing(a="1")})
    world.rest()
    world.verify({"a": thing(a="1")})


@pytest.mark.parametrize("action", ["suspend", "update"])
def test_a_refused_repetition_continues_the_first_request(world: Simulator, action: str):
    world.create("s", {"a": thing(looks=3)})
    world.rest()
    fates = ["killed after", "refused", "busy"]  # the last when it is looked at after the refusal
    world.provider.fate = lambda verb, _ctx: (
        fates.pop(0) if fates and (verb == action or fates == ["busy"]) else "done"
    )
    if action == "suspend":
        world.act("s", "suspend")
    else:
        world.update("s", {"a": thing(looks=3, a="2")})
    world.rest()
    assert (world.stack().status, fates) == ("COMPLETE", [])
    [a] = world.provider.things.values()
    assert a.opened is None
    world.sound()
