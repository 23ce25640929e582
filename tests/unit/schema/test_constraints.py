"""Accepted values and messages of each constraint, and the refusal of malformed constraints."""

from __future__ import annotations

import re

import pytest

from orchestrator.schema.constraints import (
    AllowedPattern,
    AllowedValues,
    Custom,
    Length,
    Modulo,
    Range,
    constraint_from_hot,
    misplaced,
)


@pytest.mark.parametrize(
    ("constraint", "value", "kind"),
    [
        (Length(min=2), "ab", "string"),
        (Length(max=2), [1, 2], "list"),
        (Length(min=1, max=1), {"a": 1}, "json"),
        (Range(min=1), 1, "number"),
        (Range(max=1.5), 1.5, "number"),
        (Range(1, 3), 2, "integer"),
        (Modulo(10, 2), 12, "number"),
        (Modulo(-10, -2), -12, "number"),
        (AllowedValues(("a", "b")), "a", "string"),
        (AllowedValues((1, 2)), "1", "string"),
        (AllowedValues(("1", "2")), 2, "number"),
        (AllowedValues(("true",)), True, "boolean"),
        (AllowedValues(("a", "b")), ["b", "a", "a"], "list"),
        (AllowedValues(("yes", 0)), True, "boolean"),
        (AllowedValues(("yes", 0)), False, "boolean"),
        (AllowedValues((1, 2)), True, "number"),
        (AllowedValues((1.0,)), "1.0", "string"),
        (AllowedValues((True,)), "True", "string"),
        (AllowedValues(("1",)), ["1"], "comma_delimited_list"),
        (AllowedValues(("a",)), [], "list"),
        (AllowedPattern("[a-z]+"), "abc", "string"),
        (AllowedPattern("a|ab"), "ab", "string"),
        (Custom("ip_addr"), "10.0.0.1", "string"),
        (Custom("ip_addr"), ["10.0.0.1", "::1"], "list"),
    ],
)
def test_a_value_within_the_constraint_is_fine(constraint, value, kind):
    assert constraint.check(value, kind) is None


@pytest.mark.parametrize(
    ("constraint", "value", "kind", "message"),
    [
        (Length(2, 3), "abcd", "string", "length (4) is out of range (min: 2, max: 3)"),
        (Length(min=1), "", "string", "length (0) is out of range (min: 1)"),
        (Range(1, 5), 6, "number", "6 is out of range (min: 1, max: 5)"),
        (Range(1, 5), 5.5, "number", "5.5 is out of range (min: 1, max: 5)"),
        (Range(max=5), 5.5, "number", "5.5 is out of range (max: 5)"),
        (Modulo(10, 2), 13, "number", "13 is not a multiple of 10 with an offset of 2"),
        (AllowedValues(("a", "b")), "v", "string", '"v" is not an allowed value ["a", "b"]'),
        (AllowedValues(('"é',)), "v", "string", '"v" is not an allowed value ["\\"\\u00e9"]'),
        (AllowedValues((1, 2)), 3.5, "number", "3.5 is not an allowed value [1, 2]"),
        (AllowedValues((1, 2)), False, "number", "false is not an allowed value [1, 2]"),
        (AllowedValues((True,)), False, "boolean", "false is not an allowed value [true]"),
        (AllowedValues(("x",)), 1, "number", 'Value "x" is invalid for data type "number".'),
        (
            AllowedValues((True, "maybe")),
            True,
            "boolean",
            'Value "maybe" is invalid for data type "boolean".',
        ),
        (AllowedValues(("a",)), ["a", "x"], "list", '["a", "x"] is not an allowed value ["a"]'),
        (AllowedValues((1,)), ["1"], "comma_delimited_list", '["1"] is not an allowed value [1]'),
        (AllowedValues((None,)), "", "string", '"" is not an allowed value [null]'),
        (Length(1), 5, "json", "expected a string, a list or a map, got a number"),
        (AllowedPattern("5"), 5, "string", "expected a string, got a number"),
        (Modulo(2.0, 0), 3, "number", "3 is not a multiple of 2.0 with an offset of 0"),
        (
            Custom("ip_addr"),
            ["10.0.0.1", "x"],
            "list",
            "Error validating value '['10.0.0.1', 'x']': Invalid IP address",
        ),
        (
            Custom("nova.flavr"),
            ["a", "b"],
            "list",
            "\"['a', 'b']\" does not validate nova.flavr (constraint not found)",
        ),
        (AllowedPattern("[a-z]+"), "abc1", "string", '"abc1" does not match pattern "[a-z]+"'),
        (AllowedPattern("[a-z]+"), "abc\n", "string", '"abc\n" does not match pattern "[a-z]+"'),
        (Custom("ip_addr"), "x", "string", "Error validating value 'x': Invalid IP address"),
        (Custom("nova.flavr"), "v", "string", '"v" does not validate nova.flavr (constraint not found)'),
    ],
)
def test_a_value_outside_is_reported_with_heats_message(constraint, value, kind, message):
    assert constraint.check(value, kind) == message


def test_a_description_replaces_the_message():
    assert Length(min=8, description="Too short.").check("abc", "string") == "Too short."
    assert Custom("ip_addr", description="An address, please.").check("x", "string") == "An address, please."


@pytest.mark.parametrize(
    "item",
    [
        {"length": {"min": 1, "max": 2}},
        {"range": {"min": 0.5}},
        {"modulo": {"step": 2, "offset": 1}, "description": "odd"},
        {"allowed_values": ["a", 1]},
        {"allowed_pattern": "a*"},
        {"custom_constraint": "ip_addr"},
    ],
)
def test_an_item_is_read_and_written_back_as_it_was(item):
    assert constraint_from_hot(item).to_hot() == item


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({}, "No constraint expressed"),
        ({"description": "d"}, "No constraint expressed"),
        ("length", "Invalid parameter constraints, expected a mapping"),
        (None, "Invalid parameter constraints, expected a mapping"),
        ({"lenght": {}}, "Invalid key 'lenght' for parameter constraints"),
        ({"length": {"min": 1, "mim": 1}}, "Invalid key 'mim' for length constraint"),
        ({"length": [1, 2]}, "Invalid length constraint, expected a mapping"),
        ({"length": {}}, "A length constraint must have a min value and/or a max value specified."),
        (
            {"length": {"min": None}},
            "A length constraint must have a min value and/or a max value specified.",
        ),
        ({"length": {"min": 1.5}}, "min/max length must be integral"),
        ({"length": {"min": 2.0}}, "min/max length must be integral"),
        ({"range": {}}, "A range constraint must have a min value and/or a max value specified."),
        ({"range": {"min": "x"}}, "min/max must be numeric"),
        ({"range": {"min": [1]}}, "min/max must be numeric"),
        (
            {"modulo": {"step": 2}},
            "A modulo constraint must have a step value and an offset value specified.",
        ),
        ({"modulo": {"step": 0, "offset": 0}}, "step cannot be 0."),
        ({"modulo": {"step": 2, "offset": 2}}, "offset must be smaller (by absolute value) than step."),
        (
            {"modulo": {"step": 3, "offset": -1}},
            "step and offset must be both positive or both negative.",
        ),
        ({"modulo": {"step": 2.5, "offset": 1}}, "step/offset must be integer"),
        ({"allowed_values": "a"}, "AllowedValues must be a list"),
        ({"allowed_values": None}, "AllowedValues must be a list"),
        ({"allowed_pattern": 1}, "AllowedPattern must be a string"),
    ],
)
def test_a_malformed_item_is_refused_in_heats_words(item, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        constraint_from_hot(item)


@pytest.mark.parametrize(
    ("constraint", "kind", "message"),
    [
        (Length(1), "number", "Length constraint invalid for number"),
        (Length(1), "any", "Length constraint invalid for any"),
        (Range(1), "string", "Range constraint invalid for string"),
        (Modulo(2, 0), "json", "Modulo constraint invalid for json"),
        (AllowedValues((1,)), "json", "AllowedValues constraint invalid for json"),
        (
            AllowedPattern("a"),
            "comma_delimited_list",
            "AllowedPattern constraint invalid for comma_delimited_list",
        ),
        (Custom("ip_addr"), "json", "CustomConstraint constraint invalid for json"),
        (Custom("ip_addr"), "boolean", None),
        (Length(1), "json", None),
    ],
)
def test_a_constraint_belongs_to_certain_types(constraint, kind, message):
    assert misplaced(constraint, kind) == message


def test_bounds_may_be_written_as_text():
    assert constraint_from_hot({"length": {"min": "2"}}) == Length(2)
    assert constraint_from_hot({"range": {"max": "2.5"}}) == Range(max=2.5)
    assert constraint_from_hot({"modulo": {"step": "2", "offset": "1"}}) == Modulo(2, 1)


def test_of_several_keys_in_an_item_the_first_in_a_fixed_order_wins():
    both = {"allowed_pattern": "a", "range": {"min": 5}, "modulo": {"step": 2, "offset": 0}}
    assert constraint_from_hot(both) == Modulo(2, 0)
    assert constraint_from_hot(both, modulo=False) == Range(5)
    assert constraint_from_hot({"allowed_pattern": "b", "allowed_values": ["c"]}) == AllowedValues(("c",))


def test_versions_without_modulo_overlook_it():
    with pytest.raises(ValueError, match="No constraint expressed"):
        constraint_from_hot({"modulo": {"step": 2, "offset": 0}}, modulo=False)


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "(" * 5000 + ")" * 5000])
def test_a_pattern_that_is_no_regular_expression_is_refused(pattern):
    with pytest.raises(ValueError, match="is not a regular expression"):
        constraint_from_hot({"allowed_pattern": pattern})


def test_a_pattern_that_python_only_warns_about_is_accepted():
    assert constraint_from_hot({"allowed_pattern": "[[a]+"}).check("[a", "string") is None
