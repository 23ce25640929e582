"""Parameters: declarations, conversion, constraints, precedence (docs/internals/hot-language.md §4)."""

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


def build(schemas, supplied=(), defaults=(), **options):
    by_name = {item.name: item for item in schemas}
    return ParameterValues.build(by_name, dict(supplied), dict(defaults), {"OS::stack_id": "id"}, **options)


def fault(*args, **options):
    with pytest.raises(InvalidTemplate) as caught:
        build(*args, **options)
    return [(diagnostic.heat_type, diagnostic.message) for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("kind", "given", "value", "text"),
    [
        ("string", "a", "a", "a"),
        ("string", 5, "5", "5"),
        ("string", True, "True", "True"),
        ("string", 1.5, "1.5", "1.5"),
        ("string", "", "", ""),
        ("string", ["a", 1], "['a', 1]", "['a', 1]"),
        ("string", {"a": 1}, "{'a': 1}", "{'a': 1}"),
        ("number", True, True, "True"),
        ("number", " 7 ", 7, "7"),
        ("number", "1e3", 1000.0, "1000.0"),
        ("number", "7", 7, "7"),
        ("number", "7.0", 7.0, "7.0"),
        ("number", 7, 7, "7"),
        ("number", -1.5, -1.5, "-1.5"),
        ("comma_delimited_list", "a,b,,c", ["a", "b", "", "c"], "a,b,,c"),
        ("comma_delimited_list", "a, b", ["a", " b"], "a, b"),
        ("comma_delimited_list", "", [], ""),
        ("comma_delimited_list", ["a", 1, None], ["a", "1", "None"], "a,1,None"),
        ("json", '{"a":[1]}', {"a": [1]}, '{"a": [1]}'),
        ("json", {"a": None, "b": "ü"}, {"a": None, "b": "ü"}, '{"a": null, "b": "\\u00fc"}'),
        ("json", 5, 5, "5"),
        ("json", "5", 5, "5"),
        ("json", True, True, "true"),
        ("json", '"x"', "x", '"x"'),
        ("json", "", "", '""'),
        ("json", "null", None, "null"),
        ("json", r'"\ud83d\ude00 \u00fc"', "\U0001f600 ü", r'"\ud83d\ude00 \u00fc"'),
        ("json", [1], [1], "[1]"),
        *[
            ("boolean", keyword, True, "True")
            for keyword in (True, "t", "TRUE", " true ", "on", "y", "yes", "1", 1)
        ],
        *[
            ("boolean", keyword, False, "False")
            for keyword in (False, "f", "False", "off", "n", "NO", "0", 0)
        ],
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
        ("number", "abc", "Value 'abc' is not a number"),
        ("number", "inf", "inf is not a finite number"),
        ("number", "", "Value '' is not a number"),
        ("number", [1], "expected a number, got a list"),
        ("number", "9" * 30, "9" * 30 + " does not fit in 64 bits"),
        ("number", "9" * 10_000, "the number is too long"),
        (
            "boolean",
            "maybe",
            "Unrecognized value 'maybe', acceptable values are: '0', '1', 'f', 'false', 'n', ",
        ),
        ("boolean", "", "Unrecognized value '', acceptable values are: "),
        ("boolean", 2, "Unrecognized value '2', acceptable values are: "),
        ("json", "x", "Value must be valid JSON: Expecting value: line 1 column 1 (char 0)"),
        ("json", '{"a":1} x', "Value must be valid JSON: Extra data: line 1 column 9 (char 8)"),
        ("json", '{"a": NaN}', "Value must be valid JSON: nan is not a finite number"),
        ("json", "[1e999]", "Value must be valid JSON: inf is not a finite number"),
        ("json", "[" + "9" * 30 + "]", "Value must be valid JSON: " + "9" * 30 + " does not fit in 64 bits"),
        ("json", r'["\ud800"]', "Value must be valid JSON: half of a character"),
        ("json", "[" * 200 + "]" * 200, "Value must be valid JSON: nested deeper than 100"),
        ("json", "[" * 100_000, "Value must be valid JSON: nested deeper than 100"),
        (
            "comma_delimited_list",
            {"a": 1},
            "Value must be a comma-delimited list string: 'dict' object has no attribute 'split'",
        ),
        (
            "comma_delimited_list",
            5,
            "Value must be a comma-delimited list string: 'int' object has no attribute 'split'",
        ),
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
def test_a_broken_constraint_is_reported_with_heats_message(kind, constraint, given, why):
    expected = [("StackValidationFailed", f"Parameter 'p' is invalid: {why}")]
    assert fault([schema(kind, constraints=[constraint])], {"p": given}) == expected


def test_supplied_values_beat_environment_defaults_which_beat_template_defaults():
    item = schema(default="template")
    assert build([item], {"p": "given"}, {"p": "environment"})["p"] == "given"
    assert build([item], {}, {"p": "environment"})["p"] == "environment"
    assert build([item])["p"] == "template"


def test_null_counts_as_not_given():
    assert build([schema(default="template")], {"p": None}, {"p": None})["p"] == "template"
    assert fault([schema()], {"p": None}) == [("UserParameterMissing", "The Parameter (p) was not provided.")]


def test_every_fault_of_the_values_is_reported_at_once():
    result = fault([schema(name="m"), schema("number", "n")], {"n": "x", "mm": 1})
    assert result == [
        ("UnknownUserParameter", "The Parameter (mm) was not defined in template."),
        ("UserParameterMissing", "The Parameter (m) was not provided."),
        ("StackValidationFailed", "Parameter 'n' is invalid: Value 'x' is not a number"),
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
    item = schema("comma_delimited_list", hidden=True, constraints=[{"allowed_values": ["a"]}])
    values = build([item], {"p": "a"})
    assert values.hidden == {"p"}
    assert values.public({"p": item})["p"] == "******"
    assert "hush" not in str(fault([item], {"p": ["hush", 'hu"sh']}))
    assert "hush" not in str(fault([schema("number", hidden=True)], {"p": "hush"}))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"type": "string", "x": 1}, "Invalid key 'x' for parameter (p)"),
        ({"type": "string", "Default": 1}, "Invalid key 'Default' for parameter (p)"),
        ({"default": 1}, "Missing parameter type for parameter: p"),
        ({"type": None}, "Invalid type (None)"),
        ({"type": "text"}, "Invalid type (text)"),
        ({"type": "String"}, "Invalid type (String)"),
        ({"type": ["string"]}, "Invalid type (['string'])"),
        ({"type": "string", "tags": "x"}, "Tags property should be a list for parameter: p"),
        ({"type": "string", "tags": None}, "Tags property should be a list for parameter: p"),
        ({"type": "string", "constraints": [{}]}, "No constraint expressed"),
        ({"type": "string", "constraints": ["x"]}, "Invalid parameter constraints, expected a mapping"),
        ({"type": "string", "constraints": [{"foo": 1}]}, "Invalid key 'foo' for parameter constraints"),
        (
            {"type": "string", "constraints": {"length": 1}},
            "Invalid parameter constraints for parameter p, expected a list",
        ),
        (
            {"type": "number", "constraints": [{"length": {"min": 1}}]},
            "Parameter 'p' is invalid: Length constraint invalid for number",
        ),
        ("string", "Invalid parameter (p), expected a mapping"),
        (None, "Invalid parameter (p), expected a mapping"),
    ],
)
def test_a_wrong_declaration_is_reported(body, message):
    assert declaration_fault(body) == [message]


def test_every_fault_of_a_declaration_is_reported_with_blocking_faults_first():
    body = {"type": "number", "x": 1, "constraints": [{"length": {"min": 1}}, {"range": {}}]}
    assert declaration_fault(body) == [
        "Invalid key 'x' for parameter (p)",
        "A range constraint must have a min value and/or a max value specified.",
        "Parameter 'p' is invalid: Length constraint invalid for number",
    ]


RANGE, LENGTH = {"range": {"min": 6}}, {"length": {"min": 3}}


@pytest.mark.parametrize(
    ("kind", "default", "constraint", "why"),
    [
        ("number", 5, RANGE, "Invalid default 5 (5 is out of range (min: 6))"),
        ("number", "5", RANGE, "Invalid default 5 (5 is out of range (min: 6))"),
        ("number", "x", RANGE, "Invalid default x (Value 'x' is not a number)"),
        ("string", "x", LENGTH, "Invalid default x (length (1) is out of range (min: 3))"),
        ("string", "x", {**LENGTH, "description": "D"}, "Invalid default x (D)"),
        ("string", 5, LENGTH, "Invalid default 5 (expected a string, a list or a map, got a number)"),
        (
            "string",
            ["a"],
            {"allowed_pattern": "a"},
            "Invalid default ['a'] (expected a string, got a list)",
        ),
        (
            "boolean",
            False,
            {"allowed_values": [True]},
            "Invalid default false (false is not an allowed value [true])",
        ),
        (
            "boolean",
            "no",
            {"allowed_values": [True]},
            'Invalid default no ("no" is not an allowed value [true])',
        ),
        (
            "boolean",
            "x",
            {"allowed_values": [True]},
            'Invalid default x (Value "x" is invalid for data type "boolean".)',
        ),
        (
            "comma_delimited_list",
            "1,2",
            LENGTH,
            "Invalid default 1,2 (length (2) is out of range (min: 3))",
        ),
        (
            "comma_delimited_list",
            "",
            {"allowed_values": ["a"]},
            'Invalid default  ([""] is not an allowed value ["a"])',
        ),
        (
            "comma_delimited_list",
            [1, 2],
            {"allowed_values": [1, 2]},
            'Invalid default [1, 2] (["1", "2"] is not an allowed value [1, 2])',
        ),
        (
            "comma_delimited_list",
            5,
            LENGTH,
            "Default must be a comma-delimited list string: 'int' object has no attribute 'split'",
        ),
        (
            "json",
            {"a": 1},
            LENGTH,
            "Invalid default {'a': 1} (length (1) is out of range (min: 3))",
        ),
        ("json", 5, LENGTH, "Invalid default 5 (expected a string, a list or a map, got a number)"),
    ],
)
def test_a_default_must_meet_the_constraints(kind, default, constraint, why):
    body = {"type": kind, "default": default, "constraints": [constraint]}
    assert declaration_fault(body) == [f"Parameter 'p' is invalid: {why}"]


@pytest.mark.parametrize(
    ("kind", "default", "given", "constraints"),
    [("number", "x", 5, []), ("json", "x", {}, []), ("json", '{"a": 1}', [1, 2, 3], [LENGTH])],
)
def test_an_unused_default_may_be_of_another_type(kind, default, given, constraints):
    item = schema(kind, default=default, constraints=constraints)
    assert build([item], {"p": given})["p"] == given
    [(heat_type, message)] = fault([item])
    assert heat_type == "StackValidationFailed"
    assert message.startswith("Parameter 'p' is invalid: ")


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        (True, True),
        ("yes", True),
        ("false", True),
        (1, True),
        (False, False),
        (None, False),
        ("", False),
        (0, False),
    ],
)
def test_any_text_hides_a_parameter_or_fixes_it(given, flag):
    item = schema(hidden=given, immutable=given)
    assert (item.hidden, item.immutable) == (flag, flag)


def test_texts_may_be_written_as_anything():
    item = schema(label=5, description=["a"], tags=[1, "b"])
    assert (item.label, item.description, item.tags) == ("5", "['a']", ("1", "b"))


def test_a_default_need_not_meet_custom_constraints_but_a_value_must():
    item = schema(default="not an address", constraints=[{"custom_constraint": "ip_addr"}])
    [(_, message)] = fault([item])
    assert message.startswith("Parameter 'p' is invalid: ")
    assert build([item], {"p": "10.0.0.1"})["p"] == "10.0.0.1"


def test_tags_and_modulo_belong_to_later_versions():
    assert schema(tags=["a"]).tags == ("a",)
    assert declaration_fault({"type": "string", "tags": ["a"]}, OLD) == [
        "Invalid key 'tags' for parameter (p)"
    ]
    modulo = {"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 1}}]}
    assert declaration_fault(modulo, "2016-10-14") == ["No constraint expressed"]


def test_the_label_is_the_name_unless_it_is_given():
    assert (schema().label, schema(label="L").label) == ("p", "L")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("int", "number"),
        ("Integer", "number"),
        ("list", "comma_delimited_list"),
        ("dict", "json"),
        ("bool", "boolean"),
        ("strin", "string"),
    ],
)
def test_a_type_of_another_language_has_a_hint(written: str, meant: str) -> None:
    with pytest.raises(InvalidTemplate) as refused:
        ParameterSchema.from_hot("p", {"type": written}, "2021-04-16")
    [fault] = refused.value.diagnostics
    assert (fault.message, fault.hint) == (f"Invalid type ({written})", f'did you mean "{meant}"?')
