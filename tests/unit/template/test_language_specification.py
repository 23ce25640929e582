"""The observed facts of docs/internals/hot-language.md, in its order: the list of its §13.2,
and the facts that only §13 states.
"""

import orjson
import pytest

from orchestrator.engine.validation.property_resolution import resolve_properties
from orchestrator.errors import InvalidTemplate
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.template.definition import StackDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.environment_files import merge_environment_files
from orchestrator.template.parameters import ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from tests.unit.template.functions_stub import CFN, NEW

OLD = "2013-05-23"
PARAMETERS = {
    "s": {"type": "string", "default": "text"},
    "j": {"type": "json", "default": {"a": {"b": [1, 2]}}},
    "f": {"type": "boolean", "default": False},
}


def read(value, version=NEW):
    """Return a template with a resource that has a value as a property."""
    conditions = {} if version == OLD else {"conditions": {"f": {"get_param": "f"}}}
    body = {"type": "OS::Heat::Value", "properties": {"value": value}}
    source = {
        "heat_template_version": version,
        "parameters": PARAMETERS,
        "resources": {"x": body},
        **conditions,
    }
    draft = load(source, Limits(), values())
    return draft.resources["x"].body["properties"]


def values(**options):
    schemas = {name: ParameterSchema.from_hot(name, body, NEW) for name, body in PARAMETERS.items()}
    return ParameterValues.build(schemas, options, {}, {"OS::stack_name": "stack"})


def resolved(value, version=NEW):
    """Return a property after its functions were evaluated."""
    properties = read(value, version) if version != CFN else {"value": value}
    if "value" not in properties:
        return "not there"
    return StackDefinition(version, values(), {}).resolve(properties["value"])


def failure(value, version=NEW):
    with pytest.raises(InvalidTemplate) as caught:
        resolved(value, version)
    return str(caught.value)


URL = {"scheme": "http", "host": "::1", "port": 80, "path": "/a b", "query": {"a": "b/c d"}, "fragment": "f"}


@pytest.mark.parametrize(
    ("value", "version", "result"),
    [
        # §2.1: a call is a map whose only key is the name of a function.
        ({"get_param": "s", "x": 1}, NEW, {"get_param": "s", "x": 1}),
        ({"unknown_fn": [1]}, NEW, {"unknown_fn": [1]}),
        ({"equals": [1, 1]}, NEW, {"equals": [1, 1]}),
        # §5.1: a path that leads nowhere gives an empty text.
        ({"get_param": ["j", "a", "b", 1]}, NEW, 2),
        ({"get_param": ["j", "a", "b", "1"]}, NEW, 2),
        ({"get_param": ["j", "nope"]}, NEW, ""),
        ({"get_param": ["j", "a", "b", 9]}, NEW, ""),
        ({"get_param": ["s", "x"]}, NEW, ""),
        # §5.2: inserted text is not searched again.
        ({"str_replace": {"template": "ab", "params": {"a": "b", "b": "c"}}}, NEW, "bc"),
        ({"make_url": URL}, NEW, "http://[::1]:80/a%20b?a=b/c+d#f"),
        # §5.3: the last variable runs fastest, keys are replaced too.
        (
            {"repeat": {"template": "%x%%y%", "for_each": {"%x%": ["a", "b"], "%y%": ["1", "2"]}}},
            NEW,
            ["a1", "a2", "b1", "b2"],
        ),
        (
            {"repeat": {"template": {"k%x%": "%x%"}, "for_each": {"%x%": ["a", "b"]}}},
            NEW,
            [{"ka": "a"}, {"kb": "b"}],
        ),
        ({"contains": ["ex", {"get_param": "s"}]}, NEW, True),
        ({"contains": ["a", ["a", "b"]]}, NEW, True),
        # §5.4: an `if` without an else removes its place.
        ({"a": {"if": ["f", 1]}, "b": [{"if": ["f", 1]}, 2]}, NEW, {"b": [2]}),
        ({"if": ["f", 1]}, NEW, "not there"),
        # §15: a missing item of a selection is an empty text.
        ({"Fn::Select": [9, ["a"]]}, OLD, ""),
        ({"Fn::Select": ["nope", {"a": 1}]}, OLD, ""),
        ({"Fn::Select": ["9", ["a"]]}, CFN, ""),
        ({"Fn::Select": ["0", None]}, CFN, ""),
    ],
)
def test_an_expression_returns_the_observed_value(value, version, result):
    assert resolved(value, version) == result


@pytest.mark.parametrize(
    ("value", "message"),
    [
        # §2.4: a function that the version took away.
        ({"Ref": "s"}, "The function Ref is not supported in this version of HOT."),
        # §4.4: a reserved name without a value.
        ({"get_param": "OS::region"}, "The Parameter (OS::region) was not provided."),
        # §5.2, §5.3
        ({"list_join": [",", [1]]}, "Items to join must be string, map or list not 1"),
        ({"repeat": {"template": "%x%", "for_each": {"%x%": [1]}}}, "must be str, not int"),
        ({"repeat": {"template": "%x%", "for_each": {"%x%": [{"a": 1}]}}}, "must be str, not dict"),
        ({"contains": ["a", {"a": 1}]}, 'Second argument to "contains" should be a sequence.'),
    ],
)
def test_an_expression_is_refused_as_was_observed(value, message):
    assert message in failure(value)


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        # §4.2: how texts become values.
        ("number", "7", 7),
        ("number", "7.5", 7.5),
        ("comma_delimited_list", "a,b,,c", ["a", "b", "", "c"]),
        ("comma_delimited_list", "a, b", ["a", " b"]),
        ("comma_delimited_list", "", []),
        *(("boolean", text, True) for text in ("t", "true", "on", "y", "yes", "1", "YES", "True")),
        *(("boolean", text, False) for text in ("f", "false", "off", "n", "no", "0", "OFF", "False")),
    ],
)
def test_a_parameter_takes_the_observed_value(kind, given, value):
    made = ParameterSchema.from_hot("p", {"type": kind}, NEW).convert(given)
    assert made == value
    assert type(made) is type(value)


def merged(*environments, request=None):
    files = {f"e{n}": orjson.dumps(item).decode() for n, item in enumerate(environments)}
    schemas = {
        "a": ParameterSchema("a", "string"),
        "b": ParameterSchema("b", "string"),
        "l": ParameterSchema("l", "comma_delimited_list"),
    }
    return merge_environment_files(list(files), files, schemas, Environment(request or {}))


def conditional(flag):
    """Return a template in which a resource, and the argument of a second, depend on a parameter."""
    length = {"if": ["f", 5]}
    source = {
        "heat_template_version": NEW,
        "parameters": PARAMETERS,
        "conditions": {"f": {"get_param": "f"}},
        "resources": {
            "a": {"type": "OS::Heat::RandomString", "condition": "f"},
            "b": {"type": "OS::Heat::RandomString", "depends_on": "a", "properties": {"length": length}},
            "c": {
                "type": "OS::Heat::Value",
                "properties": {"value": {"if": ["f", {"get_resource": "a"}, 0]}},
            },
        },
    }
    return load(source, Limits(), values(f=flag))


def test_a_property_that_an_if_takes_away_has_its_default_again():
    """§13.4."""
    view = StackDefinition(NEW, values(), {})
    for flag, length in ((True, 5), (False, 32)):
        body = conditional(flag).resources["b"].body
        assert resolve_properties(body, view, RandomString(), "b")[0]["length"] == length


def test_a_changed_condition_adds_and_removes_a_resource_and_its_dependents():
    """§13.5, as far as the definition goes."""
    existing, gone = conditional(True).resources, conditional(False).resources
    assert {name: item.requires for name, item in existing.items()} == {"a": set(), "b": {"a"}, "c": {"a"}}
    assert {name: item.requires for name, item in gone.items()} == {"b": set(), "c": set()}


def test_environment_files_merge_as_was_observed():
    """§9.3."""
    with pytest.raises(InvalidTemplate) as caught:
        merged(
            {"parameters": {"l": ["a"]}, "parameter_merge_strategies": {"l": "overwrite"}},
            {"parameters": {"l": ["b"]}, "parameter_merge_strategies": {"l": "merge"}},
        )
    assert str(caught.value) == "Conflicting merge strategy 'merge' for parameter 'l' in file 'e1'."
    request = {"parameters": {"a": "cli"}}
    assert merged({"parameters": {"a": "f1"}}, request=request).parameters["a"] == "f1"
    unknown = merged({"parameters": {"first": 1}}, {"parameters": {"later": 2, "a": "x"}})
    assert dict(unknown.parameters) == {"first": 1, "a": "x"}
    registry = [{"resource_registry": {"T1": "t1.yaml", "resources": {"r1": {"T": "x.yaml"}}}}]
    registry += [{"resource_registry": {"T2": "t2.yaml", "resources": {"r2": {"T": "y.yaml"}}}}]
    assert merged(*registry).to_json()["resource_registry"] == {
        "T1": "t1.yaml",
        "T2": "t2.yaml",
        "resources": {"r2": {"T": "y.yaml"}},
    }
