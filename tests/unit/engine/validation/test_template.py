"""Faults of resources, found before any resource is created."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.engine.validation.template import validate_stack
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.resources.base import Attribute, Property, ResourceType
from orchestrator.resources.builtin.delay import Delay
from orchestrator.resources.builtin.none import NoneResource
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.builtin.test_resource import TestResource
from orchestrator.resources.builtin.value import ValueResource
from orchestrator.resources.registry import Registry
from orchestrator.schema.constraints import Range
from orchestrator.schema.translation import Replace
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import FaultyTemplate, load


class Server(ResourceType):
    """Has a property of each relevant kind."""

    name = "Test::Server"
    properties = {  # noqa: RUF012
        "size": Property("integer", required=True, constraints=(Range(1, 10),)),
        "description": Property("string", update_allowed=True),
        "tags": Property("list", schema=Property("string")),
    }
    attributes = {"address": Attribute("Where it is.")}  # noqa: RUF012
    can_snapshot = True


class Group(ResourceType):
    """Takes an update policy."""

    name = "Test::Group"
    update_policy = {  # noqa: RUF012
        "rolling": Property("map", schema={"size": Property("integer", constraints=(Range(1),))})
    }


class Old(ResourceType):
    """Is about to be retired, and keeps old names of its properties working."""

    name = "Test::Old"
    support_status = "DEPRECATED"
    properties = {  # noqa: RUF012
        "new": Property("integer"),
        "old": Property("integer", deprecated="use new"),
        "older": Property("integer"),
    }
    translation = (Replace(("new",), source=("older",)),)


BOTH = {"new": 1, "older": 2}
TYPES = Registry.of(Delay, Group, NoneResource, Old, RandomString, Server, TestResource, ValueResource)
LIMITS = Limits()


def faults(resources, parameters=None, outputs=None, *, strict=True, timeout=3600.0, **supplied):
    """Validate a template of these sections; return (path, message) of every fault, in order."""
    result = diagnostics(resources, parameters, outputs, strict=strict, timeout=timeout, **supplied)
    return [(fault.path, fault.message) for fault in result]


def kinds(files=None, *, overlook=False):
    environment = TypeEnvironment.of_stack(TYPES, Environment(), files or {}, LIMITS)
    return TypeResolver(replace(environment, allow_unavailable=overlook))


def diagnostics(
    resources,
    parameters=None,
    outputs=None,
    *,
    strict=True,
    timeout=3600.0,
    overlook=False,
    files=None,
    **supplied,
):
    source = {
        "heat_template_version": "2016-10-14",
        "parameters": parameters or {},
        "resources": resources,
        "outputs": outputs or {},
    }
    template = load(source, LIMITS)
    values = ParameterValues.build(template.parameters, supplied, {}, {}, missing_ok=not strict)
    return validate_stack(
        template, values, kinds(files, overlook=overlook), strict=strict, stack_timeout_seconds=timeout
    )


def a(type_name, **keys):
    return {"type": type_name, **keys}


def test_a_template_without_faults_has_none():
    resources = {
        "a": a("OS::Heat::RandomString", properties={"length": 8}),
        "b": a("OS::Heat::Value", properties={"value": {"get_attr": ["a", "value"]}}),
    }
    assert faults(resources, outputs={"o": {"value": {"get_attr": ["b", "value"]}}}) == []


def test_an_unknown_type_is_reported_with_a_suggestion():
    (fault,) = diagnostics({"a": a("OS::Heat::RandomStrin")})
    assert fault.message == "The Resource Type (OS::Heat::RandomStrin) could not be found."
    assert fault.path == "resources.a.type"
    assert fault.hint == 'did you mean "OS::Heat::RandomString"?'


def test_every_fault_is_reported_in_the_order_of_the_template():
    resources = {
        "z": a("No::Such"),
        "b": a("OS::Heat::RandomString", properties={"lenght": 3, "length": 0}),
        "a": a("OS::Heat::Value"),
    }
    assert faults(resources) == [
        ("resources.z.type", "The Resource Type (No::Such) could not be found."),
        (
            "resources.b.properties.lenght",
            "Property error: resources.b.properties: Unknown Property lenght",
        ),
        (
            "resources.b.properties.length",
            "Property error: resources.b.properties.length: 0 is out of range (min: 1, max: 512)",
        ),
        ("resources.a.properties", "Property error: resources.a.properties: Property value not assigned"),
    ]


def test_a_fault_of_a_member_names_its_path():
    classes = [{"class": "digits"}, {"class": "runes"}]
    ((path, message),) = faults({"a": a("OS::Heat::RandomString", properties={"character_classes": classes})})
    assert path == "resources.a.properties.character_classes[1].class"
    assert message.startswith(f'Property error: {path}: "runes" is not an allowed value [')


def test_values_of_parameters_are_checked():
    resources = {"a": a("Test::Server", properties={"size": {"get_param": "n"}, "tags": ["x"]})}
    parameters = {"n": {"type": "number"}}
    assert faults(resources, parameters, n=5) == []
    ((path, message),) = faults(resources, parameters, n=11)
    assert path == "resources.a.properties.size"
    assert message.endswith("11 is out of range (min: 1, max: 10)")


@pytest.mark.parametrize(
    "size",
    [
        {"get_attr": ["b", "output"]},
        {"get_resource": "b"},
        {"str_replace": {"template": "x", "params": {"x": {"get_resource": "b"}}}},
        {"list_join": ["", [{"get_attr": ["b", "output"]}, "1"]]},
    ],
)
def test_values_from_a_resource_are_not_validated_before_its_creation(size):
    resources = {
        "a": a("Test::Server", properties={"size": size, "tags": [{"get_resource": "b"}]}),
        "b": a("OS::Heat::TestResource"),
    }
    assert faults(resources) == []


def test_values_next_to_an_unknown_value_are_validated():
    waits = {"create": {"get_attr": ["b", "output"]}, "delete": "soon", "resize": 1}
    resources = {
        "a": a("OS::Heat::TestResource", properties={"action_wait_secs": waits}),
        "b": a("OS::Heat::TestResource"),
    }
    assert [path for path, _ in faults(resources)] == [
        "resources.a.properties.action_wait_secs.resize",
        "resources.a.properties.action_wait_secs.delete",
    ]


def test_values_are_not_required_when_only_validating():
    resources = {
        "a": a("Test::Server", properties={"size": {"get_param": "n"}}),
        "b": a("Test::Server", properties={"size": {"get_param": "n"}, "tags": "x"}),
        "c": a("OS::Heat::Value", properties={"value": {"list_join": [",", [{"get_param": "n"}]]}}),
    }
    assert [path for path, _ in faults(resources, {"n": {"type": "number"}}, strict=False)] == [
        "resources.b.properties.tags"
    ]


def test_all_properties_may_come_from_a_single_function():
    resources = {"a": a("Test::Server", properties={"get_param": "all"})}
    parameters = {"all": {"type": "json"}}
    assert faults(resources, parameters, strict=False) == []
    assert faults(resources, parameters, all={"size": 3}) == []
    assert [path for path, _ in faults(resources, parameters, all={"size": 0})] == [
        "resources.a.properties.size"
    ]
    assert [path for path, _ in faults(resources, parameters, all=[1])] == ["resources.a.properties"]


def test_the_rule_of_a_type_is_reported_with_its_own_message():
    resources = {
        "a": a("OS::Heat::RandomString", properties={"length": 1, "character_classes": [{"min": 2}]})
    }
    assert faults(resources) == [
        (
            "resources.a",
            "Length property cannot be smaller than combined character class and character sequence minimums",
        )
    ]


def test_a_delay_must_fit_into_the_timeout_of_a_stack():
    resources = {"a": a("OS::Heat::Delay", properties={"min_wait": 50, "max_jitter": 20})}
    assert faults(resources, timeout=70.0) == []
    assert faults(resources, timeout=60.0) == [
        ("resources.a", "OS::Heat::Delay maximum delay 70s exceeds stack timeout.")
    ]
    assert faults(resources, timeout=60.0, strict=False) == []


def test_snapshot_is_refused_for_types_that_have_none():
    def of(policy, kind="OS::Heat::None", **options):
        return faults({"a": a(kind, deletion_policy=policy)}, {"p": {"type": "string"}}, **options)

    assert of("Retain", p="") == []
    assert of("Snapshot", "Test::Server", p="")[1:] == []
    assert of("Snapshot", p="") == [
        (
            "resources.a.deletion_policy",
            'resources.a.deletion_policy: "Snapshot" deletion policy not supported',
        )
    ]
    assert of({"get_param": "p"}, p="delete") == []
    assert of({"get_param": "p"}, p="keep") == [
        ("resources.a.deletion_policy", 'Invalid deletion policy "keep"')
    ]
    # Heat evaluates the policy even for requests that only list the contents of a template.
    assert of({"get_param": "p"}, strict=False) == [
        ("resources.a.deletion_policy", "The Parameter (p) was not provided.")
    ]


def test_an_unknown_attribute_is_reported_at_its_use():
    resources = {
        "a": a("OS::Heat::TestResource"),
        "b": a("OS::Heat::Value", properties={"value": ["x", {"get_attr": ["a", "outptu"]}]}),
    }
    outputs = {"o": {"value": {"get_attr": ["b", "values", 0]}}}
    result = diagnostics(resources, outputs=outputs)
    assert [(fault.message, fault.hint) for fault in result] == [
        (
            "resources.b.properties.value[1].get_attr: The Referenced Attribute (a outptu) is incorrect.",
            'did you mean "output"?',
        ),
        (
            "outputs.o.value.get_attr: The Referenced Attribute (b values) is incorrect.",
            'did you mean "value"?',
        ),
    ]
    assert [fault.path for fault in result] == [fault.message.partition(": ")[0] for fault in result]


def test_show_and_all_attributes_may_be_asked_of_any_type():
    outputs = {
        "show": {"value": {"get_attr": ["a", "show"]}},
        "all": {"value": {"get_attr": ["a"]}},
        "none": {"value": {"get_attr": ["n", "whatever"]}},
    }
    assert faults({"a": a("OS::Heat::TestResource"), "n": a("OS::Heat::None")}, outputs=outputs) == []


def test_a_hidden_parameter_is_never_quoted():
    resources = {
        "a": a("OS::Heat::Value", properties={"type": "number", "value": {"get_param": "secret"}}),
        "b": a("Test::Server", properties={"size": {"get_param": "secret"}, "tags": 5}),
        "c": a("OS::Heat::TestResource", properties={"wait_secs": {"get_param": "secret"}}),
        "d": a("OS::Heat::None", metadata={"m": {"list_join": [",", [{"get_param": "list"}]]}}),
    }
    parameters = {
        "secret": {"type": "string", "hidden": True},
        "list": {"type": "comma_delimited_list", "hidden": True},
    }
    result = faults(resources, parameters, secret="hunter2", list="hunter2")
    assert [path for path, _ in result] == [
        "resources.a.properties.value",
        "resources.b.properties.size",
        "resources.b.properties.tags",
        "resources.c.properties.wait_secs",
    ]
    assert "hunter2" not in str(result)
    assert "is not a list" in result[2][1]  # values that are not secret are still quoted


# Just before the create: everything is known.


def severities(resources, **options):
    return [(fault.code, fault.severity) for fault in diagnostics(resources, **options)]


def test_before_a_stack_is_to_be_made_a_wrong_value_is_a_warning_and_a_wrong_name_is_not():
    resources = {"a": a("Test::Server", properties={"size": 11, "tags": {"list_join": [",", [1]]}, "x": 1})}
    invalid = {("wrong-value", "error"), ("function-error", "error"), ("unknown-property", "error")}
    assert set(severities(resources)) == invalid
    assert severities(resources, strict=False) == [
        ("unknown-property", "error"),
        ("function-error", "warning"),
        ("wrong-value", "warning"),
    ]


def test_a_failing_function_is_reported_at_its_property():
    text = {"list_join": [",", [1]]}
    resources = {"a": a("Test::Server", properties={"size": 1, "tags": [text]})}
    (fault,) = diagnostics(resources)
    assert fault.path == "resources.a.properties.tags[0].list_join"
    assert fault.message == (
        "Property error: resources.a.properties.tags: Items to join must be string, map or list not 1"
    )


def test_types_come_first_then_update_policies_then_the_rest():
    resources = {
        "a": a("Test::Server", properties={"size": 11}),
        "b": a("Test::Server", properties={"size": 1}, update_policy={"x": 1}),
        "c": a("No::Such"),
    }
    assert [path for path, _ in faults(resources)] == [
        "resources.c.type",
        "resources.b.update_policy.x",
        "resources.a.properties.size",
    ]


def test_an_update_policy_is_checked_with_its_values_by_the_types_own_schema():
    def of(policy, **options):
        return faults({"a": a("Test::Group", update_policy=policy)}, {"p": {"type": "number"}}, **options)

    place = "resources.a.update_policy"
    assert of({"rolling": {"size": {"get_param": "p"}}}, p=1) == []
    assert of({"rolling": {"size": {"get_param": "p"}}}, strict=False) == []
    for additional in ({"p": 0}, {"p": 0, "strict": False}):
        ((path, message),) = of({"rolling": {"size": {"get_param": "p"}}}, **additional)
        assert path == f"{place}.rolling.size"
        assert message == f"Property error: {path}: 0 is out of range (min: 1)"
    assert of({"rolling": {"sise": 1}}, p=1) == [
        (f"{place}.rolling.sise", f"Property error: {place}.rolling: Unknown Property sise")
    ]
    assert of({"rolling": {"size": {"list_join": [",", [1]]}}}, p=1) == [
        (
            f"{place}.rolling.size.list_join",
            f"Property error: {place}: Items to join must be string, map or list not 1",
        )
    ]


def test_a_deletion_policy_cannot_depend_on_a_resource():
    resources = {
        "a": a("OS::Heat::None", deletion_policy={"get_attr": ["b", "output"]}),
        "b": a("OS::Heat::TestResource"),
    }
    assert [path for path, _ in faults(resources)] == ["resources.a.deletion_policy"]


def test_only_the_id_of_an_external_resource_is_checked():
    invalid = {"properties": {"x": 1}, "deletion_policy": "Snapshot", "update_policy": {"x": 1}}
    assert faults({"a": a("OS::Heat::TestResource", external_id="x", **invalid)}) == []
    resources = {"a": a("OS::Heat::TestResource", external_id={"list_join": [",", [1]]})}
    assert [path for path, _ in faults(resources)] == ["resources.a.external_id.list_join"]
    assert faults({"a": a("OS::Nova::Server", external_id="x")}, strict=False) == []
    assert severities({"a": a("OS::Nova::Server", external_id="x")}) == [("type-unavailable", "error")]


def test_a_known_type_that_is_not_there_is_refused_by_name_or_overlooked_with_all_that_is_in_it():
    resources = {
        "a": a("OS::Nova::Server", properties={"x": 1}, update_policy={"x": 1}, deletion_policy="Snapshot"),
        "b": a("OS::Heat::Value", properties={"value": {"get_attr": ["a", "whatever"]}}),
    }
    (fault,) = diagnostics(resources)
    assert (fault.path, fault.heat_type) == ("resources.a.type", "ResourceTypeUnavailable")
    assert fault.message == (
        "HEAT-E99001 Service nova is not available for resource type OS::Nova::Server, "
        "reason: nova compute endpoint is not in service catalog."
    )
    assert diagnostics(resources, overlook=True) == []
    resources["a"]["deletion_policy"] = {"get_param": "p"}
    parameters = {"p": {"type": "string"}}
    assert severities(resources, parameters=parameters, overlook=True, p="keep") == [
        ("deletion-policy", "error")
    ]


def test_a_type_and_a_property_that_are_going_away_are_warnings_the_type_once():
    resources = {name: a("Test::Old", properties={"old": 1}) for name in "ab"}
    result = diagnostics(resources)
    assert [(fault.path, fault.severity) for fault in result] == [
        ("resources.a.type", "warning"),
        ("resources.a.properties.old", "warning"),
        ("resources.b.properties.old", "warning"),
    ]
    assert result[0].message == "The resource type Test::Old is deprecated."
    assert result[1].message.endswith("Property old is deprecated: use new")


def test_properties_are_translated_before_they_are_checked():
    assert faults({"a": a("Test::Old", properties={"older": 5})}) == faults(
        {"a": a("Test::Old", properties={"new": 5})}
    )
    ((path, message),) = faults({"b": a("Test::Old", properties=BOTH)})[1:]
    assert path == "resources.b.properties.new"
    assert message == (
        "Property error: resources.b.properties.new: "
        "Cannot define the following properties at the same time: new, older"
    )


def test_a_fault_in_a_template_of_the_other_dialect_uses_its_terms():
    source = {
        "HeatTemplateFormatVersion": "2012-12-12",
        "Resources": {
            "a": {"Type": "OS::Heat::TestResource", "Properties": {"x": 1}, "DeletionPolicy": "Snapshot"},
            "b": {
                "Type": "OS::Heat::Value",
                "Properties": {"value": {"Fn::GetAtt": ["a", "zz"]}},
                "UpdatePolicy": {"x": 1},
            },
            "c": {"Type": "OS::Heat::Value", "Properties": {"value": {"Ref": "a"}}},
        },
        "Outputs": {"o": {"Value": {"Fn::GetAtt": ["a", "zz"]}}},
    }
    template = load(source, LIMITS)
    result = validate_stack(template, ParameterValues({}), kinds(), strict=True)
    assert [fault.message for fault in result] == [
        "Property error: Resources.b.UpdatePolicy: Unknown Property x",
        'Resources.a.DeletionPolicy: "Snapshot" deletion policy not supported',
        "Property error: Resources.a.Properties: Unknown Property x",
        "Resources.b.Properties.value.Fn::GetAtt: The Referenced Attribute (a zz) is incorrect.",
        "Outputs.o.Value.Fn::GetAtt: The Referenced Attribute (a zz) is incorrect.",
    ]


def test_a_template_with_faults_of_its_own_is_looked_into_without_a_stumble():
    body = {"type": "Test::Server", "properties": [1], "metadata": 5, "update_policy": [1]}
    source = {"heat_template_version": "2016-10-14", "resources": {"a": body}}
    with pytest.raises(FaultyTemplate) as caught:
        load(source, LIMITS)
    result = validate_stack(caught.value.rest, ParameterValues({}), kinds(), strict=True)
    assert {fault.path for fault in result} == {"resources.a.update_policy", "resources.a.properties"}


def test_a_file_that_was_sent_is_there_and_another_is_not():
    resources = {"a": a("OS::Heat::Value", properties={"value": {"get_file": "f"}})}
    assert diagnostics(resources, files={"f": "text"}) == []
    ((_, message),) = faults(resources)
    assert message.endswith('No content found in the "files" section for get_file path: f')
