"""The scenarios of Heat's simulator that roll back and replace (11 to 21); see `test_heat_scenarios.py`."""

from __future__ import annotations

from typing import Any

from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator
from tests.scenarios.stacks.test_heat_scenarios import (
    event_statuses,
    finished,
    installation,
    objects,
    t5,
    world,
)

__all__ = ["installation", "world"]  # the fixtures

F = thing("D", "E")


def tr(value: str = "initial", **changes: Any) -> dict[str, Any]:
    """The template for replacements: another value of A makes another C."""
    return {
        "A": thing(a=value),
        "B": thing(),
        "C": thing("B", **{"!a": {"get_attr": ["A", "a"]}}),
        "D": thing(c={"get_resource": "C"}),
        "E": thing(ca={"get_attr": ["C", "!a"]}),
        **changes,
    }


def renamed(**changes: Any) -> dict[str, Any]:
    """The same, where the user made another of C under another name."""
    made = tr("updated", **changes)
    made["newC"] = made.pop("C")
    made["D"] = thing(c={"get_resource": "newC"})
    made["E"] = thing(ca={"get_attr": ["newC", "!a"]})
    return made


def up(world: Simulator, resources: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Create a stack and let it finish; return its uuid and the physical ids."""
    uuid = world.create("s", resources)
    world.rest()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.verify(resources)
    return uuid, world.ids()


def copies(world: Simulator, name: str) -> int:
    return sum(item.name == name for item in world.provider.things.values())


def was_supplied(world: Simulator, name: str, key: str, value: Any) -> bool:
    """Whether a thing of a name has a value, and is at rest."""
    return finished(world, name) and any(
        item.properties.get(key) == value and item.opened is None
        for item in world.provider.things.values()
        if item.name == name
    )


def rolled_back(world: Simulator, uuid: str, resources: dict[str, Any], ids: dict[str, str]) -> None:
    """Go back, and see everything as it was, each the thing it was."""
    world.act("s", "cancel_update")
    world.rest()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    world.verify(resources)
    assert world.ids() == ids


def deleted(world: Simulator, uuid: str) -> list[str]:
    """Delete the stack; return the names in the order they went."""
    so_far = len(world.done("delete"))
    world.delete("s")
    world.rest()
    assert world.state(uuid) == "DELETE_COMPLETE"
    world.verify({})
    return world.done("delete")[so_far:]


def test_11_update_add_rollback(world: Simulator):
    uuid, ids = up(world, t5())
    world.update("s", t5(F=thing("A")))
    world.go("finish", until=lambda: finished(world, "F"))
    rolled_back(world, uuid, t5(), ids)
    assert world.provider.log[5:] == [("create", "F", "F-6"), ("delete", "F", "F-6")]


def test_12_update_add_rollback_early(world: Simulator):
    uuid, ids = up(world, t5())
    world.update("s", t5(F=thing("D")))
    world.go("F")
    rolled_back(world, uuid, t5(), ids)
    assert len(world.provider.log) == 5
    assert event_statuses(world, uuid, "F") == []


def test_13_update_remove_rollback(world: Simulator):
    uuid, ids = up(world, t5())
    world.update("s", t5(B=None, C=thing("A", a="4alpha")))
    world.go("B", "finish")
    assert "B" in objects(world)
    rolled_back(world, uuid, t5(), ids)
    assert len(world.provider.log) == 5
    assert event_statuses(world, uuid, "B") == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]


def replaced_half_way(world: Simulator) -> tuple[str, dict[str, str]]:
    """Create for replacement, update, and stop when D has the new C and E has not been looked at."""
    uuid, ids = up(world, tr())
    world.update("s", tr("updated"))
    world.go("E", until=lambda: copies(world, "C") == 2 and was_supplied(world, "D", "c", world.ids()["C"]))
    return uuid, ids


def test_14_update_replace_rollback(world: Simulator):
    uuid, ids = replaced_half_way(world)
    assert copies(world, "C") == 2
    rolled_back(world, uuid, tr(), ids)
    assert world.done("create") == [*world.done("create")[:5], "C"]
    assert world.done("delete") == ["C"]
    assert event_statuses(world, uuid, "E") == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]
    gone = deleted(world, uuid)
    assert set(gone[:2]) == {"D", "E"}
    assert gone[2] == "C"


def test_15_update_user_replace_rollback(world: Simulator):
    uuid, ids = up(world, tr())
    world.update("s", renamed())
    world.go(
        "E", until=lambda: finished(world, "newC") and was_supplied(world, "D", "c", world.ids()["newC"])
    )
    rolled_back(world, uuid, tr(), ids)
    assert event_statuses(world, uuid, "C") == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]
    assert world.done("create").count("newC") == world.done("delete").count("newC") == 1
    deleted(world, uuid)


def test_16_update_user_replace_rollback_update(world: Simulator):
    def wanted(value: str, b: str) -> dict[str, Any]:
        return tr(value, C=thing(**{"!a": {"get_attr": ["A", "a"]}, "b": b}))

    uuid, ids = up(world, wanted("initial", "val1"))
    world.update("s", wanted("updated", "val1"))
    world.go(until=lambda: world.rows("SELECT 1 FROM resource WHERE name = 'C' AND deposed"))
    assert copies(world, "C") == 1
    rolled_back(world, uuid, wanted("initial", "val1"), ids)
    assert world.done("create").count("C") == 1
    world.update("s", wanted("initial", "val2"))
    world.go("finish", until=lambda: was_supplied(world, "C", "b", "val2"))
    assert world.ids() == ids
    deleted(world, uuid)
    assert world.done("create").count("C") == world.done("delete").count("C") == 1


def test_16_the_third_update_ends_with_the_same_c(world: Simulator):
    first = tr(C=thing(**{"!a": {"get_attr": ["A", "a"]}, "b": "val1"}))
    uuid, ids = up(world, first)
    world.update("s", tr("updated", C=first["C"]))
    world.go(until=lambda: world.rows("SELECT 1 FROM resource WHERE name = 'C' AND deposed"))
    rolled_back(world, uuid, first, ids)
    third = tr(C=thing(**{"!a": {"get_attr": ["A", "a"]}, "b": "val2"}))
    changes = len(world.provider.log)
    world.update("s", third)
    world.rest()
    world.verify(third)
    assert world.ids() == ids
    assert world.provider.log[changes:] == [("update", "C", ids["C"])]


def test_17_update_replace(world: Simulator):
    uuid, ids = up(world, tr())
    world.update("s", tr("updated"))
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(tr("updated"))
    now = world.ids()
    assert {name for name in now if now[name] != ids[name]} == {"C"}
    assert world.provider.log[5:7] == [("update", "A", ids["A"]), ("create", "C", now["C"])]
    assert {step[:2] for step in world.provider.log[7:9]} == {("update", "D"), ("update", "E")}
    assert world.provider.log[9:] == [("delete", "C", ids["C"])]
    world.update("s", tr("updated", F=F))
    world.rest()
    world.verify(tr("updated", F=F))
    assert world.provider.log[10:] == [("create", "F", world.ids()["F"])]
    gone = deleted(world, uuid)
    assert gone[0] == "F"
    assert gone[3] == "C"


def test_18_update_replace_invert_deps(world: Simulator):
    uuid, ids = up(world, {"A": thing(**{"!a": "initial"}), "B": thing("A", **{"!b": "first"})})
    turned = {"A": thing("B", **{"!a": "updated"}), "B": thing(**{"!b": "second"})}
    world.update("s", turned)
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(turned)
    assert not set(world.ids().values()) & set(ids.values())
    removed = [id_ for verb, _, id_ in world.provider.log if verb == "delete"]
    assert removed == [ids["B"], ids["A"]]  # the old B stood on the old A
    assert deleted(world, uuid) == ["A", "B"]


def test_19_update_user_replace(world: Simulator):
    uuid, ids = up(world, tr())
    world.update("s", renamed())
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(renamed())
    assert world.provider.log[-1] == ("delete", "C", ids["C"])
    world.update("s", renamed(F=F))
    world.rest()
    world.verify(renamed(F=F))
    assert world.ids()["newC"] != ids["C"]
    gone = deleted(world, uuid)
    assert gone[0] == "F"
    assert gone[3] == "newC"


def interrupted_before_cleanup(world: Simulator) -> tuple[str, dict[str, str], str]:
    """Replace C and stop when all dependents use the new C, before the old C is deleted."""
    uuid, ids = up(world, tr())
    world.update("s", tr("updated"))
    world.go(
        "finish",
        until=lambda: (
            was_supplied(world, "E", "ca", "updated") and was_supplied(world, "D", "c", world.ids()["C"])
        ),
    )
    assert copies(world, "C") == 2
    return uuid, ids, world.ids()["C"]


def test_20_update_replace_missed_cleanup(world: Simulator):
    uuid, ids, second = interrupted_before_cleanup(world)
    so_far = len(world.provider.log)
    world.update("s", tr("updated", F=F))
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(tr("updated", F=F))
    assert world.ids()["C"] == second
    assert sorted(world.provider.log[so_far:]) == [
        ("create", "F", world.ids()["F"]),
        ("delete", "C", ids["C"]),
    ]
    deleted(world, uuid)


def test_20_a_cleanup_caught_in_the_middle_is_finished_once(world: Simulator):
    resources, changed = tr(), tr("updated")
    for template in (resources, changed):
        template["C"]["properties"]["looks"] = 3
    uuid, _ = up(world, resources)
    world.update("s", changed)
    world.go(until=lambda: any(item.opened == "delete" for item in world.provider.things.values()))
    changed = {**changed, "F": F}
    world.update("s", changed)
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(changed)
    assert world.done("delete") == ["C"]
    assert event_statuses(world, uuid, "C").count("DELETE_COMPLETE") == 1


def test_21_update_replace_missed_cleanup_delete(world: Simulator):
    uuid, ids, second = interrupted_before_cleanup(world)
    gone = deleted(world, uuid)
    assert gone.count("C") == 2
    removed = [id_ for verb, _, id_ in world.provider.log if verb == "delete"]
    assert removed.index(second) > max(removed.index(ids["D"]), removed.index(ids["E"]))
    assert removed.index(ids["A"]) > max(removed.index(ids["C"]), removed.index(second))
