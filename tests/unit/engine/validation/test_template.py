"""Faults of resources, found before any resource is created: types, attributes, policies, and their order."""

from __future__ import annotations

import pytest

from orchestrator.engine.validation.template import validate_stack
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import FaultyTemplate, load
from tests.unit.engine.validation.validation_world import LIMITS, a, diagnostics, faults, kinds, severities


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
    [lenient] = diagnostics({"a": a("OS::Nova::Server", external_id="x")}, strict=False)
    assert (lenient.severity, lenient.refused) == ("warning", True)
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
