"""The answers of `POST /validate` (docs/internals/rest-api.md §10.1), without HTTP."""

from __future__ import annotations

import orjson
import pytest

from orchestrator.config import Settings
from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.validation.template_report import validate
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.connections.database import Database

NEW = "2018-08-31"
INNER = """heat_template_version: 2018-08-31
description: inner
parameters:
  x: {type: string, default: d, constraints: [{length: {max: 9}}]}
  y: {type: number}
parameter_groups: [{label: g, parameters: [x]}]
resources:
  deep: {type: deep.yaml, properties: {z: {get_param: y}}}
"""
DEEP = """heat_template_version: 2018-08-31
parameters:
  z: {type: number, hidden: true}
"""


def ask(template, *, overlook=False, show_nested=False, with_warnings=False, **body):
    """Nothing here may need the database: there is none."""
    database = Database("postgresql://nobody@127.0.0.1:1/nowhere")
    caller, types = Caller("p1", "tester"), load_registry()
    context = OperationContext(database, Cipher([new_key()]), caller, Settings(), types)
    sent = Body(orjson.dumps({"template": template, **body}))
    return validate(context, sent, overlook=overlook, show_nested=show_nested, with_warnings=with_warnings)


def hot(**sections):
    return {"heat_template_version": NEW, **sections}


def test_a_parameter_shows_its_default_and_the_value_it_was_given():
    declared = {
        "p": {"type": "number", "default": 3},
        "q": {"type": "json"},
        "s": {"type": "string", "hidden": True},
    }
    plain = ask(hot(parameters=declared))["Parameters"]
    assert plain["p"] == {
        "Type": "Number",
        "Description": "",
        "NoEcho": "false",
        "Label": "p",
        "Default": 3,
    }
    environment = {"parameter_defaults": {"p": 4}, "parameters": {"s": "secret"}}
    supplied = ask(hot(parameters=declared), environment=environment, parameters={"q": '{"a": 1}'})[
        "Parameters"
    ]
    assert (supplied["p"]["Default"], "Value" in supplied["p"]) == (4, False)
    assert supplied["q"]["Value"] == '{"a": 1}'
    assert supplied["s"]["Value"] == "******"


def test_nested_parameters_are_shown_when_asked_for_with_the_values_they_get():
    resources = {
        "a": {"type": "inner.yaml", "properties": {"y": {"get_param": "p"}, "x": "abc"}},
        "r": {"type": "OS::Heat::RandomString"},
        "b": {"type": "inner.yaml", "properties": {"y": 1, "x": {"get_attr": ["r", "value"]}}},
    }
    template = hot(parameters={"p": {"type": "number", "default": 3}}, resources=resources)
    files = {"inner.yaml": INNER, "deep.yaml": DEEP}
    assert "NestedParameters" not in ask(template, files=files)
    nested = ask(template, files=files, show_nested=True)["NestedParameters"]
    assert list(nested) == ["a", "b"]
    a = nested["a"]
    assert (a["Type"], a["Description"]) == ("inner.yaml", "inner")
    assert a["ParameterGroups"] == [{"label": "g", "parameters": ["x"]}]
    assert (a["Parameters"]["x"]["Value"], a["Parameters"]["x"]["MaxLength"]) == ("abc", 9)
    assert a["Parameters"]["y"]["Value"] == 3
    assert a["NestedParameters"]["deep"]["Parameters"]["z"] == {
        "Type": "Number",
        "Description": "",
        "NoEcho": "true",
        "Label": "z",
        "Value": "******",
    }
    assert "Value" not in nested["b"]["Parameters"]["x"]


def test_the_answer_has_exactly_the_fields_of_heat():
    resources = {"a": {"type": "inner.yaml", "properties": {}}}
    answer = ask(hot(description="d", resources=resources), files={"inner.yaml": INNER, "deep.yaml": DEEP})
    assert answer == {
        "Description": "d",
        "Parameters": {},
        "Environment": {
            "parameters": {},
            "parameter_defaults": {},
            "resource_registry": {"inner.yaml": "inner.yaml", "resources": {}},
            "event_sinks": [],
        },
    }


def test_groups_and_named_stacks_are_among_the_nested():
    inner = {"type": "inner.yaml", "properties": {"y": {"get_param": "p"}}}
    stack = {"TemplateURL": "file:///inner.yaml", "Parameters": {"y": 7}}
    resources = {
        "g": {"type": "OS::Heat::ResourceGroup", "properties": {"count": 300, "resource_def": inner}},
        "s": {"type": "AWS::CloudFormation::Stack", "properties": stack},
        "u": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": {"get_param": "n"}, "resource_def": inner},
        },
        "plain": {"type": "OS::Heat::RandomString"},
    }
    parameters = {"p": {"type": "number", "default": 3}, "n": {"type": "number"}}
    files = {"inner.yaml": INNER, "deep.yaml": DEEP, "file:///inner.yaml": INNER}
    template = hot(parameters=parameters, resources=resources)
    nested = ask(template, files=files, show_nested=True)["NestedParameters"]
    assert list(nested) == ["g", "s", "u"]
    group = nested["g"]
    assert (group["Type"], group["Parameters"]) == ("OS::Heat::ResourceGroup", {})
    assert list(group["NestedParameters"]) == ["0"], "one member stands for all"
    member = group["NestedParameters"]["0"]
    assert (member["Type"], member["Parameters"]["y"]["Value"]) == ("inner.yaml", 3)
    assert list(member["NestedParameters"]) == ["deep"]
    assert list(nested["u"]["NestedParameters"]) == ["0"], "however many there are to be"
    named = nested["s"]
    assert (named["Type"], named["Parameters"]["y"]["Value"]) == ("AWS::CloudFormation::Stack", 7)
    assert list(named["NestedParameters"]) == ["deep"]


def test_faults_for_which_a_create_is_refused_are_errors_of_a_valid_template():
    text = f"""heat_template_version: {NEW}
resources:
  a:
    type: OS::Heat::RandomString
    properties: {{length: many}}
  b:
    type: OS::Heat::Value
    properties: {{value: {{get_param: nobody}}}}
"""
    assert "errors" not in ask(text)
    result = ask(text, with_warnings=True)["errors"]
    assert [(w["code"], w["line"]) for w in result] == [("unknown-parameter", 8), ("wrong-value", 5)]
    assert all(w["severity"] == "error" and w["excerpt"] for w in result)


def test_all_independent_errors_are_reported_at_once():
    text = f"""heat_template_version: {NEW}
parameters:
  size: {{type: number, default: 2, constraints: [{{range: {{min: 1, max: 3}}}}]}}
resources:
  v: {{type: OS::Heat::TestResource, properties: {{value: {{str_split: [","]}}}}}}
  w: {{type: OS::Heat::TestResource, properties: {{value: {{get_attr: [v, outpt]}}}}}}
  x: {{type: OS::Heat::TestResource, properties: {{value: {{get_params: p}}, fail: maybe}}}}
"""
    with pytest.raises(InvalidTemplate) as caught:
        ask(text, with_warnings=True, parameters={"size": 9})
    found = [(fault.code, fault.line, fault.file) for fault in caught.value.diagnostics]
    assert sorted(found, key=str) == [
        ("function-error", 5, ""),
        ("invalid-parameter", None, "parameters"),
        ("mistyped-function", 7, ""),
        ("unknown-attribute", 6, ""),
        ("wrong-value", 7, ""),
        ("wrong-value", 7, ""),
    ]
    assert [fault.code for fault in caught.value.diagnostics if fault.severity == "warning"] == [
        "mistyped-function"
    ]


@pytest.mark.parametrize("section", ["parameters", "parameter_defaults"])
def test_a_wrong_value_is_located_in_the_environment_that_gives_it(section):
    text = f"""heat_template_version: {NEW}
parameters:
  n: {{type: number}}
  pw: {{type: string, hidden: true, constraints: [{{length: {{min: 9}}}}]}}
"""
    environment = f"{section}:\n  n: lots\n  pw: short\n"
    [wrong, hidden] = ask(text, with_warnings=True, environment=environment)["errors"]
    assert (wrong["file"], wrong["line"], wrong["column"]) == ("environment", 2, 3)
    assert wrong["hint"] == "n is declared in the template at line 3, column 3"
    assert (hidden["file"], hidden.get("line"), hidden["excerpt"]) == ("environment", None, "")
    files = {"one.yaml": environment, "two.yaml": f"{section}: {{n: many}}\n"}
    named = {"files": files, "environment_files": ["one.yaml", "two.yaml"]}
    [wrong, _] = ask(text, with_warnings=True, **named)["errors"]
    assert (wrong["file"], wrong["line"]) == ("two.yaml", 1)
    [wrong] = ask(text, with_warnings=True, environment=environment, parameters={"pw": "long enough"})[
        "errors"
    ]
    assert wrong["file"] == "environment"
    [wrong] = ask(text, with_warnings=True, parameters={"pw": "long enough", "n": "much"})["errors"]
    assert (wrong["file"], wrong["path"]) == ("parameters", "parameters.n")


def test_duplicate_keys_of_an_environment_are_warnings():
    text = f"heat_template_version: {NEW}\nparameters: {{p: {{type: string}}}}\n"
    twice = "parameters:\n  p: b\n  p: c\n"
    [warning] = ask(text, with_warnings=True, environment=twice)["warnings"]
    assert (warning["code"], warning["file"], warning["line"]) == ("duplicate-key", "environment", 3)
    named = {"files": {"e.yaml": twice}, "environment_files": ["e.yaml"]}
    [warning] = ask(text, with_warnings=True, **named)["warnings"]
    assert (warning["file"], warning["excerpt"]) == ("e.yaml", "")


def test_the_number_of_warnings_in_a_response_is_bounded():
    text = f"heat_template_version: {NEW}\noutputs:\n"
    text += "".join(f"  a{number}: {{value: {{get_params: [x]}}}}\n" for number in range(150))
    warnings = ask(text, with_warnings=True)["warnings"]
    assert (len(warnings), warnings[-1]["message"]) == (101, "and 50 more")


def test_a_type_that_is_known_and_not_there_is_refused_by_name_or_overlooked():
    template = hot(resources={"a": {"type": "OS::Aodh::Alarm", "properties": {"nothing": 1}}})
    with pytest.raises(InvalidTemplate) as caught:
        ask(template)
    assert caught.value.heat_type == "ResourceTypeUnavailable"
    assert str(caught.value).startswith("HEAT-E99001 Service aodh is not available for resource type")
    assert ask(template, overlook=True)["Description"] == "No description"
    with pytest.raises(InvalidTemplate, match="could not be found"):
        ask(hot(resources={"a": {"type": "OS::Nothing"}}), overlook=True)


def test_hidden_values_are_never_reported():
    declared = "parameters: {x: {type: string}, deep: {type: string, hidden: true}}"
    inner = f"heat_template_version: 2018-08-31\n{declared}\n"
    outer = inner.replace("deep: {", "y: {type: string}, deep: {") + (
        "resources: {in: {type: inner.yaml, properties: {x: {get_param: y}}}}\n"
    )
    replaced = {"str_replace": {"template": "an S", "params": {"S": {"get_param": "given"}}}}
    template = hot(
        parameters={name: {"type": "string", "hidden": True} for name in ("given", "default")},
        resources={
            "a": {
                "type": "outer.yaml",
                "properties": {"x": {"get_param": "given"}, "y": replaced, "deep": "s"},
            }
        },
    )
    environment = {
        "parameters": {"given": "SECRET"},
        "parameter_defaults": {"default": "SECRET", "deep": "SECRET"},
    }
    files = {"inner.yaml": inner, "outer.yaml": outer}
    answer = ask(template, environment=environment, files=files, show_nested=True)
    assert "SECRET" not in orjson.dumps(answer).decode()
    assert answer["Environment"]["parameters"] == {"given": "******"}
    assert answer["Environment"]["parameter_defaults"] == {"default": "******", "deep": "******"}
    nested = answer["NestedParameters"]["a"]
    assert nested["Parameters"]["y"]["Value"] == "******"
    assert nested["NestedParameters"]["in"]["Parameters"]["x"]["Value"] == "******"
