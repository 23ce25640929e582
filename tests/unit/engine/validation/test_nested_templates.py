"""Nested templates are looked into before a stack is accepted, with the values that they will get."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from orchestrator.engine.validation.template import validate_stack
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.resources.registry import load_registry
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load

N, M = "http://h/n.yaml", "http://h/m.yaml"
LIMITS = Limits()
RANDOM = "OS::Heat::RandomString"


def hot(resources=None, parameters=None, outputs=None):
    return {
        "heat_template_version": "2018-08-31",
        "parameters": parameters or {},
        "resources": resources or {},
        "outputs": outputs or {},
    }


def diagnostics(
    source, files, *, strict=True, overlook=False, max_depth=5, max_resources=1000, **environment
):
    """Validate a template that came with these files, objects being written as JSON."""
    texts = {name: body if isinstance(body, str) else json.dumps(body) for name, body in files.items()}
    types = TypeEnvironment.of_stack(load_registry(), Environment.parse(environment), texts, LIMITS)
    limits = {"max_depth": max_depth, "max_resources": max_resources}
    kinds = TypeResolver(replace(types, allow_unavailable=overlook, **limits))
    template = load(source, LIMITS)
    values = ParameterValues.build(template.parameters, {}, {}, {}, missing_ok=True)
    return validate_stack(template, values, kinds, strict=strict, stack_timeout_seconds=3600.0)


def messages(source, files, **options):
    return [fault.message for fault in diagnostics(source, files, **options)]


def nested(child, properties=None, **options):
    """Return the messages about a stack whose resource `a` is this template."""
    return messages(hot({"a": {"type": N, "properties": properties or {}}}), {N: child}, **options)


def test_a_template_without_faults_has_none():
    child = hot(
        {"x": {"type": RANDOM, "properties": {"length": {"get_param": "p"}}}}, {"p": {"type": "number"}}
    )
    assert nested(child, {"p": 5}) == []


@pytest.mark.parametrize(
    ("child", "message"),
    [
        (
            hot({"x": {"type": RANDOM, "properties": {"lenght": 1}}}),
            f"Property error: resources.a<{N}>.resources.x.properties: Unknown Property lenght",
        ),
        (
            hot({"x": {"type": "No::Such"}}),
            f"resources.a<{N}>: The Resource Type (No::Such) could not be found.",
        ),
        (
            hot({"x": {"type": RANDOM, "depends_on": "y"}, "y": {"type": RANDOM, "depends_on": "x"}}),
            f"CircularDependencyException: resources.a<{N}>: Circular Dependency Found: x -> y -> x",
        ),
        (
            hot({"x": {"type": RANDOM, "metadata": {"m": {"get_resource": "nope"}}}}),
            f'InvalidTemplateReference: resources.a<{N}>: The specified reference "nope" '
            "(in x.Metadata.m) is incorrect.",
        ),
        (
            hot({"x": {"type": RANDOM}}, outputs={"o": {"value": {"get_attr": ["x", "v"]}}}),
            f"resources.a<{N}>.outputs.o.value.get_attr: The Referenced Attribute (x v) is incorrect.",
        ),
        (
            hot({"x": {"type": RANDOM, "deletion_policy": "Snapshot"}}),
            f'resources.a<{N}>.resources.x.deletion_policy: "Snapshot" deletion policy not supported',
        ),
        (
            hot({"x": {"type": "OS::Zaqar::Queue"}}),
            f"ResourceTypeUnavailable: resources.a<{N}>: HEAT-E99001 Service zaqar is not available for "
            "resource type OS::Zaqar::Queue, reason: zaqar messaging endpoint is not in service catalog.",
        ),
        (
            {**hot(), "parameter_groups": [{"label": "x", "parameters": ["q"]}]},
            f"Parameter Groups error: resources.a<{N}>.parameter_groups.x: "
            "The grouped parameter q does not reference a valid parameter.",
        ),
        (
            {**hot(), "foo": {}},
            f"InvalidTemplateSection: resources.a<{N}>: The template section is invalid: foo",
        ),
        (
            {
                "HeatTemplateFormatVersion": "2012-12-12",
                "Resources": {"x": {"Type": RANDOM, "Properties": {"zz": 1}}},
            },
            f"Property error: resources.a<{N}>.Resources.x.Properties: Unknown Property zz",
        ),
    ],
)
def test_a_nested_fault_is_reported_with_its_path(child, message):
    assert nested(child) == [message]


def test_a_fault_two_levels_down_names_both_templates():
    files = {N: hot({"b": {"type": M}}), M: hot({"x": {"type": RANDOM, "properties": {"zz": 1}}})}
    (fault,) = diagnostics(hot({"a": {"type": N}}), files)
    way = f"resources.a<{N}>.resources.b<{M}>.resources.x.properties"
    assert fault.message == f"Property error: {way}: Unknown Property zz"
    assert (fault.path, fault.file) == (f"{way}.zz", M)
    assert messages(hot({"a": {"type": N}}), {N: files[N]}) == [
        f'resources.a<{N}>: Could not fetch remote template "{M}": Failed to retrieve template from {M}'
    ]


def test_a_fault_inside_has_the_line_of_its_own_file():
    text = "heat_template_version: 2018-08-31\nresources:\n  x:\n    type: No::Such\n    foo: 1\n"
    faults = diagnostics(hot({"a": {"type": N}}), {N: text})
    assert [(fault.file, fault.line, fault.excerpt.strip()) for fault in faults] == [
        (N, 5, "foo: 1"),
        (N, 4, "type: No::Such"),
    ]


def test_the_way_begins_in_the_words_of_the_outer_template():
    source = {"HeatTemplateFormatVersion": "2012-12-12", "Resources": {"a": {"Type": N}}}
    (message,) = messages(source, {N: hot({"x": {"type": "No::Such"}})})
    assert message.startswith(f"Resources.a<{N}>: ")


def test_before_a_stack_is_to_be_made_all_that_is_inside_is_a_warning():
    child = hot({"x": {"type": "No::Such"}, "y": {"type": RANDOM, "properties": {"zz": 1}}})
    faults = diagnostics(hot({"a": {"type": N}}), {N: child}, strict=False)
    assert [fault.severity for fault in faults] == ["warning", "warning"]
    faults = diagnostics(hot({"a": {"type": N}}), {N: {"resources": {}}}, strict=False)
    assert [fault.severity for fault in faults] == ["error"]


def test_nested_oddities_are_warnings_with_their_place():
    text = "heat_template_version: 2018-08-31\nresources: {}\nresources: {}\n"
    (faults,) = diagnostics(hot({"a": {"type": N}}), {N: text})
    assert (faults.code, faults.severity, faults.file, faults.line) == ("duplicate-key", "warning", N, 3)


# Values.


LENGTH = {"x": {"type": RANDOM, "properties": {"length": {"get_param": "p"}}}}
NUMBER = {"p": {"type": "number"}}


def test_a_value_is_followed_into_the_template():
    place = f"resources.a<{N}>.resources.x.properties.length"
    invalid = [f"Property error: {place}: 600 is out of range (min: 1, max: 512)"]
    assert nested(hot(LENGTH, NUMBER), {"p": 600}) == invalid
    assert nested(hot(LENGTH, {"p": {"type": "number", "default": 600}})) == invalid
    assert nested(hot(LENGTH, NUMBER), parameter_defaults={"p": 600}) == invalid


def test_a_value_that_is_not_known_yet_breaks_no_rule_and_is_not_the_default():
    child = hot(LENGTH, {"p": {"type": "number", "default": 600}})
    resources = {
        "a": {"type": N, "properties": {"p": {"get_attr": ["r", "value"]}}},
        "r": {"type": RANDOM},
    }
    assert messages(hot(resources), {N: child}) == []


def test_property_constraints_become_parameter_constraints():
    child = hot(parameters={"p": {"type": "string", "constraints": [{"length": {"max": 2}}]}})
    place = "Property error: resources.a.properties"
    assert nested(child, {"p": "abc"}) == [f"{place}.p: length (3) is out of range (max: 2)"]
    assert nested(child, {"p": {"a": 1}}) == [f"{place}.p: Value must be a string; got {{'a': 1}}"]
    assert nested(child) == [f"{place}: Property p not assigned"]
    assert nested(child, {"p": "a", "q": 1}) == [f"{place}: Unknown Property q"]


def test_a_parameter_that_is_hidden_inside_is_not_quoted():
    child = hot(parameters={"p": {"type": "number", "hidden": True}})
    assert "hunter2" not in str(nested(child, {"p": "hunter2"}))
    child = hot(LENGTH, {"p": {"type": "string", "hidden": True}})
    result = nested(child, {"p": "hunter2"})
    assert len(result) == 1
    assert "hunter2" not in str(result)


def test_a_value_that_was_hidden_outside_is_not_quoted_inside():
    source = hot(
        {"a": {"type": N, "properties": {"p": {"get_param": "secret"}}}},
        {"secret": {"type": "string", "hidden": True, "default": "hunter2"}},
    )
    result = messages(source, {N: hot(LENGTH, {"p": {"type": "string"}})})
    assert len(result) == 1
    assert "hunter2" not in str(result)


def test_a_condition_is_decided_by_the_value_that_comes_in():
    invalid = {"type": "No::Such", "condition": {"equals": [{"get_param": "p"}, "x"]}}
    child = hot({"x": invalid}, {"p": {"type": "string"}})
    assert nested(child, {"p": "y"}) == []
    assert len(nested(child, {"p": "x"})) == 1


def test_future_attributes_of_the_parent_are_unknown():
    value = {"list_join": ["", [{"resource_facade": "deletion_policy"}]]}
    child = hot({"x": {"type": "OS::Heat::Value", "properties": {"value": value}}})
    assert nested(child) == []


# Environments and types.


def test_a_template_in_place_of_a_type_may_use_it_and_must_fit_it():
    inner = hot({"x": {"type": RANDOM}}, outputs={"value": {"value": 1}})
    source = hot({"a": {"type": RANDOM, "properties": {}}})
    registry = {RANDOM: N}
    assert messages(source, {N: inner}, resource_registry=registry) == []
    (fault,) = diagnostics(source, {N: hot()}, resource_registry=registry)
    assert fault.message == f"Attribute value for facade {RANDOM} missing in provider"
    assert (fault.path, fault.severity) == ("resources.a.type", "error")
    (fault,) = diagnostics(source, {N: hot()}, resource_registry=registry, strict=False)
    assert fault.severity == "warning"


def test_a_template_for_a_resource_must_fit_the_template_for_its_type():
    source = hot({"a": {"type": "My::T", "properties": {"p": "x"}}, "b": {"type": "My::T"}})
    optional, needed = {"type": "string", "default": ""}, {"type": "string"}
    facade = hot(parameters={"p": optional}, outputs={"o": {"value": 1}})
    registry = {"My::T": N, "resources": {"a": {"My::T": M}}}

    def told(own):
        return messages(source, {N: facade, M: own}, resource_registry=registry)

    assert told(facade) == []
    assert told(hot(parameters={"p": optional})) == ["Attribute o for facade My::T missing in provider"]
    additional = hot(parameters={"p": optional, "q": needed}, outputs={"o": {"value": 1}})
    assert "Provider requires property q unknown in facade My::T" in told(additional)


def test_a_known_type_inside_is_overlooked_too():
    child = hot({"x": {"type": "OS::Zaqar::Queue", "properties": {"x": 1}}})
    assert nested(child, overlook=True) == []


def test_an_attribute_that_no_output_gives_is_a_warning():
    child = hot({"x": {"type": RANDOM}}, outputs={"o": {"value": 1}})

    def asking(attribute):
        outputs = {"z": {"value": {"get_attr": ["a", attribute]}}}
        faults = diagnostics(hot({"a": {"type": N}}, outputs=outputs), {N: child})
        return [(fault.severity, fault.path) for fault in faults]

    for existing in ("o", "show", "resource.x", "resource.x.value"):
        assert asking(existing) == []
    for gone in ("oo", "resource.y", "resource.y.value"):
        assert asking(gone) == [("warning", "outputs.z.value.get_attr")]


# Bounds.


def test_a_template_that_names_itself_ends_at_the_limit_of_depth():
    child = hot({"b": {"type": N}, "c": {"type": N}})
    result = nested(child)
    way = f"resources.a<{N}>" + f".resources.b<{N}>" * 5
    limit = "Request limit exceeded: Recursion depth exceeds 5."
    assert result[0] == f"RequestLimitExceeded: {way}: {limit}"
    assert all(message.endswith(limit) for message in result)
    assert len(result) == 2  # the two places in the same text


def test_as_many_levels_as_there_may_be_are_fine():
    files = {f"{i}.yaml": hot({"a": {"type": f"{i + 1}.yaml"}}) for i in range(4)} | {"4.yaml": hot()}
    assert messages(hot({"a": {"type": "0.yaml"}}), files) == []
    (message,) = messages(hot({"a": {"type": "0.yaml"}}), files, max_depth=4)
    assert message.endswith("Recursion depth exceeds 4.")


def test_a_fault_of_a_repeatedly_used_template_is_reported_once():
    resources = {f"a{i}": {"type": N, "properties": {"p": i}} for i in range(20)}
    child = hot({"x": {"type": "No::Such"}}, NUMBER)
    assert messages(hot(resources), {N: child}) == [
        f"resources.a0<{N}>: The Resource Type (No::Such) could not be found."
    ]


def tower(levels, width):
    """Return templates that each contain the next `width` times, with a different value each time."""

    def level(index):
        below = {"type": f"{index + 1}.yaml"}
        value = {"list_join": ["", [{"get_param": "p"}, "%"]]}
        return hot(
            {
                f"r{i}": {**below, "properties": {"p": json.loads(json.dumps(value).replace("%", str(i)))}}
                for i in range(width)
            },
            {"p": {"type": "string", "default": ""}},
        )

    files = {f"{i}.yaml": level(i) for i in range(levels)}
    files[f"{levels}.yaml"] = hot({"x": {"type": RANDOM}}, {"p": {"type": "string"}})
    return hot({"a": {"type": "0.yaml"}}), files


def test_the_resources_of_the_whole_tree_are_counted():
    source, files = tower(3, 4)
    assert messages(source, files, max_resources=1 + 4 + 16 + 64 + 64) == []
    (fault,) = diagnostics(source, files, max_resources=1 + 4 + 16 + 64 + 63)
    assert fault.message == "Request limit exceeded: Maximum resources per stack exceeded."
    assert fault.heat_type == "RequestLimitExceeded"


def test_a_tree_that_grows_without_bounds_is_looked_at_for_a_bounded_time():
    source, files = tower(9, 30)
    started = time.process_time()
    faults = diagnostics(source, files, max_depth=10)
    assert [fault.heat_type for fault in faults] == ["RequestLimitExceeded"]
    assert time.process_time() - started < 10
