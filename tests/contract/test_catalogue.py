"""The list of types, and their descriptions."""

from __future__ import annotations

import importlib.metadata
import threading

import pytest

from orchestrator.errors import InvalidRequest, InvalidValue, Misconfigured, NotFound, NotSupported
from orchestrator.resources.base import Property, ResourceType
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.builtin.test_resource import TestResource
from orchestrator.resources.registry import GROUP, Registry, load_registry
from orchestrator.resources.type_schema import list_types, type_schema, type_template
from orchestrator.template.parse import Limits
from orchestrator.template.template import load


class Old(ResourceType):
    """Kept for stacks with a resource of this type."""

    name = "Test::Old"
    hidden = True


class Deprecated(ResourceType):
    """There is something better."""

    name = "Test::Deprecated"
    support_status = "DEPRECATED"
    support_version = "2015.1"
    properties = {"names": Property("list", required=True)}  # noqa: RUF012


TYPES = Registry.of(TestResource, RandomString, Old, Deprecated)


def points(**values):
    return {name: importlib.metadata.EntryPoint(name, value, GROUP) for name, value in values.items()}


def test_our_own_types_are_registered():
    assert set(load_registry()) >= {
        "AWS::CloudFormation::Stack",
        "AWS::CloudFormation::WaitCondition",
        "OS::Heat::AutoScalingGroup",
        "OS::Heat::None",
        "OS::Heat::SoftwareDeployment",
        "OS::Heat::WaitCondition",
    }
    assert all(kind.name == name for name, kind in load_registry().items())


def test_a_type_is_loaded_once():
    types = load_registry()
    assert types["OS::Heat::None"] is types["OS::Heat::None"]
    assert load_registry() is types


def test_concurrent_threads_get_the_same_object():
    value = "orchestrator.resources.builtin.none:NoneResource"
    types, observed, batch = Registry(points(**{"OS::Heat::None": value})), [], threading.Barrier(8)

    def ask():
        batch.wait()
        observed.append(types["OS::Heat::None"])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(kind) for kind in observed}) == 1


def test_an_unknown_type_is_not_found_in_heats_words():
    with pytest.raises(NotFound, match=r"^The Resource Type \(No::Such\) could not be found\.$"):
        TYPES["No::Such"]
    assert TYPES.get("No::Such") is None
    assert "No::Such" not in TYPES


@pytest.mark.parametrize(
    "value",
    [
        "no.such.module:Thing",
        "orchestrator.errors:NoSuchClass",
        "orchestrator.errors:NotFound",
        "orchestrator.resources.builtin.none:NoneResource",
    ],
)
def test_a_type_that_cannot_be_loaded_says_which(value):
    types = Registry(points(Broken=value))
    with pytest.raises(Misconfigured, match=r"^resource type Broken"):
        types["Broken"]


def test_the_list_is_sorted_and_leaves_out_the_hidden():
    assert list_types(TYPES) == ["OS::Heat::RandomString", "OS::Heat::TestResource", "Test::Deprecated"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"name": "OS::Heat::R"}, ["OS::Heat::RandomString"]),
        ({"name": ".*Test"}, ["OS::Heat::TestResource", "Test::Deprecated"]),
        ({"name": "Heat"}, []),
        ({"name": "("}, []),
        ({"support_status": "DEPRECATED"}, ["Test::Deprecated"]),
        ({"support_status": "HIDDEN"}, []),
        ({"version": "2014.1"}, ["OS::Heat::RandomString"]),
    ],
)
def test_the_list_can_be_filtered(filters, names):
    assert list_types(TYPES, **filters) == names


def test_a_support_status_that_there_is_not_is_refused():
    with pytest.raises(InvalidValue) as caught:
        list_types(TYPES, support_status="GOOD")
    assert str(caught.value) == (
        "Data supplied was not valid: Invalid support status and should be one of "
        "('UNKNOWN', 'SUPPORTED', 'DEPRECATED', 'UNSUPPORTED', 'HIDDEN')"
    )


def test_the_list_can_have_descriptions():
    assert list_types(TYPES, name="Test::", with_description=True) == [
        {"resource_type": "Test::Deprecated", "description": "There is something better."}
    ]


def test_a_hidden_type_is_not_listed():
    with pytest.raises(NotSupported):
        type_schema(TYPES, "Test::Old")
    with pytest.raises(NotSupported):
        type_template(TYPES, "Test::Old")
    with pytest.raises(NotFound):
        type_schema(TYPES, "No::Such")


def test_a_schema_describes_the_values_of_a_property():
    schema = type_schema(TYPES, "OS::Heat::RandomString")
    assert schema["properties"]["length"] == {
        "type": "integer",
        "required": False,
        "update_allowed": False,
        "immutable": False,
        "description": "Length of the string.",
        "default": 32,
        "constraints": [{"range": {"min": 1, "max": 512}}],
    }
    assert set(schema["properties"]["character_classes"]["schema"]["*"]["schema"]) == {"class", "min"}
    assert "sequence" not in schema["properties"]
    assert schema["attributes"]["value"]["type"] == "string"
    assert schema["attributes"]["show"]["type"] == "map"
    assert schema["support_status"]["version"] == "2014.1"
    assert "description" not in schema


def test_a_generated_hot_template_is_a_template():
    template = load(type_template(TYPES, "OS::Heat::TestResource", "hot"), Limits())
    assert template.resources["TestResource"].type == "OS::Heat::TestResource"
    assert template.parameters["wait_secs"].default == 0
    assert set(template.outputs) == {"output", "show", "OS::stack_id"}


def test_a_generated_cfn_template_splits_lists():
    template = type_template(TYPES, "Test::Deprecated")
    assert template["HeatTemplateFormatVersion"] == "2012-12-12"
    assert template["Parameters"] == {"names": {"Type": "CommaDelimitedList"}}
    assert template["Resources"] == {
        "Deprecated": {
            "Type": "Test::Deprecated",
            "Properties": {"names": {"Fn::Split": [",", {"Ref": "names"}]}},
        }
    }
    assert template["Outputs"] == {
        "show": {
            "Description": "Detailed information about resource.",
            "Value": {"Fn::GetAtt": ["Deprecated", "show"]},
        },
        "OS::stack_id": {"Value": {"Ref": "Deprecated"}},
    }


def test_a_generated_template_describes_each_constraint():
    hot = type_template(TYPES, "OS::Heat::RandomString", "hot")["parameters"]["length"]
    cfn = type_template(TYPES, "OS::Heat::RandomString")["Parameters"]["length"]
    assert hot == {
        "type": "number",
        "description": "Length of the string.",
        "default": 32,
        "constraints": [{"range": {"min": 1, "max": 512}}],
    }
    assert cfn == {
        "Type": "Number",
        "Description": "Length of the string.",
        "Default": 32,
        "MinValue": 1,
        "MaxValue": 512,
    }
    fail = type_template(TYPES, "OS::Heat::TestResource")["Parameters"]["fail"]
    assert fail["AllowedValues"] == ["True", "true", "False", "false"]


def test_another_dialect_is_refused():
    with pytest.raises(InvalidRequest, match="tosca"):
        type_template(TYPES, "Test::Deprecated", "tosca")
