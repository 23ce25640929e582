"""Translation rules, applied to properties before they are converted."""

from __future__ import annotations

import copy
from typing import ClassVar

import pytest

from orchestrator.errors import NotFound
from orchestrator.resources.base import Property, ResourceType, read_update_policy
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.registry import Registry
from orchestrator.resources.type_schema import type_schema, type_template
from orchestrator.schema.constraints import Range
from orchestrator.schema.translation import Add, Delete, Replace, Resolve, translate

UNKNOWN = ...  # any object that no property can have will do; copying returns the same object
TOGETHER = "Cannot define the following properties at the same time: "


def done(rule, values, **options):
    """Apply a rule; check that nothing was changed in place, and that there are no faults."""
    before = copy.deepcopy(values)
    result, faults = translate([rule], values, unknown=UNKNOWN, **options)
    assert faults == []
    assert values == before
    return result


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, {}),
        ({"old": "1"}, {"new": "1"}),
        ({"new": "2"}, {"new": "2"}),
        ({"old": "1", "new": None}, {"new": "1"}),
        ({"old": None, "new": "2"}, {"old": None, "new": "2"}),
        ({"old": UNKNOWN}, {"new": UNKNOWN}),
        ({"old": "1", "new": UNKNOWN}, {"new": UNKNOWN}),
        ({"old": UNKNOWN, "new": "2"}, {"new": "2"}),
    ],
)
def test_an_old_name_is_an_alias_of_the_new_name(given, seen):
    assert done(Replace(("new",), source=("old",)), given) == seen


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, {}),
        ({"l": None}, {"l": None}),
        ({"l": UNKNOWN}, {"l": UNKNOWN}),
        ({"l": [{"a": "1"}]}, {"l": [{"b": "1"}]}),
        ({"l": [{"b": "2"}, {"a": "x"}, None]}, {"l": [{"b": "2"}, {"b": "x"}, None]}),
        ({"l": {"a": "1"}}, {"l": {"b": "1"}}),
        ({"l": "text"}, {"l": "text"}),
    ],
)
def test_an_old_name_inside_a_map_or_each_map_of_a_list_stands_for_its_neighbour(given, seen):
    assert done(Replace(("l", "b"), sibling="a"), given) == seen


def test_a_property_may_move_into_a_map_and_out_of_it():
    assert done(Replace(("m", "x"), source=("old",)), {"old": "1", "m": {}}) == {"m": {"x": "1"}}
    assert done(Replace(("new",), source=("m", "x")), {"m": {"x": "1", "y": "2"}}) == {
        "new": "1",
        "m": {"y": "2"},
    }
    assert done(Replace(("l", "b"), source=("old",)), {"old": "1", "l": [{"a": "2"}, {}]}) == {
        "l": [{"a": "2", "b": "1"}, {"b": "1"}]
    }


def test_properties_without_a_new_place_are_unchanged():
    assert done(Replace(("m", "x"), source=("old",)), {"old": "1"}) == {"old": "1"}


def test_a_literal_precedes_given_values():
    assert done(Replace(("new",), value="v"), {}) == {"new": "v"}
    assert done(Replace(("new",), value="v"), {"new": "w"}) == {"new": "v"}


@pytest.mark.parametrize(
    ("rule", "given", "names", "path"),
    [
        (Replace(("new",), source=("old",)), {"old": "1", "new": "2"}, "new, old", "p.new"),
        (Replace(("new",), source=("m", "x")), {"m": {"x": "1"}, "new": "2"}, "new, m.x", "p.new"),
        (Replace(("m", "x"), source=("old",)), {"old": "1", "m": {"x": "2"}}, "m.x, old", "p.m.x"),
        (Replace(("l", "b"), sibling="a"), {"l": [{"b": 1}, {"a": 1, "b": 2}]}, "l.b, l.a", "p.l[1].b"),
        (Replace(("l", "b"), source=("old",)), {"old": "1", "l": [{}, {"b": 2}]}, "l.b, old", "p.l[1].b"),
    ],
)
def test_an_old_and_a_new_name_together_are_refused(rule, given, names, path):
    _, (fault,) = translate([rule], given, path="p")
    assert (fault.message, fault.path) == (TOGETHER + names, path)


@pytest.mark.parametrize(
    ("rule", "given", "seen"),
    [
        (Add(("l",), items=("x",)), {}, {"l": ["x"]}),
        (Add(("l",), items=("x",)), {"l": None}, {"l": ["x"]}),
        (Add(("l",), items=("x",)), {"l": ["a"]}, {"l": ["a", "x"]}),
        (Add(("l",), items=("x",)), {"l": UNKNOWN}, {"l": UNKNOWN}),
        (Add(("l",), items=("x",)), {"l": "text"}, {"l": "text"}),
        (Add(("l",), source=("old",)), {"old": "1"}, {"old": "1", "l": ["1"]}),
        (
            Add(("l",), source=("old",)),
            {"old": ["1", "2"], "l": ["a"]},
            {"old": ["1", "2"], "l": ["a", "1", "2"]},
        ),
        (Add(("l",), source=("old",)), {"l": ["a"]}, {"l": ["a"]}),
        (Add(("l",), source=("old",)), {"old": UNKNOWN}, {"old": UNKNOWN, "l": [UNKNOWN]}),
        (Add(("l",), source=("m", "x"), make=str.upper), {"m": {"x": "a"}}, {"m": {"x": "a"}, "l": ["A"]}),
        (Add(("n", "l"), items=("x",)), {"n": [{}, {"l": []}]}, {"n": [{"l": ["x"]}, {"l": ["x"]}]}),
    ],
)
def test_things_are_added_to_a_list(rule, given, seen):
    assert done(rule, given) == seen


@pytest.mark.parametrize(
    ("path", "given", "seen"),
    [
        (("old",), {"old": "1", "a": 2}, {"a": 2}),
        (("old",), {}, {}),
        (("l", "a"), {"l": [{"a": 1, "b": 2}, {"b": 3}]}, {"l": [{"b": 2}, {"b": 3}]}),
        (("m", "x"), {"m": {"x": 1, "y": 2}}, {"m": {"y": 2}}),
        (("m", "x"), {"m": UNKNOWN}, {"m": UNKNOWN}),
    ],
)
def test_things_are_taken_away(path, given, seen):
    assert done(Delete(path), given) == seen


def find(finder, entity, value):
    if value == "gone":
        raise NotFound("Network", value)
    return f"{finder}-{entity}-{value}"


@pytest.mark.parametrize(
    ("path", "given", "seen"),
    [
        (("net",), {"net": "a"}, {"net": "f-e-a"}),
        (("net",), {"net": ["a", None, UNKNOWN, "b"]}, {"net": ["f-e-a", None, UNKNOWN, "f-e-b"]}),
        (("l", "net"), {"l": [{"net": "a"}, {"x": 1}]}, {"l": [{"net": "f-e-a"}, {"x": 1}]}),
        (("net",), {"net": None}, {"net": None}),
        (("net",), {"net": ""}, {"net": ""}),
        (("net",), {"net": UNKNOWN}, {"net": UNKNOWN}),
        (("net",), {}, {}),
    ],
)
def test_names_are_resolved_to_ids_if_a_provider_is_available(path, given, seen):
    rule = Resolve(path, "f", "e")
    assert done(rule, given) == given
    assert translate([rule], given, unknown=UNKNOWN, resolve=find) == (seen, [])


@pytest.mark.parametrize(
    ("kind", "seen"), [("port", "f-port-1"), (None, "1"), (UNKNOWN, "1")], ids=["given", "absent", "unknown"]
)
def test_another_property_selects_the_look_up(kind, seen):
    rule = Resolve(("id",), "f", entity_of="kind")
    values = {"id": "1", "kind": kind}
    assert translate([rule], values, unknown=UNKNOWN, resolve=find) == ({**values, "id": seen}, [])


def test_a_name_that_is_not_found_is_a_fault_of_its_place():
    _, (fault,) = translate([Resolve(("nets",), "f")], {"nets": ["a", "gone"]}, path="p", resolve=find)
    assert (fault.message, fault.path) == ("The Network (gone) could not be found.", "p.nets[1]")


def test_rules_are_applied_in_order_and_every_fault_is_reported():
    rules = [Replace(("new",), source=("old",)), Resolve(("new",), "f", "e"), Replace(("y",), source=("x",))]
    assert translate(rules, {"old": "1"}, resolve=find) == ({"new": "f-e-1"}, [])
    _, faults = translate(rules, {"old": "1", "new": "gone", "x": 1, "y": 2}, resolve=find)
    assert [fault.path for fault in faults] == ["new", "new", "y"]


class Sized(ResourceType):
    """A type with an old name, and a policy."""

    name = "Test::Sized"
    properties: ClassVar = {
        "size": Property("integer", constraints=(Range(min=1),)),
        "length": Property("integer"),
        "later": Property("string", implemented=False),
    }
    translation = (Replace(("size",), source=("length",)),)
    update_policy: ClassVar = {
        "rolling": Property(
            "map", schema={"batch": Property("integer", default=1, constraints=(Range(min=1),))}
        )
    }


def test_a_types_properties_are_translated_and_then_converted():
    assert Sized().read_properties({"length": "5"}) == ({"size": 5}, [])
    _, (fault,) = Sized().read_properties({"length": "0"}, path="p")
    assert (fault.message, fault.path) == ("0 is out of range (min: 1)", "p.size")
    assert Sized().read_properties({"length": UNKNOWN}, unknown=UNKNOWN) == ({}, [])


def test_unsupported_properties_are_not_listed():
    types = Registry.of(Sized)
    assert type_schema(types, "Test::Sized")["properties"].keys() == {"size", "length"}
    assert type_template(types, "Test::Sized", "hot")["parameters"].keys() == {"size", "length"}


def test_an_update_policy_obeys_its_schema():
    place = "resources.g.update_policy"
    assert read_update_policy(Sized(), {"rolling": {}}) == ({"rolling": {"batch": 1}}, [])
    _, faults = read_update_policy(Sized(), {"rollin": 1, "rolling": {"batch": 0}}, path=place)
    assert [(fault.path, fault.message) for fault in faults] == [
        (place, "Unknown Property rollin"),
        (f"{place}.rolling.batch", "0 is out of range (min: 1)"),
    ]


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        ({}, [{"class": "lettersdigits", "min": 1}]),
        ({"sequence": "octdigits"}, [{"class": "octdigits", "min": 1}]),
        (
            {"sequence": "octdigits", "character_classes": [{"class": "digits", "min": 2}]},
            [{"class": "digits", "min": 2}, {"class": "octdigits", "min": 1}],
        ),
        ({"character_classes": [None]}, [{"class": "lettersdigits", "min": 1}]),
    ],
)
def test_the_old_sequence_of_a_random_string_is_a_character_class(given, classes):
    observed, faults = RandomString().read_properties(given)
    assert faults == []
    assert "sequence" not in observed
    assert observed["character_classes"] == classes
