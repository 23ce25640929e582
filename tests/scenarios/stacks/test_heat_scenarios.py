"""The scenarios of Heat's own simulator that create, delete and update (1 to 10), interrupted at the same
points and delivered in any order.

Each ends with `verify`: exactly the things that the template wants, with its values, each made once, nothing
out of order. Those with rollbacks and replacements are in `test_heat_scenarios_back.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.faults import Faults
from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator

SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 40))]
ANY_ORDER = Faults(repeat=0.15, lose=0.1)


def t5(**changes: Any) -> dict[str, Any]:
    """The usual template; a change of None leaves a resource out."""
    made = {
        "A": thing(),
        "B": thing(),
        "C": thing("A", "B", a="4alpha"),
        "D": thing(c={"get_resource": "C"}),
        "E": thing(ca={"get_attr": ["C", "a"]}),
        **changes,
    }
    return {name: body for name, body in made.items() if body is not None}


def chain(c: str, d: str) -> dict[str, Any]:
    return {"A": thing(), "B": thing("A", a="4alpha"), "C": thing("B", a=c), "D": thing("C", a=d)}


F = thing("D", "E")


@pytest.fixture(scope="module")
def installation(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


@pytest.fixture(params=SEEDS)
def world(installation: Simulator, request: pytest.FixtureRequest) -> Simulator:
    """An empty installation that delivers in another order for each seed, repeats and loses."""
    installation.reset(request.param)
    installation.faults = ANY_ORDER
    return installation


def objects(world: Simulator) -> set[str]:
    """Return the names of the existing things."""
    return {item.name for item in world.provider.things.values()}


def before(world: Simulator, verb: str, *names: str) -> bool:
    """Whether things were made, or removed, in this order."""
    done = world.done(verb)
    return [done.index(name) for name in names] == sorted(done.index(name) for name in names)


def finished(world: Simulator, name: str) -> bool:
    rows = world.rows("SELECT 1 FROM resource WHERE name = :n AND status = 'COMPLETE' AND op IS NULL", n=name)
    return bool(rows) and name in objects(world)


def event_statuses(world: Simulator, uuid: str, name: str) -> list[str]:
    """Return the events of a resource, as users read them."""
    return [event.split()[1] for event in world.events(uuid) if event.startswith(f"{name} ")]


def test_1_basic_create(world: Simulator):
    uuid = world.create("s", t5())
    world.rest()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.verify(t5())
    assert sorted(world.done("create")) == list("ABCDE")
    for first, then in ("AC", "BC", "CD", "CE"):
        assert before(world, "create", first, then)


def test_2_disjoint_create(world: Simulator):
    resources = {
        "A": thing(looks=50),
        "B": thing(),
        "C": thing("A", a="4alpha"),
        "D": thing(c={"get_resource": "C"}),
        "E": thing(),
    }
    uuid = world.create("s", resources)
    made = world.done
    world.go(until=lambda: finished(world, "B") and finished(world, "E") and "A" in made("create"))
    assert world.provider.things[world.provider.log[world.done("create").index("A")][2]].opened == "create"
    assert not {"C", "D"} & objects(world)
    world.rest()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.verify(resources)


def test_3_basic_create_rollback(world: Simulator):
    def e_dies(verb: str, ctx: Any) -> str:
        return "dead" if (verb, ctx.name) == ("create", "E") else "done"

    world.provider.fate = e_dies
    uuid = world.create("s", t5(), disable_rollback=False)
    world.rest()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    world.verify({})
    assert sorted(world.done("delete"))[:3] == ["A", "B", "C"]
    assert before(world, "delete", "E", "C", "A")
    assert before(world, "delete", "C", "B")
    assert [e for e in world.events(uuid) if e.startswith("s ")] == [
        f"s {state}"
        for state in ("CREATE_IN_PROGRESS", "CREATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE")
    ]


def test_4_create_early_delete(world: Simulator):
    uuid = world.create("s", t5())
    world.go("D", "E", until=lambda: finished(world, "C"))
    assert objects(world) == set("ABC")
    world.delete("s")
    world.rest()
    assert world.state(uuid) == "DELETE_COMPLETE"
    world.verify({})
    assert sorted(world.done("create")) == list("ABC")
    assert world.done("delete")[0] == "C"


def test_5_update_add(world: Simulator):
    uuid = world.create("s", t5())
    world.rest()
    ids, happened = world.ids(), len(world.events(uuid))
    world.update("s", t5(F=F))
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(t5(F=F))
    assert {name: world.ids()[name] for name in ids} == ids
    assert world.provider.log[5:] == [("create", "F", world.ids()["F"])]
    assert len(world.events(uuid)) == happened + 4  # the stack's two and F's


def test_6_update_remove(world: Simulator):
    uuid = world.create("s", t5())
    world.rest()
    ids = world.ids()
    world.update("s", t5(E=None))
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(t5(E=None))
    assert world.provider.log[5:] == [("delete", "E", ids.pop("E"))]
    assert world.ids() == ids


def test_7_multiple_update(world: Simulator):
    uuid = world.create("s", t5())
    world.rest()
    ids = world.ids()
    world.update("s", t5(E=None))
    world.rest()
    world.verify(t5(E=None))
    world.update("s", t5(F=F))
    world.rest()
    world.verify(t5(F=F))
    now = world.ids()
    assert now["E"] != ids["E"]
    assert {name: now[name] for name in "ABCD"} == {name: ids[name] for name in "ABCD"}
    assert world.done("update") == []
    world.delete("s")
    world.rest()
    assert world.state(uuid) == "DELETE_COMPLETE"
    world.verify({})
    gone = world.done("delete")[1:]
    assert gone[0] == "F"
    assert set(gone[1:3]) == {"D", "E"}
    assert gone[3] == "C"


def started_late(world: Simulator) -> str:
    """Create the usual template, and ask for F when D and E have not begun."""
    uuid = world.create("s", t5())
    world.go("D", "E", until=lambda: finished(world, "C"))
    assert objects(world) == set("ABC")
    world.update("s", t5(F=F))
    return uuid


def test_8_update_add_concurrent(world: Simulator):
    uuid = started_late(world)
    ids = world.ids()
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(t5(F=F))
    assert sorted(world.done("create")) == list("ABCDEF")
    assert {name: world.ids()[name] for name in "ABC"} == {name: ids[name] for name in "ABC"}
    for name in "ABCDEF":
        assert event_statuses(world, uuid, name) == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]


def test_9_basic_update_delete(world: Simulator):
    uuid = started_late(world)
    world.rest()
    world.verify(t5(F=F))
    world.delete("s")
    world.rest()
    assert world.state(uuid) == "DELETE_COMPLETE"
    world.verify({})
    assert world.done("delete")[0] == "F"
    assert set(world.done("delete")[4:]) == {"A", "B"}


def test_10_update_interrupt_create(world: Simulator):
    uuid = world.create("s", chain("foo", "bar"))
    world.go("C", until=lambda: finished(world, "B"))
    assert objects(world) == {"A", "B"}
    world.update("s", chain("blarg", "wibble"))
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(chain("blarg", "wibble"))
    assert world.done("create") == list("ABCD")
    assert world.done("update") == []


def test_10_a_resource_caught_being_made_is_made_once_and_then_brought_to_the_last_value(world: Simulator):
    resources = chain("foo", "bar")
    resources["C"]["properties"]["looks"] = 3
    uuid = world.create("s", resources)
    world.go(until=lambda: "C" in objects(world))
    expected = chain("blarg", "wibble")
    expected["C"]["properties"]["looks"] = 3
    world.update("s", expected)
    world.go()  # in less than an hour, after which C would exceed its ready timeout
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(expected)
    assert world.done("create") == list("ABCD")
    assert world.done("update") == ["C"]
    assert event_statuses(world, uuid, "C")[1:3] == ["CREATE_COMPLETE", "UPDATE_IN_PROGRESS"]
