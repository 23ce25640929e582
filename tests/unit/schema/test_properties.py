"""Conversion of property values to the arguments of a type's verbs, and the messages for invalid values."""

from __future__ import annotations

import re

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.schema.constraints import AllowedPattern, AllowedValues, Custom, Length, Modulo, Range
from orchestrator.schema.properties import (
    Property,
    convert,
    deprecations,
    immutable_changes,
    immutable_message,
)

UNKNOWN = object()


def convert_one(kind, value, **declared):
    """Convert a single property; return its value and the messages."""
    result, faults = convert({"p": Property(kind, **declared)}, {"p": value}, path="x")
    return result.get("p"), [fault.message for fault in faults]


@pytest.mark.parametrize(
    ("kind", "given", "seen"),
    [
        ("string", "a", "a"),
        ("string", 5, "5"),
        ("string", True, "True"),
        ("string", None, ""),
        ("integer", 5, 5),
        ("integer", "5", 5),
        ("integer", 5.9, 5),
        ("integer", True, 1),
        ("integer", None, 0),
        ("number", 1.5, 1.5),
        ("integer", " 7 ", 7),
        ("number", True, True),
        ("number", "7", 7),
        ("number", "1e3", 1000.0),
        ("number", "1.5", 1.5),
        ("number", None, 0),
        ("boolean", True, True),
        ("boolean", "TRUE", True),
        ("boolean", "false", False),
        ("boolean", None, False),
        ("map", {"a": 1}, {"a": 1}),
        ("map", None, {}),
        ("list", [1, "a"], [1, "a"]),
        ("list", None, []),
        ("any", {"a": [1]}, {"a": [1]}),
        ("any", None, None),
    ],
)
def test_values_are_converted_to_the_type(kind, given, seen):
    value, messages = convert_one(kind, given)
    assert messages == []
    assert value == seen
    assert type(value) is type(seen)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("string", 1.5, "Value must be a string; got 1.5"),
        ("string", ["a"], "Value must be a string; got ['a']"),
        ("string", {"a": 1}, "Value must be a string; got {'a': 1}"),
        ("integer", "x", "Value 'x' is not an integer"),
        ("string", [], "Value must be a string; got []"),
        ("integer", "7.5", "Value '7.5' is not an integer"),
        ("integer", "", "Value '' is not an integer"),
        (
            "integer",
            [1],
            "expected an integer, got a list",
        ),
        ("integer", float("inf"), "Value 'inf' is not an integer"),
        ("integer", float("nan"), "Value 'nan' is not an integer"),
        ("number", "x", "Value 'x' is not a number"),
        ("number", "", "Value '' is not a number"),
        (
            "number",
            {"a": 1},
            "expected a number, got a map",
        ),
        ("number", "nan", "Value 'nan' is not a number"),
        ("boolean", 1, '"1" is not a valid boolean'),
        ("boolean", "1", '"1" is not a valid boolean'),
        ("boolean", " true ", '" true " is not a valid boolean'),
        ("boolean", [], '"[]" is not a valid boolean'),
        ("boolean", "Yes", '"yes" is not a valid boolean'),
        ("map", "a", '"a" is not a map'),
        ("map", '{"a": 1}', '"{"a": 1}" is not a map'),
        ("map", 5, '"5" is not a map'),
        ("map", ["a"], "\"['a']\" is not a map"),
        ("list", 5, '"5" is not a list'),
        ("list", "a,b", "\"'a,b'\" is not a list"),
        ("list", {"a": 1}, "\"{'a': 1}\" is not a list"),
    ],
)
def test_inconvertible_values_are_reported_with_heats_message(kind, given, message):
    assert convert_one(kind, given) == (None, [message])


def test_a_default_stands_in_for_absent_and_for_null():
    schema = {"p": Property("integer", default=7)}
    assert convert(schema, {}) == ({"p": 7}, [])
    assert convert(schema, {"p": None}) == ({"p": 7}, [])


@pytest.mark.parametrize(
    ("declared", "given", "seen"),
    [
        (Property("integer", default="5"), {}, 5),
        (Property("map", default={}, schema={"a": Property("string", default="q")}), {}, {"a": "q"}),
        (
            Property(
                "list", default=[{}], schema=Property("map", schema={"a": Property("string", default="q")})
            ),
            {},
            [{"a": "q"}],
        ),
        (Property("map", schema={"a": Property("string", default="q")}), {"p": None}, {"a": "q"}),
        (Property("list", schema=Property("string")), {"p": ["a", None]}, ["a", ""]),
    ],
)
def test_defaults_and_nulls_are_seen_with_the_defaults_of_their_members(declared, given, seen):
    assert convert({"p": declared}, given) == ({"p": seen}, [])


@pytest.mark.parametrize(
    ("constraint", "kind", "message"),
    [
        (Range(min=1), "integer", "0 is out of range (min: 1)"),
        (Length(min=1), "string", "length (0) is out of range (min: 1)"),
        (AllowedValues(("a",)), "string", '"" is not an allowed value ["a"]'),
        (Modulo(2, 1), "number", "0 is not a multiple of 2 with an offset of 1"),
        (AllowedPattern("a"), "string", '"" does not match pattern "a"'),
        (Length(min=1), "map", "length (0) is out of range (min: 1)"),
    ],
)
def test_the_zero_that_stands_for_null_obeys_the_constraints(constraint, kind, message):
    assert convert_one(kind, None, constraints=(constraint,)) == (None, [message])


def test_a_property_that_is_not_implemented_may_not_be_given():
    schema = {"p": Property("string", implemented=False), "m": Property("map", schema={})}
    for value in ("x", None):
        _, (fault,) = convert(schema, {"p": value}, path="r")
        assert (fault.message, fault.path, fault.where) == ("Property p not implemented yet", "r", "r.p")
    assert convert(schema, {}) == ({}, [])
    _, (fault,) = convert({"m": Property("map", schema=schema)}, {"m": {"p": "x"}}, path="r")
    assert fault.path == "r.m"


def test_deprecated_properties_cause_warnings_everywhere():
    old = Property("string", deprecated="use new instead")
    schema = {
        "old": old,
        "m": Property("map", schema={"old": old}),
        "l": Property("list", schema=Property("map", schema={"old": old})),
        "s": Property("list", schema=Property("string")),
    }
    supplied = {"old": "x", "m": {"old": "x"}, "l": [{"old": None}, {"old": "x"}, UNKNOWN], "s": ["a"]}
    warnings = deprecations(schema, supplied, path="r")
    assert [warning.path for warning in warnings] == ["r.old", "r.m.old", "r.l[1].old"]
    assert {warning.message for warning in warnings} == {"Property old is deprecated: use new instead"}
    assert convert(schema, {"old": "x"}) == ({"old": "x"}, [])
    assert deprecations(schema, {"l": UNKNOWN, "m": UNKNOWN}) == []


def test_changes_of_immutable_properties_are_named():
    fixed = Property("string", immutable=True)
    schema = {"b": fixed, "a": fixed, "c": Property("string", update_allowed=True)}
    assert immutable_changes(schema, {"a": "1", "b": "1", "c": "1"}, {"a": "2", "b": "2", "c": "2"}) == [
        "a",
        "b",
    ]
    assert immutable_changes(schema, {"a": "1"}, {}) == ["a"]
    assert immutable_changes(schema, {}, {"a": "1"}) == ["a"]
    assert immutable_changes(schema, {"a": "1", "c": "1"}, {"a": "1"}) == []
    assert (
        immutable_message(["a", "b"], "r", "My::T")
        == "Update to properties a, b of r (My::T) is not supported."
    )


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ({"type": "text"}, "Invalid type (text)"),
        (
            {"type": "string", "immutable": True, "update_allowed": True},
            "Options UpdateAllowed and Immutable cannot both be True",
        ),
        ({"type": "string", "schema": {"a": Property("string")}}, "string has no members of that kind"),
        ({"type": "map", "schema": Property("string")}, "map has no members of that kind"),
        ({"type": "integer", "constraints": (Length(1),)}, "Length constraint invalid for integer"),
        ({"type": "integer", "default": "x"}, "default: Value 'x' is not an integer"),
        (
            {"type": "integer", "default": 5, "constraints": (Range(max=3),)},
            "default: 5 is out of range (max: 3)",
        ),
        (
            {"type": "list", "default": ["x"], "schema": Property("integer")},
            "default: Value 'x' is not an integer",
        ),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(declaration, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Property(**declaration)


def test_a_default_need_not_meet_the_constraints_of_other_templates():
    assert Property("string", default="x", constraints=(Custom("ip_addr"),)).default_value == "x"


@pytest.mark.parametrize(
    ("kind", "given", "seen"),
    [
        ("map", '{"a": 1}', '{"a": 1}'),
        ("map", "any text", "any text"),
        ("map", ["a", None], '["a", null]'),
        ("map", {"a": 1}, {"a": 1}),
        ("map", None, {}),
        ("list", "a,,b", ["a", "", "b"]),
        ("list", "", []),
        ("list", ["a"], ["a"]),
        ("list", None, []),
        ("string", 5, "5"),
        ("number", "5", 5),
    ],
)
def test_a_template_resource_takes_more(kind, given, seen):
    assert convert_one(kind, given, lax=True) == (seen, [])


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("map", 5, '"5" is not a map'),
        ("list", {"a": 1}, "\"{'a': 1}\" is not a list"),
        ("list", 5, '"5" is not a list'),
        ("string", ["a"], "Value must be a string; got ['a']"),
        ("boolean", "yes", '"yes" is not a valid boolean'),
    ],
)
def test_a_template_resource_does_not_take_everything(kind, given, message):
    assert convert_one(kind, given, lax=True) == (None, [message])


def test_a_list_for_a_template_resource_may_contain_unknown_values():
    schema = {"m": Property("map", lax=True), "l": Property("list", lax=True)}
    assert convert(schema, {"m": [UNKNOWN], "l": [UNKNOWN]}, unknown=UNKNOWN) == ({}, [])


def test_absent_without_default_stays_absent():
    assert convert({"p": Property("string")}, {}) == ({}, [])


def test_a_missing_required_property_is_the_fault_of_the_section():
    _, (fault,) = convert({"p": Property("string", required=True)}, {}, path="resources.r.properties")
    assert (fault.message, fault.path) == ("Property p not assigned", "resources.r.properties")


def test_a_null_required_property_counts_as_assigned():
    assert convert({"p": Property("string", required=True)}, {"p": None}) == ({"p": ""}, [])


def test_an_unknown_property_is_reported_with_a_suggestion():
    _, (fault,) = convert({"length": Property("integer")}, {"lenght": 3}, path="resources.r.properties")
    assert fault.message == "Unknown Property lenght"
    assert fault.path == "resources.r.properties"
    assert fault.where == "resources.r.properties.lenght"
    assert fault.hint == 'did you mean "length"?'


def test_hidden_properties_are_never_suggested():
    _, (fault,) = convert({"sequence": Property("string", hidden=True)}, {"sequense": "x"})
    assert fault.hint == ""


def test_a_type_that_takes_anything_keeps_undeclared_names():
    values = {"x": {"y": [1]}, "p": 5}
    assert convert({"p": Property("string")}, values, any_properties=True) == (
        {"x": {"y": [1]}, "p": "5"},
        [],
    )


NESTED = {
    "rules": Property(
        "list",
        constraints=(Length(max=2),),
        schema=Property(
            "map",
            schema={
                "port": Property("integer", required=True, constraints=(Range(1, 65535),)),
                "protocol": Property("string", default="tcp", constraints=(AllowedValues(("tcp", "udp")),)),
            },
        ),
    )
}


def test_members_are_converted_by_their_own_schema():
    result, faults = convert(NESTED, {"rules": [{"port": "80"}, {"port": 53, "protocol": "udp"}]})
    assert faults == []
    assert result == {"rules": [{"port": 80, "protocol": "tcp"}, {"port": 53, "protocol": "udp"}]}


def test_every_fault_of_the_members_is_reported_with_its_path():
    rules = [{"port": 0, "prtocol": "udp"}, {"protocol": "icmp"}]
    _, faults = convert(NESTED, {"rules": rules}, path="p")
    assert [(fault.path, fault.message) for fault in faults] == [
        ("p.rules[0]", "Unknown Property prtocol"),
        ("p.rules[0].port", "0 is out of range (min: 1, max: 65535)"),
        ("p.rules[1]", "Property port not assigned"),
        ("p.rules[1].protocol", '"icmp" is not an allowed value ["tcp", "udp"]'),
    ]


def test_the_list_itself_obeys_its_constraint_too():
    _, (fault,) = convert(NESTED, {"rules": [{"port": 1}] * 3}, path="p")
    assert (fault.path, fault.message) == ("p.rules", "length (3) is out of range (max: 2)")


def test_an_item_of_the_wrong_type_is_reported_with_its_index():
    _, (fault,) = convert(NESTED, {"rules": [{"port": 1}, "x"]}, path="p")
    assert (fault.path, fault.message) == ("p.rules[1]", '"x" is not a map')


@pytest.mark.parametrize(
    "value",
    [UNKNOWN, [UNKNOWN], [{"port": UNKNOWN}], [{"port": 1, "protocol": UNKNOWN}]],
)
def test_unknown_values_break_no_rule_and_are_omitted(value):
    assert convert(NESTED, {"rules": value}, unknown=UNKNOWN) == ({}, [])


def test_known_values_next_to_unknown_values_are_still_checked():
    rules = [{"port": UNKNOWN, "protocol": "icmp", "prot": 1}]
    _, faults = convert(NESTED, {"rules": rules}, path="p", unknown=UNKNOWN)
    assert [fault.path for fault in faults] == ["p.rules[0]", "p.rules[0].protocol"]


def test_the_unknown_deep_inside_free_data_is_noticed():
    schema = {"m": Property("map"), "a": Property("any")}
    values = {"m": {"x": [UNKNOWN]}, "a": [{"y": UNKNOWN}]}
    assert convert(schema, values, unknown=UNKNOWN) == ({}, [])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
EVERY_KIND = {
    **{kind: Property(kind) for kind in ("string", "integer", "number", "boolean", "map", "list", "any")},
    "ports": Property("list", schema=Property("integer", constraints=(Range(1, 9),))),
    **NESTED,
}


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("given", ["9" * 20, str(-(2**63) - 1), "1" + "0" * 400])
def test_a_whole_number_fits_in_64_bits(kind, given):
    [fault] = convert({kind: Property(kind)}, {kind: given})[1]
    assert fault.message.endswith("does not fit in 64 bits")


@example({"integer": 1.8446744073709552e19})
@given(st.dictionaries(st.sampled_from([*EVERY_KIND, "other"]), JSON))
def test_any_given_value_is_converted_or_reported(values):
    result, faults = convert(EVERY_KIND, values, path="p")
    blamed = {name for name in values for fault in faults if fault.where.startswith(f"p.{name}")}
    assert values.keys() <= result.keys() | blamed
    if not faults:
        orjson.dumps(result)


@given(st.dictionaries(st.sampled_from(list(EVERY_KIND)), JSON))
def test_converted_values_are_stable(values):
    result, _ = convert(EVERY_KIND, values)
    clean = {name: value for name, value in result.items() if convert(EVERY_KIND, {name: value})[1] == []}
    assert convert(EVERY_KIND, clean) == (clean, [])
