"""Completed updates: kept, updated, replaced and deleted resources, and the inputs of PUT and PATCH."""

from __future__ import annotations

from functools import partial

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.graph.layout import lay_out
from orchestrator.operations.planning import traversal_plan
from tests.scenarios.stacks.five_resources import five, ids, values
from tests.scenarios.world import test_resource


def test_added_resources_are_created_and_the_rest_is_not_touched(world):
    uuid = world.create("s", five())
    world.deliver_all()
    before, reported = ids(world), len(world.events(uuid))
    world.update("s", five(F=test_resource("f", requires=("D", "E"))))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert {name: ids(world)[name] for name in before} == before
    assert world.events(uuid)[reported:] == [
        "s UPDATE_IN_PROGRESS",
        "F CREATE_IN_PROGRESS",
        "F CREATE_COMPLETE",
        "s UPDATE_COMPLETE",
    ]


def test_omitted_resources_are_deleted(world):
    uuid = world.create("s", five())
    world.deliver_all()
    before = ids(world)
    world.update("s", five(E=None))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    del before["E"]
    assert ids(world) == before
    assert [e for e in world.events(uuid) if "DELETE" in e] == ["E DELETE_IN_PROGRESS", "E DELETE_COMPLETE"]


def test_a_changed_value_ripples_in_place(world):
    uuid = world.create("s", five())
    world.deliver_all()
    before = ids(world)
    world.update("s", five(C=test_resource("new", requires=("A", "B"))))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert ids(world) == before
    assert values(world)["E"] == "new"
    assert [e for e in world.events(uuid) if "UPDATE_COMPLETE" in e] == [
        "C UPDATE_COMPLETE",
        "E UPDATE_COMPLETE",
        "s UPDATE_COMPLETE",
    ]


def test_a_replacement_is_created_before_the_old_resource_is_deleted(world):
    replacing = {"requires": ("A", "B"), "update_replace_value": "1"}
    uuid = world.create("s", five(C=test_resource("4alpha", **replacing)))
    world.deliver_all()
    before = ids(world)
    world.update("s", five(C=test_resource("4alpha", **{**replacing, "update_replace_value": "2"})))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert {name for name, id_ in ids(world).items() if before[name] != id_} == {"C"}
    assert values(world)["D"] == ids(world)["C"]
    events = [e for e in world.events(uuid) if e.startswith(("C ", "D "))][4:]
    assert (
        events.index("C CREATE_COMPLETE")
        < events.index("D UPDATE_COMPLETE")
        < events.index("C DELETE_IN_PROGRESS")
    )
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []


def test_the_same_template_again_touches_nothing(world):
    uuid = world.create("s", five())
    world.deliver_all()
    reported = len(world.events(uuid))
    world.update("s", five())
    world.deliver_all()
    assert world.events(uuid)[reported:] == ["s UPDATE_IN_PROGRESS", "s UPDATE_COMPLETE"]
    assert world.rows("SELECT 1 FROM graph_node WHERE kind NOT IN ('plan', 'finish')") == []


@pytest.mark.parametrize("carrier", ["OS::Heat::TestResource", "child.yaml"])
def test_a_renamed_type_is_reported_by_its_new_name_and_nothing_is_replaced(world, carrier):
    child = '{"heat_template_version": "2021-04-16", "parameters": {"value": {"type": "string"}}}'
    supplied = {
        "files": {"child.yaml": child},
        "environment": {"resource_registry": {"My::One": carrier, "My::Two": carrier}},
    }

    def named(type_, value):
        return {"a": {"type": type_, "properties": {"value": value}}}

    uuid = world.create("s", named("My::One", "v"), **supplied)
    world.deliver_all()
    before = ids(world)
    for type_, value in (("My::Two", "v"), ("My::One", "w")):
        world.update("s", named(type_, value), **supplied)
        world.deliver_all()
        assert world.state(uuid) == "UPDATE_COMPLETE"
        assert ids(world) == before
        assert world.rows("SELECT type, runs_as FROM resource") == [(type_, carrier)]


def test_dependencies_may_be_turned_round(world):
    first = {
        "A": test_resource("x", update_replace_value="1"),
        "B": test_resource("y", requires=("A",), update_replace_value="1"),
    }
    second = {
        "A": test_resource("x", requires=("B",), update_replace_value="2"),
        "B": test_resource("y", update_replace_value="2"),
    }
    uuid = world.create("s", first)
    world.deliver_all()
    world.update("s", second)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    removed = [e for e in world.events(uuid) if e.endswith("DELETE_COMPLETE")]
    assert removed == ["B DELETE_COMPLETE", "A DELETE_COMPLETE"]  # the old B stood on the old A
    assert len(world.rows("SELECT 1 FROM resource")) == 2


def test_a_patch_keeps_omitted_fields(world):
    parameters = {name: {"type": "string", "default": "d"} for name in ("p", "q")}
    parameters["h"] = {"type": "string", "hidden": True}
    joined = {"list_join": ["-", [{"get_param": name} for name in ("p", "q", "h")]]}
    uuid = world.create(
        "s",
        {"v": test_resource(joined)},
        parameters=parameters,
        environment={"parameters": {"p": "1", "q": "2", "h": "secret"}},
    )
    world.deliver_all()
    world.patch("s", parameters={"p": "3"})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert shown(world, "v") == "3-2-secret"
    world.patch("s", clear_parameters=["q"])
    world.deliver_all()
    assert shown(world, "v") == "3-d-secret"
    reported = len(world.events(uuid))
    world.patch("s")
    world.deliver_all()
    assert world.events(uuid)[reported:] == ["s UPDATE_IN_PROGRESS", "s UPDATE_COMPLETE"]


def shown(world, name):
    [row] = world.rows(
        "SELECT attributes, convert_from(sealed, 'UTF8') AS sealed FROM resource WHERE name = :n", n=name
    )
    opened = world.cipher.open(row.sealed.encode()) if row.sealed else {"attributes": row.attributes}
    return opened["attributes"]["output"]


def test_a_put_resets_omitted_fields(world):
    parameters = {"p": {"type": "string", "default": "d"}}
    resources = {"v": test_resource({"get_param": "p"})}
    world.create("s", resources, parameters=parameters, environment={"parameters": {"p": "1"}})
    world.deliver_all()
    world.update("s", resources, parameters=parameters)
    world.deliver_all()
    assert values(world) == {"v": "d"}


def test_an_immutable_parameter_stays(world):
    parameters = {"p": {"type": "string", "default": "d", "immutable": True}}
    resources = {"v": test_resource({"get_param": "p"})}
    uuid = world.create("s", resources, parameters=parameters)
    world.deliver_all()
    with pytest.raises(InvalidTemplate, match="immutable"):
        world.patch("s", parameters={"p": "other"})
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(world.rows("SELECT 1 FROM revision")) == 1


def test_a_flipped_condition_makes_and_removes(world):
    resources = {"on": {**test_resource("x"), "condition": "c"}, "always": test_resource("y")}
    shared = {"conditions": {"c": {"get_param": "p"}}, "parameters": {"p": {"type": "boolean"}}}
    world.create("s", resources, **shared, environment={"parameters": {"p": False}})
    world.deliver_all()
    for flag, existing in ((True, {"on", "always"}), (False, {"always"}), (True, {"on", "always"})):
        world.patch("s", parameters={"p": flag})
        world.deliver_all()
        assert set(values(world)) == existing


def test_a_change_of_a_leaf_writes_a_handful_of_nodes(world):
    resources = {f"r{n}": test_resource(str(n), requires=[f"r{n - 1}"] if n % 10 else ()) for n in range(300)}
    world.create("s", resources)
    world.deliver_all()
    resources["r299"] = test_resource("new", requires=["r298"])
    world.update("s", resources)
    world.deliver_all()
    assert len(world.rows("SELECT 1 FROM graph_node")) == 3  # the plan, the leaf, the finish
    resources["r10"] = test_resource("new")
    world.update("s", resources)
    world.deliver_all()
    assert len(world.rows("SELECT 1 FROM graph_node")) == 12
    [row] = world.rows("SELECT count(*) AS n FROM resource_definition WHERE valid_to IS NULL")
    assert row.n == 300


def test_nodes_without_changed_inputs_are_settled_without_a_visit(world):
    """r1 is replaced with the same output: r2 and r3 are not visited."""
    resources = {
        "r1": test_resource("same"),
        "r2": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["r1", "output"]}}},
        "r3": test_resource({"get_attr": ["r2", "value"]}),
    }
    uuid = world.create("s", resources)
    world.deliver_all()
    reported = len(world.events(uuid))
    resources["r1"] = {**test_resource("same"), "metadata": {"changed": True}}
    world.update("s", resources)
    delivered = 0
    while world.messages:
        delivered += world.deliver()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert delivered == 3  # the plan, r1, the finish
    assert [e for e in world.events(uuid)[reported:] if e.startswith("r")] == [
        "r1 UPDATE_IN_PROGRESS",
        "r1 UPDATE_COMPLETE",
    ]


def test_a_delete_with_several_join_nodes_completes(world, monkeypatch):
    """Both plans of the update have joins before the end: the second's are its own."""
    monkeypatch.setattr(traversal_plan, "lay_out", partial(lay_out, width=3))
    expected = {f"r{n}": test_resource("1", update_replace_value="1") for n in range(10)}
    uuid = world.create("s", expected)
    world.deliver_all()
    expected = {f"r{n}": test_resource("1", update_replace_value="2") for n in range(10)}
    world.update("s", expected)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(world.rows("SELECT 1 FROM resource")) == 10
    joins = "SELECT 1 FROM graph_node WHERE kind = 'join' AND traversal = 2 AND state = 'ready'"
    assert len(world.rows(joins)) == 2 * (4 + 2)


def test_an_update_refuses_unknown_parameters_and_a_patch_drops_them(world):
    parameters = {"p": {"type": "string", "default": "x"}}
    world.create("s", {"a": test_resource()}, parameters=parameters)
    world.deliver_all()
    with pytest.raises(InvalidTemplate, match=r"The Parameter \(typo\) was not defined in template\."):
        world.update("s", {"a": test_resource()}, environment={"parameters": {"typo": "1"}})
    world.patch("s", parameters={"typo": "1"})  # as in Heat
    world.deliver_all()
    assert world.stack_row("s").status == "COMPLETE"


def test_every_missing_nested_template_is_reported_with_its_line(world):
    text = """heat_template_version: 2021-04-16
resources:
  a:
    type: one.yaml
  b:
    type: two.yaml
"""
    with pytest.raises(InvalidTemplate) as refused:
        world.submit("s", text)
    result = [(fault.path, fault.line) for fault in refused.value.diagnostics]
    assert result == [("resources.a.type", 4), ("resources.b.type", 6)]
    for fault, name in zip(refused.value.diagnostics, ("one.yaml", "two.yaml"), strict=True):
        assert f'"{name}"' in fault.message
