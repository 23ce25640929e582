"""A nested template as a type: properties, attributes, the type it stands in for, its child."""

from __future__ import annotations

import json

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.resources.base import Attribute, Property, ResourceType
from orchestrator.resources.template_type import NestedTemplate, TemplateType, flattened
from orchestrator.schema.constraints import Length
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.resource_registry import Target

URL = "http://example/nested.yaml"


class Facade(ResourceType):
    """A type that templates are put in place of."""

    name = "Test::Facade"
    properties = {  # noqa: RUF012
        "must": Property("string", required=True),
        "size": Property("integer"),
        "free": Property("any"),
        "tags": Property("list"),
    }
    attributes = {"address": Attribute("Where it is.")}  # noqa: RUF012


def nested(parameters=None, outputs=None, **options):
    source = {"heat_template_version": "2018-08-31", "parameters": parameters or {}, "outputs": outputs or {}}
    return NestedTemplate.read(URL, json.dumps(source | options), Limits())


def template_type(parameters=None, outputs=None, facade=None, **environment):
    target = Target("template", URL, user=True, path=("My::Type",))
    template = nested(parameters, outputs)
    return TemplateType("My::Type", template, target, Environment(**environment), facade=facade)


PARAMETERS = {
    "s": {"type": "string", "description": "A text.", "constraints": [{"length": {"max": 3}}]},
    "n": {"type": "number", "default": 1},
    "b": {"type": "boolean", "default": False},
    "l": {"type": "comma_delimited_list", "default": "a"},
    "j": {"type": "json", "default": {}, "hidden": True},
}


def test_parameters_are_properties_that_may_always_change():
    result = template_type(PARAMETERS).properties
    assert {name: prop.type for name, prop in result.items()} == {
        "s": "string",
        "n": "number",
        "b": "boolean",
        "l": "list",
        "j": "map",
    }
    assert {name for name, prop in result.items() if prop.required} == {"s"}
    assert all(prop.update_allowed and prop.default is None for prop in result.values())
    assert (result["s"].doc, result["s"].constraints) == ("A text.", (Length(None, 3),))
    assert template_type(PARAMETERS).secret_parameters == {"j"}


def test_a_default_of_the_environment_makes_a_property_optional():
    assert not template_type(PARAMETERS, parameter_defaults={"s": "x"}).properties["s"].required


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"s": "x", "j": '{"a": 1}'}, {"a": 1}),
        ({"s": "x", "j": [1, 2]}, [1, 2]),
        ({"s": "x", "j": {"a": 1}}, {"a": 1}),
    ],
)
def test_a_map_may_be_a_text_or_a_list(given, seen):
    result, faults = template_type(PARAMETERS).read_properties(given)
    assert faults == []
    arguments = template_type(PARAMETERS).arguments(result)
    assert nested(PARAMETERS).parameters["j"].convert(arguments["j"]) == seen


def test_a_list_may_be_a_text_with_commas():
    result, faults = template_type(PARAMETERS).read_properties({"s": "x", "l": "a,b"})
    assert (result["l"], faults) == (["a", "b"], [])


def test_outputs_are_attributes_and_nested_resources_are_reachable():
    result = template_type(outputs={"o": {"value": 1, "description": "One."}})
    assert result.attributes == {"o": Attribute("One.")}
    for name in ("o", "show", "resource.x", "resource.x.value"):
        assert result.has_attribute(name)
    assert not result.has_attribute("other")


def test_a_list_of_maps_is_flattened_and_null_is_an_empty_text():
    assert flattened([{"a": 1, "b": 2}, {"a": 3}]) == [".member.0.a=1", ".member.0.b=2", ".member.1.a=3"]
    assert flattened(["x", None, "y,z"]) == ["x", "", "y,z"]


def test_a_child_has_the_properties_as_parameters_and_the_environment_of_its_place():
    registry = {"My::Type": URL, "Other::Type": "OS::Heat::None"}
    faults = template_type(PARAMETERS, parameter_defaults={"n": 5}, resource_registry=registry)
    child = faults.child({"s": "x", "l": [{"a": 1}], "j": None})
    assert (child.url, json.loads(child.text)["parameters"]) == (URL, PARAMETERS)
    environment = child.environment
    assert environment.parameters == {"s": "x", "l": [".member.0.a=1"]}
    assert environment.parameter_defaults == {"n": 5}
    assert environment.resource_registry == {"Other::Type": "OS::Heat::None"}
    values = ParameterValues.build(nested(PARAMETERS).parameters, environment.parameters, {"n": 5}, {})
    assert (values["l"], values["n"]) == ([".member.0.a=1"], 5)


# In place of a type.


def mismatches(parameters, outputs=("address",)):
    return list(template_type(parameters, {name: {"value": 1} for name in outputs}, Facade()).mismatches)


MUST = {"must": {"type": "string"}}


def test_a_template_that_fits_the_type_in_whose_place_it_is():
    fitting = {"size": {"type": "number", "default": 1}, "free": {"type": "json", "default": {}}}
    additional = {"more": {"type": "string", "default": ""}}
    assert mismatches({**MUST, **fitting, **additional}) == []


@pytest.mark.parametrize(
    ("parameters", "outputs", "message"),
    [
        ({}, ["address"], "Required property must for facade Test::Facade missing in provider"),
        (
            {"must": {"type": "number"}},
            ["address"],
            "Property must type mismatch between facade Test::Facade (String) and provider (Number)",
        ),
        (
            {**MUST, "tags": {"type": "json", "default": {}}},
            ["address"],
            "Property tags type mismatch between facade Test::Facade (List) and provider (Map)",
        ),
        (
            {**MUST, "more": {"type": "string"}},
            ["address"],
            "Provider requires property more unknown in facade Test::Facade",
        ),
        (MUST, [], "Attribute address for facade Test::Facade missing in provider"),
    ],
)
def test_a_template_that_does_not_fit_says_where(parameters, outputs, message):
    assert mismatches(parameters, outputs) == [message]


def test_every_mismatch_is_reported():
    assert len(mismatches({"more": {"type": "string"}}, [])) == 3


# Names that are not a type.


@pytest.mark.parametrize(
    "sections",
    [
        {"parameters": {"p": {"type": "strin"}}},
        {"parameters": [1]},
        {"outputs": {"o": {}}},
        {"outputs": [1]},
        {"outputs": {"o": 5}},
    ],
)
def test_a_template_without_readable_parameters_or_outputs_is_no_type(sections):
    with pytest.raises(InvalidTemplate) as caught:
        nested(**sections)
    assert {fault.file for fault in caught.value.diagnostics} == {URL}
    assert all(fault.line for fault in caught.value.diagnostics)


def test_other_faults_of_a_template_leave_it_a_type():
    result = nested(PARAMETERS, resources={"a": {"type": 5, "x": 1}}, foo={})
    assert len(result.faults) >= 2
    assert result.parameters.keys() == PARAMETERS.keys()


def test_each_set_of_values_gets_a_new_definition():
    condition = {"equals": [{"get_param": "p"}, "x"]}
    result = nested({"p": {"type": "string"}}, resources={"a": {"type": "T", "condition": condition}})
    with_it, _ = result.define(ParameterValues({"p": "x"}))
    without, _ = result.define(ParameterValues({"p": "y"}))
    assert (list(with_it.resources), list(without.resources)) == (["a"], [])
