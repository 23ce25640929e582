"""What each constraint accepts, what it says, and how malformed ones are refused."""

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
        (AllowedValues((1, 2)), ["1"], "comma_delimited_list"),
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
        (Length(min=1), "", "string", "length (0) is out of range (min: 1, max: None)"),
        (Range(1, 5), 6, "number", "6 is out of range (min: 1, max: 5)"),
        (Range(max=5), 5.5, "number", "5.5 is out of range (min: None, max: 5)"),
        (Modulo(10, 2), 13, "number", "13 is not a multiple of 10 with an offset of 2"),
        (AllowedValues(("a", "b")), "v", "string", '"v" is not an allowed value ["a", "b"]'),
        (AllowedValues((1, 2)), True, "number", '"True" is not an allowed value [1, 2]'),
        (AllowedValues(("a",)), ["a", "x"], "list", '"["a", "x"]" is not an allowed value ["a"]'),
        (AllowedPattern("[a-z]+"), "abc1", "string", '"abc1" does not match pattern "[a-z]+"'),
        (AllowedPattern("[a-z]+"), "abc\n", "string", '"abc\n" does not match pattern "[a-z]+"'),
        (Custom("ip_addr"), "x", "string", "Error validating value 'x': Invalid IP address"),
        (Custom("nova.flavr"), "v", "string", '"v" does not validate nova.flavr (constraint not found)'),
    ],
)
def test_a_value_outside_is_told_in_heats_words(constraint, value, kind, message):
    assert constraint.check(value, kind) == message


def test_a_description_replaces_the_message():
    assert Length(min=8, description="Too short.").check("abc", "string") == "Too short."
    assert Custom("ip_addr", description="An address, please.").check("x", "string") == "An address, please."


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"length": {"min": 1, "max": 2}}, "string"),
        ({"range": {"min": 0.5}}, "number"),
        ({"modulo": {"step": 2, "offset": 1}, "description": "odd"}, "number"),
        ({"allowed_values": ["a", 1]}, "string"),
        ({"allowed_pattern": "a*"}, "string"),
        ({"custom_constraint": "ip_addr"}, "comma_delimited_list"),
    ],
)
def test_an_item_is_read_and_written_back_as_it_was(item, kind):
    assert constraint_from_hot(item, kind).to_hot() == item


@pytest.mark.parametrize(
    ("item", "kind", "message"),
    [
        ({}, "string", "No constraint expressed"),
        ({"description": "d"}, "string", "No constraint expressed"),
        ("length", "string", "Invalid parameter constraints, expected a mapping"),
        ({"lenght": {}}, "string", "Invalid key 'lenght' for parameter constraints"),
        ({"length": {"mim": 1}}, "string", "Invalid key 'mim' for length constraint"),
        ({"length": [1, 2]}, "string", "Invalid length constraint, expected a mapping"),
        (
            {"length": {}},
            "string",
            "A length constraint must have a min value and/or a max value specified.",
        ),
        ({"length": {"min": 1.5}}, "string", "min/max length must be integral"),
        ({"length": {"min": 1}}, "number", "Length constraint invalid for number"),
        ({"range": {}}, "number", "A range constraint must have a min value and/or a max value specified."),
        ({"range": {"min": "x"}}, "number", "min/max must be numeric"),
        ({"range": {"min": 1}}, "string", "Range constraint invalid for string"),
        (
            {"modulo": {"step": 2}},
            "number",
            "A modulo constraint must have a step value and an offset value specified.",
        ),
        ({"modulo": {"step": 0, "offset": 0}}, "number", "step cannot be 0."),
        (
            {"modulo": {"step": 2, "offset": 2}},
            "number",
            "offset must be smaller (by absolute value) than step.",
        ),
        (
            {"modulo": {"step": 3, "offset": -1}},
            "number",
            "step and offset must be both positive or both negative.",
        ),
        ({"modulo": {"step": 2.5, "offset": 1}}, "number", "step/offset must be integer"),
        ({"allowed_values": "a"}, "string", "AllowedValues must be a list"),
        ({"allowed_values": [1]}, "json", "AllowedValues constraint invalid for json"),
        ({"allowed_pattern": 1}, "string", "AllowedPattern must be a string"),
        ({"allowed_pattern": "a"}, "number", "AllowedPattern constraint invalid for number"),
        ({"custom_constraint": "ip_addr"}, "json", "CustomConstraint constraint invalid for json"),
    ],
)
def test_a_malformed_item_is_refused_in_heats_words(item, kind, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        constraint_from_hot(item, kind)


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "(" * 5000 + ")" * 5000])
def test_a_pattern_that_is_no_regular_expression_is_refused(pattern):
    with pytest.raises(ValueError, match="is not a regular expression"):
        constraint_from_hot({"allowed_pattern": pattern}, "string")


def test_a_pattern_that_python_only_warns_about_is_accepted():
    assert constraint_from_hot({"allowed_pattern": "[[a]+"}, "string").check("[a", "string") is None
