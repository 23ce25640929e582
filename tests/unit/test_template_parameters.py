"""Parameters: declarations, conversion, constraints, precedence (spec/hot-language.md §4)."""

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.parameters import ParameterSchema, ParameterValues

NEW, OLD = "2018-08-31", "2013-05-23"


def schema(kind="string", name="p", **keys):
    return ParameterSchema.from_hot(name, {"type": kind, **keys}, NEW)


def declaration_fault(body, version=NEW):
    with pytest.raises(InvalidTemplate) as caught:
        ParameterSchema.from_hot("p", body, version)
    return [fault.message for fault in caught.value.diagnostics]


def build(schemas, supplied=(), defaults=(), **more):
    by_name = {one.name: one for one in schemas}
    return ParameterValues.build(by_name, dict(supplied), dict(defaults), {"OS::stack_id": "id"}, **more)


def fault(*args, **more):
    with pytest.raises(InvalidTemplate) as caught:
        build(*args, **more)
    return [(one.heat_type, one.message) for one in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("kind", "given", "value", "text"),
    [
        ("string", "a", "a", "a"),
        ("string", 5, "5", "5"),
        ("string", True, "True", "True"),
        ("string", 1.5, "1.5", "1.5"),
        ("string", "", "", ""),
        ("number", "7", 7, "7"),
        ("number", "7.0", 7.0, "7.0"),
        ("number", 7, 7, "7"),
        ("number", -1.5, -1.5, "-1.5"),
        ("comma_delimited_list", "a,b,,c", ["a", "b", "", "c"], "a,b,,c"),
        ("comma_delimited_list", "a, b", ["a", " b"], "a, b"),
        ("comma_delimited_list", "", [], ""),
        ("comma_delimited_list", ["a", 1], ["a", "1"], "a,1"),
        ("json", '{"a": [1]}', {"a": [1]}, '{"a":[1]}'),
        ("json", {"a": None}, {"a": None}, '{"a":null}'),
        ("json", [1], [1], "[1]"),
        *[("boolean", word, True, "True") for word in (True, "t", "TRUE", "on", "y", "yes", "1", 1)],
        *[("boolean", word, False, "False") for word in (False, "f", "False", "off", "n", "NO", "0", 0)],
    ],
)
def test_values_are_converted_and_shown_as_text(kind, given, value, text):
    values = build([schema(kind)], {"p": given})
    assert values["p"] == value
    assert type(values["p"]) is type(value)
    assert values.public({"p": schema(kind)})["p"] == text


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        ("number", "abc", "could not convert string to float: 'abc'"),
        ("number", "inf", "inf is not a finite number"),
        ("number", True, "Value must be a number; got bool"),
        ("number", "9" * 30, "9" * 30 + " does not fit in 64 bits"),
        ("number", "9" * 10_000, "the number is too long"),
        ("boolean", "maybe", "Unrecognized value 'maybe', acceptable values are: '0', '1', 'f'"),
        ("json", "{", "Value must be valid JSON: "),
        ("json", "[" * 200 + "]" * 200, "Value must be valid JSON: nested deeper than 100"),
        ("json", 5, "Value must be valid JSON: got int"),
        ("string", {"a": 1}, "Value must be a string; got dict"),
        ("comma_delimited_list", {"a": 1}, "Value must be a comma-delimited list string"),
    ],
)
def test_a_value_of_another_type_is_refused(kind, given, why):
    [(heat_type, message)] = fault([schema(kind)], {"p": given})
    assert heat_type == "StackValidationFailed"
    assert message.startswith(f"Parameter 'p' is invalid: {why}")


@pytest.mark.parametrize(
    ("kind", "constraint", "given", "why"),
    [
        ("string", {"length": {"min": 2, "max": 3}}, "a", "length (1) is out of range (min: 2, max: 3)"),
        ("number", {"range": {"min": 2, "max": 3}}, 5, "5 is out of range (min: 2, max: 3)"),
        ("number", {"modulo": {"step": 2, "offset": 1}}, 4, "4 is not a multiple of 2 with an offset of 1"),
        ("string", {"allowed_values": ["a", "b"]}, "v", '"v" is not an allowed value ["a", "b"]'),
        ("string", {"allowed_pattern": "[a-z]"}, "ab", '"ab" does not match pattern "[a-z]"'),
        ("string", {"length": {"min": 2}, "description": "too short"}, "a", "too short"),
    ],
)
def test_a_broken_constraint_is_told_in_heats_words(kind, constraint, given, why):
    wanted = [("StackValidationFailed", f"Parameter 'p' is invalid: {why}")]
    assert fault([schema(kind, constraints=[constraint])], {"p": given}) == wanted


def test_what_was_supplied_beats_the_environments_default_and_that_the_templates():
    one = schema(default="template")
    assert build([one], {"p": "given"}, {"p": "environment"})["p"] == "given"
    assert build([one], {}, {"p": "environment"})["p"] == "environment"
    assert build([one])["p"] == "template"


def test_null_counts_as_not_given():
    assert build([schema(default="template")], {"p": None}, {"p": None})["p"] == "template"
    assert fault([schema()], {"p": None}) == [("UserParameterMissing", "The Parameter (p) was not provided.")]


def test_every_fault_of_the_values_is_told_at_once():
    found = fault([schema("number", "n"), schema(name="m")], {"n": "x", "mm": 1})
    assert found == [
        ("StackValidationFailed", "Parameter 'n' is invalid: could not convert string to float: 'x'"),
        ("UnknownUserParameter", "The Parameter (mm) was not defined in template."),
        ("UserParameterMissing", "The Parameter (m) was not provided."),
    ]


def test_unknown_names_among_the_environments_defaults_are_ignored():
    assert "zz" not in build([schema()], {"p": 1}, {"zz": 1})


def test_pseudo_parameters_have_values_and_cannot_be_supplied():
    assert build([])["OS::stack_id"] == "id"
    assert build([]).public({}) == {"OS::stack_id": "id"}
    assert fault([], {"OS::stack_id": "x"}) == [
        ("UnknownUserParameter", "The Parameter (OS::stack_id) was not defined in template.")
    ]


def test_missing_values_may_be_allowed_and_are_then_named():
    values = build([schema()], missing_ok=True)
    assert values.missing == {"p"}
    assert "p" not in values


def test_a_hidden_value_is_masked_and_never_quoted_in_a_message():
    one = schema("comma_delimited_list", hidden=True, constraints=[{"allowed_values": ["a"]}])
    values = build([one], {"p": "a"})
    assert values.hidden == {"p"}
    assert values.public({"p": one})["p"] == "******"
    assert "hush" not in str(fault([one], {"p": ["hush", 'hu"sh']}))
    assert "hush" not in str(fault([schema("number", hidden=True)], {"p": "hush"}))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"type": "string", "x": 1}, "Invalid key 'x' for parameter (p)"),
        ({"default": 1}, "Missing parameter type for parameter: p"),
        ({"type": "text"}, "Invalid type (text)"),
        ({"type": ["string"]}, "Invalid type (['string'])"),
        (
            {"type": "number", "default": "x"},
            "Parameter 'p' is invalid: Invalid default x (could not convert",
        ),
        (
            {"type": "number", "default": 5, "constraints": [{"range": {"max": 3}}]},
            "Parameter 'p' is invalid: Invalid default 5 (5 is out of range (min: None, max: 3))",
        ),
        (
            {"type": "number", "constraints": [{"length": {"min": 1}}]},
            "Parameter 'p' is invalid: Length constraint invalid for number",
        ),
        ({"type": "string", "constraints": [{}]}, "Parameter 'p' is invalid: No constraint expressed"),
        (
            {"type": "string", "constraints": {"length": 1}},
            "Parameter 'p' is invalid: Invalid parameter constraints",
        ),
        ({"type": "string", "hidden": "perhaps"}, "Parameter 'p' is invalid: hidden: Unrecognized value"),
        ("string", '"parameters" must contain a map of parameter maps. Found a [str] instead'),
    ],
)
def test_a_wrong_declaration_is_told(body, message):
    assert declaration_fault(body)[0].startswith(message)


def test_a_default_need_not_meet_custom_constraints_but_a_value_must():
    one = schema(default="not an address", constraints=[{"custom_constraint": "ip_addr"}])
    [(_, message)] = fault([one])
    assert message.startswith("Parameter 'p' is invalid: ")
    assert build([one], {"p": "10.0.0.1"})["p"] == "10.0.0.1"


def test_tags_and_modulo_belong_to_later_versions():
    assert schema(tags=["a"]).tags == ("a",)
    assert declaration_fault({"type": "string", "tags": ["a"]}, OLD) == [
        "Invalid key 'tags' for parameter (p)"
    ]
    modulo = {"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 1}}]}
    assert "modulo" in declaration_fault(modulo, "2016-10-14")[0]


def test_the_label_is_the_name_unless_it_is_given():
    assert (schema().label, schema(label="L").label) == ("p", "L")
