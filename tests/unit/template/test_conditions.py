"""Conditions, and the evaluation of `if` (docs/internals/hot-language.md §6)."""

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import FaultyTemplate, load

LATEST = "2021-04-16"


def read(values=None, version="2018-08-31", **sections):
    supplied = ParameterValues(values or {}, missing=frozenset({"p"} - (values or {}).keys()))
    document = {"heat_template_version": version, "parameters": {"p": {"type": "string"}}, **sections}
    return load(document, Limits(), supplied)


def faults(*args, **sections):
    with pytest.raises(InvalidTemplate) as caught:
        read(*args, **sections)
    return [f.message for f in caught.value.diagnostics]


def value_of(written, values=None, conditions=None, version="2018-08-31"):
    """Return a resource's property as it is once the template met its parameters' values."""
    resources = {"a": {"type": "T", "properties": {"x": written, "y": 1}}, "b": {"type": "T"}}
    made = read(values, version, conditions=conditions or {}, resources=resources)
    return made.resources["a"].body["properties"].get("x", "absent")


def holds(condition, values=None, version="2018-08-31", **other_items):
    conditions = {"c": condition, **other_items}
    return value_of({"if": ["c", True, False]}, values, conditions, version)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (True, True),
        (False, False),
        ({"equals": ["a", "a"]}, True),
        ({"equals": ["1", 1]}, False),
        ({"equals": [1, 1]}, True),
        ({"equals": [{"get_param": "p"}, "v"]}, True),
        ({"equals": [[{"get_param": "p"}], ["v"]]}, True),
        ({"not": {"equals": ["a", "a"]}}, False),
        ({"not": "other"}, True),
        ({"not": False}, True),
        ({"and": [True, "other"]}, False),
        ({"and": [True, {"not": "other"}, True]}, True),
        ({"or": ["other", True]}, True),
        ({"or": ["other", False, {"equals": [1, 2]}]}, False),
        ({"contains": ["v", [{"get_param": "p"}]]}, True),
        ({"yaql": {"expression": "$.data.a > 1", "data": {"a": 2}}}, True),
    ],
)
def test_a_condition_is_decided_by_its_parameters(condition, expected):
    assert holds(condition, {"p": "v"}, other=False) is expected


def test_a_boolean_parameter_is_a_condition():
    document = {
        "heat_template_version": "pike",
        "parameters": {"on": {"type": "boolean"}},
        "conditions": {"c": {"get_param": "on"}},
        "resources": {"a": {"type": "T", "condition": "c"}},
    }
    assert list(load(document, Limits(), ParameterValues({"on": True})).resources) == ["a"]
    assert list(load(document, Limits(), ParameterValues({"on": False})).resources) == []


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"c": 5}, 'Condition validation error: The definition of condition "c" is invalid: 5'),
        ({"c": "d", "d": True}, 'Condition validation error: The definition of condition "c" is invalid: d'),
        (
            {"c": {"equals": [1]}},
            'conditions.c.equals: Arguments to "equals" must be of the form: [value_1, value_2]',
        ),
        (
            {"c": {"get_attr": ["a", "b"]}},
            'conditions.c.get_attr: The function "get_attr" is invalid in this context',
        ),
        (
            {"c": {"equals": [{"get_attr": ["a", "b"]}, 1]}},
            'conditions.c.equals[0].get_attr: The function "get_attr" is invalid in this context',
        ),
        (
            {"c": {"and": [True]}},
            'conditions.c.and: The minimum number of condition arguments to "and" is 2.',
        ),
        ({"c": {"and": True}}, 'conditions.c.and: Arguments to "and" must be a list of conditions'),
        (["a"], "Conditions validation error: Condition definitions must be a map. Found a list instead"),
    ],
)
def test_a_malformed_condition_is_refused_used_or_not(conditions, message):
    assert faults(conditions=conditions) == [message]


def test_a_malformed_condition_is_reported_once_for_all_its_uses():
    resources = {name: {"type": "T", "condition": "c"} for name in "abc"}
    assert len(faults(conditions={"c": 5}, resources=resources)) == 1


def test_yaql_and_contains_came_to_conditions_later():
    for name in ("yaql", "contains"):
        condition = {name: ["a", ["a"]]} if name == "contains" else {name: {"expression": "1", "data": {}}}
        [message] = faults(None, "2016-10-14", conditions={"c": condition})
        assert message.startswith("conditions.c.") or "is invalid" in message


def test_a_circle_is_refused_where_it_is_used_and_else_warned_of():
    circle = {"c": {"not": "d"}, "d": {"not": "c"}}
    assert [w.code for w in read(conditions=circle).warnings] == ["condition"]
    used = faults(conditions=circle, resources={"a": {"type": "T", "condition": "c"}})
    assert used == ['Condition validation error: Circular definition for condition "c"']


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"resources": {"a": {"type": "T", "condition": "nope"}}},
            'resources.a.condition: Invalid condition "nope"',
        ),
        (
            {"outputs": {"o": {"value": 1, "condition": "nope"}}},
            'outputs.o.condition: Invalid condition "nope"',
        ),
        (
            {"resources": {"a": {"type": "T", "properties": {"x": {"if": ["nope", 1, 2]}}}}},
            'resources.a.properties.x.if: Invalid condition "nope"',
        ),
        (
            {"resources": {"a": {"type": "T", "condition": [1]}}},
            "Resource a condition type must be string_or_boolean",
        ),
        (
            {"resources": {"a": {"type": "T", "condition": None}}},
            "Resource a condition type must be string_or_boolean",
        ),
    ],
)
def test_an_unknown_condition_is_refused_where_it_is_used(sections, message):
    assert faults(**sections) == [message]


@pytest.mark.parametrize("args", [5, [], ["c", 1], ["c", 1, 2, 3], {"c": 1}])
def test_if_takes_three_arguments(args):
    shape = 'Arguments to "if" must be of the form: [condition_name, value_if_true, value_if_false]'
    resources = {"a": {"type": "T", "properties": {"x": {"if": args}}}}
    assert faults(conditions={"c": True}, resources=resources) == [f"resources.a.properties.x.if: {shape}"]


def test_the_branch_that_is_not_chosen_is_never_looked_at():
    nonsense = {"get_resource": "nowhere", "str_replace": 5}
    for branch in ({"get_resource": "nowhere"}, {"str_replace": 5}, {"get_param": "nothing"}, nonsense):
        assert value_of({"if": ["c", "chosen", branch]}, conditions={"c": True}) == "chosen"
        assert value_of({"if": ["c", branch, "chosen"]}, conditions={"c": False}) == "chosen"


def test_the_chosen_branch_is_validated_and_its_place_is_reported():
    text = """heat_template_version: 2018-08-31
conditions: {c: true}
resources:
  a:
    type: T
    properties:
      x:
        if:
        - c
        - [{get_resource: nowhere}]
        - 1
"""
    with pytest.raises(FaultyTemplate) as caught:
        load(text, Limits(), ParameterValues({}))
    [fault] = caught.value.diagnostics
    assert fault.message == 'The specified reference "nowhere" (in a.Properties.x.if[0]) is incorrect.'
    assert (fault.line, fault.path) == (10, "resources.a.properties.x.if[1][0].get_resource")


def test_ifs_stand_anywhere_and_in_each_other():
    written = {
        "list_join": [
            {"if": ["yes", "-", "+"]},
            [{"if": ["no", "a", {"if": ["yes", "b", "c"]}]}, {"if": [{"not": "yes"}, "d", "e"]}],
        ]
    }
    assert value_of(written, conditions={"yes": True, "no": False}) == {"list_join": ["-", ["b", "e"]]}


def test_a_reference_behind_an_if_is_a_requirement():
    resources = {
        "a": {
            "type": "T",
            "properties": {"x": {"if": ["c", {"get_attr": ["b", "v"]}, {"get_resource": "d"}]}},
        },
        "b": {"type": "T"},
        "d": {"type": "T"},
    }
    made = read(conditions={"c": True}, resources=resources).resources["a"]
    assert (made.requires, made.dep_attrs) == ({"b"}, {"b": {"v"}})


def test_the_name_in_get_attr_may_be_chosen():
    written = {"get_attr": [{"if": ["c", "b", "nowhere"]}, "v"]}
    assert value_of(written, conditions={"c": True}) == {"get_attr": ["b", "v"]}


def test_an_if_without_an_else_takes_the_item_away():
    conditions = {"no": False, "yes": True}
    assert value_of({"if": ["no", 1]}, conditions=conditions, version=LATEST) == "absent"
    assert value_of({"if": ["yes", 1]}, conditions=conditions, version=LATEST) == 1
    assert value_of([1, {"if": ["no", 2]}, 3], conditions=conditions, version=LATEST) == [1, 3]
    assert value_of({"k": {"if": ["no", 2]}, "l": 1}, conditions=conditions, version=LATEST) == {"l": 1}


def test_a_disabled_resource_is_not_there():
    resources = {
        "off": {"type": "T", "condition": "no"},
        "waits": {"type": "T", "depends_on": "off"},
        "many": {"type": "T", "depends_on": ["off", "waits"]},
    }
    made = read(conditions={"no": False}, resources=resources)
    assert list(made.resources) == ["waits", "many"]
    assert made.resources["waits"].requires == frozenset()
    assert made.resources["many"].requires == {"waits"}
    resources["asks"] = {"type": "T", "properties": {"x": {"get_resource": "off"}}}
    assert faults(conditions={"no": False}, resources=resources) == [
        'The specified reference "off" (in asks.Properties.x) is incorrect.'
    ]


def test_references_of_a_disabled_resource_are_not_validated():
    broken = {
        "type": "T",
        "condition": False,
        "properties": {"x": {"get_resource": "nowhere"}, "y": {"Ref": "nowhere"}, "z": {"get_param": "no"}},
        "depends_on": "nowhere",
    }
    assert read(resources={"a": broken}).resources == {}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"foo": 1}, '"foo" is not a valid keyword inside a resource definition'),
        ({"type": None}, "Each resource must contain a type key."),
        ({"type": 3}, "Resource a type type must be string"),
        ({"properties": [1]}, "Resource a properties type must be object"),
        ({"metadata": "x"}, "Resource a metadata type must be object"),
        ({"depends_on": {"x": "y"}}, "Resource a depends_on type must be list or string"),
        ({"deletion_policy": "Foo"}, 'Invalid deletion policy "Foo"'),
        (
            {"properties": {"x": {"str_replace": 1}}},
            'resources.a.properties.x.str_replace: Arguments to "str_replace" must be a map',
        ),
        ({"properties": {"x": {"if": ["no", 1, 2]}}}, 'resources.a.properties.x.if: Invalid condition "no"'),
    ],
)
def test_a_disabled_resource_is_well_formed_all_the_same(more, message):
    with pytest.raises(InvalidTemplate) as caught:
        read(resources={"a": {"type": "T", "condition": False, **more}})
    assert [fault.message for fault in caught.value.diagnostics] == [message]


def test_a_disabled_output_is_not_listed():
    outputs = {
        "on": {"value": 1, "condition": True},
        "off": {"value": {"get_resource": "x"}, "condition": False},
    }
    made = read(outputs=outputs)
    assert list(made.outputs) == ["on"]
    again = type(made).from_outline(made.outline())
    assert again.excluded_outputs == made.excluded_outputs == {"off": "No description given"}


def test_only_a_condition_in_use_needs_its_parameter():
    conditions = {"c": {"equals": [{"get_param": "p"}, "x"]}}
    assert read(conditions=conditions).warnings == ()
    for sections in (
        {"resources": {"a": {"type": "T", "condition": "c"}}},
        {"resources": {"a": {"type": "T", "properties": {"x": {"if": ["c", 1, 2]}}}}},
        {"outputs": {"o": {"value": 1, "condition": "c"}}},
    ):
        assert faults(conditions=conditions, **sections) == ["The Parameter (p) was not provided."]


def test_without_any_values_nothing_is_decided_and_nothing_is_refused_for_it():
    document = {
        "heat_template_version": "pike",
        "parameters": {"p": {"type": "string"}},
        "conditions": {"c": {"equals": [{"get_param": "p"}, "x"]}},
        "resources": {"a": {"type": "T", "condition": "c", "properties": {"x": {"if": ["c", 1, 2]}}}},
    }
    assert list(load(document, Limits()).resources) == ["a"]


def test_conditions_came_with_a_version():
    assert faults(None, "2016-04-08", conditions={"c": True}) == [
        "The template section is invalid: conditions"
    ]
    [message] = faults(None, "2016-04-08", resources={"a": {"type": "T", "condition": True}})
    assert message == "Invalid keyword(s) inside a resource definition: condition"


def test_stored_outputs_are_defined():
    outputs = {"o": {"value": {"if": ["c", {"get_param": "p"}, 2]}}}
    made = read({"p": "v"}, conditions={"c": True}, outputs=outputs)
    assert made.outline()["outputs"]["o"]["value"] == {"get_param": "p"}
    assert type(made).from_outline(made.outline()).outputs["o"].parameters == {"p"}


def test_endless_condition_references_are_reported():
    chain = {f"c{n}": {"not": f"c{n + 1}"} for n in range(2000)} | {"c2000": True}
    resources = {"a": {"type": "T", "condition": "c0"}}
    assert 'resources.a.condition: The arguments of "not" lead too deep' in faults(
        conditions=chain, resources=resources
    )
