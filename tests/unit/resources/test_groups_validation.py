"""Faults of the members of a group are reported before creation, with the path through both templates."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.engine.validation.template import validate_stack
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.builtin.test_resource import TestResource
from orchestrator.resources.groups.auto_scaling_group import AutoScalingGroup
from orchestrator.resources.groups.resource_chain import ResourceChain
from orchestrator.resources.groups.resource_group import ResourceGroup
from orchestrator.resources.registry import Registry
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load

TYPES = Registry.of(TestResource, RandomString, ResourceGroup, ResourceChain, AutoScalingGroup)
URL = "file:///member.yaml"
MEMBER = {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}


def diagnostics(resources, *, files=None, **options):
    template = load({"heat_template_version": "2021-04-16", "resources": resources, **options}, Limits())
    types = TypeEnvironment.of_stack(TYPES, Environment(), files or {}, Limits())
    kinds = TypeResolver(replace(types, max_depth=3, max_resources=1000))
    return validate_stack(template, ParameterValues({}), kinds, strict=True)


def group(member=None, count=3, **options):
    definition = MEMBER if member is None else member
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": definition, **options},
    }


def fault_texts(*resources, **options):
    faults = diagnostics(dict(zip("gh", resources, strict=False)), **options)
    return [(fault.path, fault.message) for fault in faults if fault.severity == "error"]


def test_a_sound_group_has_no_faults():
    assert fault_texts(group()) == []


def test_a_wrong_property_of_a_member_is_reported_once_with_both_templates():
    invalid = {**MEMBER, "properties": {"valu": "v"}}
    assert fault_texts(group(invalid)) == [
        (
            "resources.g.properties.resource_def.properties.valu",
            "Property error: resources.g<nested_stack>.resources.0.properties: Unknown Property valu",
        )
    ]


def test_an_unknown_type_of_a_member_is_reported():
    [(path, message)] = fault_texts(group({"type": "No::Such"}))
    assert path == "resources.g.properties.resource_def.type"
    assert message.endswith("The Resource Type (No::Such) could not be found.")


def test_members_of_a_group_without_any_are_not_looked_at():
    assert fault_texts(group({"type": "No::Such"}, count=0)) == []


@pytest.mark.parametrize(
    ("count", "message"),
    [(-1, "-1 is out of range (min: 0)"), ("many", "Value 'many' is not an integer")],
)
def test_an_invalid_count_is_reported(count, message):
    [(path, said)] = fault_texts(group(count=count))
    assert path == "resources.g.properties.count"
    assert said.endswith(message)


def test_unknown_values_break_no_rule_and_hide_no_fault():
    member = {
        "type": "OS::Heat::TestResource",
        "properties": {"value": {"get_attr": ["h", "value"]}, "wait_secs": "long"},
    }
    [(path, message)] = fault_texts(group(member), {"type": "OS::Heat::RandomString"})
    assert path == "resources.g.properties.resource_def.properties.wait_secs"
    assert "not a" in message


def test_the_index_is_in_its_place():
    member = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": "%index%"}}
    assert fault_texts(group(member)) == []


def test_a_secret_in_a_member_is_not_quoted():
    member = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": {"get_param": "p"}}}
    parameters = {"p": {"type": "string", "hidden": True}}
    result = _with_parameters(member, parameters)
    assert result
    assert not any("hush" in fault.message for fault in result)


def _with_parameters(member, schemas):
    document = {
        "heat_template_version": "2021-04-16",
        "parameters": schemas,
        "resources": {"g": group(member)},
    }
    kinds = TypeResolver(TypeEnvironment.of_stack(TYPES, Environment(), {}, Limits()))
    return validate_stack(
        load(document, Limits()), ParameterValues({"p": "hush"}, frozenset({"p"})), kinds, strict=True
    )


def test_a_fault_in_a_members_template_keeps_its_file_and_names_the_way():
    inner = {
        "heat_template_version": "2021-04-16",
        "resources": {"bad": {"type": "OS::Heat::TestResource", "properties": {"valu": 1}}},
    }
    faults = diagnostics({"g": group({"type": URL})}, files={URL: json.dumps(inner)})
    [fault] = [item for item in faults if item.severity == "error"]
    assert fault.file == URL
    assert fault.line == 1
    assert (
        "resources.g<nested_stack>.resources.0<file:///member.yaml>.resources.bad.properties" in fault.message
    )


def test_a_template_that_groups_itself_ends_at_the_limit():
    inner = {"heat_template_version": "2021-04-16", "resources": {"again": group({"type": URL})}}
    result = fault_texts(group({"type": URL}), files={URL: json.dumps(inner)})
    assert any("Recursion depth exceeds 3." in message for _, message in result)


def test_members_and_their_contents_are_counted():
    inner = {"heat_template_version": "2021-04-16", "resources": {f"r{n}": MEMBER for n in range(9)}}
    files = {URL: json.dumps(inner)}
    assert fault_texts(group({"type": URL}, count=99), files=files) == []
    [(_, message)] = fault_texts(group({"type": URL}, count=100), files=files)
    assert "Maximum resources per stack exceeded" in message


def test_a_million_equal_members_are_validated_once():
    [(_, message)] = fault_texts(group(count=10**6))
    assert "Maximum resources per stack exceeded" in message


def test_a_scaling_groups_member_is_looked_at():
    invalid = {"type": "OS::Heat::TestResource", "properties": {"valu": 1}}
    supplied = {"min_size": 1, "max_size": 2, "resource": invalid}
    [(path, message)] = fault_texts({"type": "OS::Heat::AutoScalingGroup", "properties": supplied})
    assert path == "resources.g.properties.resource.properties.valu"
    assert "resources.g<nested_stack>.resources." in message


def test_the_members_of_a_chain_are_checked_individually():
    supplied = {
        "resources": ["OS::Heat::TestResource", "No::Such"],
        "resource_properties": {"value": "v", "a": 1},
    }
    result = dict(fault_texts({"type": "OS::Heat::ResourceChain", "properties": supplied}))
    assert "Unknown Property a" in result["resources.g.properties.resource_properties.a"]
    assert "(No::Such) could not be found" in result["resources.g.properties.resources[1]"]


def test_update_policies_are_looked_at():
    sound, invalid = group(), group()
    sound["update_policy"] = {"rolling_update": {"max_batch_size": 2}, "batch_create": {}}
    invalid["update_policy"] = {"rolling_update": {"max_batch_size": 0}, "rolling": {}}
    assert fault_texts(sound) == []
    paths = [path for path, _ in fault_texts(invalid)]
    assert sorted(paths) == [
        "resources.g.update_policy.rolling",
        "resources.g.update_policy.rolling_update.max_batch_size",
    ]


def test_a_group_accepts_any_member_attribute_and_a_scaling_group_only_known_attributes():
    asg = {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 2, "resource": MEMBER},
    }

    def attribute_faults(*path):
        return diagnostics({"g": group(), "h": asg}, outputs={"o": {"value": {"get_attr": list(path)}}})

    assert not attribute_faults("g", "anything")
    assert not attribute_faults("h", "resource.0.anything")
    assert (
        "The Referenced Attribute (h anything) is incorrect" in attribute_faults("h", "anything")[0].message
    )
