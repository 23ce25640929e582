"""Property faults of a resource, found immediately before its creation."""

from __future__ import annotations

import pytest

from orchestrator.engine.validation.property_resolution import resolve_properties
from orchestrator.errors import InvalidTemplate
from orchestrator.resources.builtin.delay import Delay
from orchestrator.resources.builtin.value import ValueResource
from orchestrator.template.definition import ResourceProxy, StackDefinition
from orchestrator.template.parameters import ParameterValues
from tests.unit.engine.validation.validation_world import Server, a, faults


def view(**resources):
    proxies = {
        name: ResourceProxy(name, f"{name}-id", {"value": value}, "CREATE", "COMPLETE")
        for name, value in resources.items()
    }
    values = ParameterValues({"secret": "hunter2"}, hidden=frozenset({"secret"}))
    return StackDefinition("2016-10-14", values, proxies)


def test_properties_are_resolved_converted_and_completed():
    body = {"properties": {"size": {"get_attr": ["r", "value"]}, "tags": [{"get_resource": "r"}]}}
    assert resolve_properties(body, view(r="5"), Server(), "a")[0] == {"size": 5, "tags": ["r-id"]}


def test_a_resource_without_properties_has_the_defaults():
    assert resolve_properties({}, view(), Delay(), "a")[0]["actions"] == ["CREATE"]


def test_a_description_of_the_resource_stands_in_for_the_property_of_that_name():
    body = {"description": "mine", "properties": {"size": 1}}
    assert resolve_properties(body, view(), Server(), "a")[0]["description"] == "mine"
    body["properties"]["description"] = "its own"
    assert resolve_properties(body, view(), Server(), "a")[0]["description"] == "its own"


def test_an_invalid_resolved_value_is_reported_with_its_path():
    body = {"properties": {"size": {"get_attr": ["r", "value"]}, "tags": [{"get_attr": ["r", "value"]}]}}
    with pytest.raises(InvalidTemplate) as caught:
        resolve_properties(body, view(r=11), Server(), "a")
    assert str(caught.value) == "resources.a.properties.size: 11 is out of range (min: 1, max: 10)"


def test_a_types_own_rule_holds_for_values_that_only_now_are_known():
    body = {"properties": {"type": "number", "value": {"get_attr": ["r", "value"]}}}
    with pytest.raises(InvalidTemplate, match=r"^resources\.a\.properties\.value: Value"):
        resolve_properties(body, view(r="x"), ValueResource(), "a")


def test_whether_something_secret_went_in_is_remembered():
    plain, secret = view(r=1), view(r=1)
    properties = {"value": {"get_param": "secret"}, "type": "string"}
    resolve_properties({"properties": {"size": {"get_attr": ["r", "value"]}}}, plain, Server(), "a")
    resolve_properties({"properties": properties}, secret, ValueResource(), "a")
    assert (plain.used_secret, secret.used_secret) == (False, True)
    resolve_properties({"properties": {"value": 1, "type": "number"}}, secret, ValueResource(), "a")
    assert secret.used_secret


def test_the_values_computed_from_secrets_are_named():
    properties = {"value": {"a": [{"get_param": "secret"}]}, "type": "json"}
    _, secret = resolve_properties({"properties": properties}, view(), ValueResource(), "a")
    assert secret is not None
    assert secret.masked({"value": {"a": ["hunter2", "open"]}}) == {"value": {"a": ["******", "open"]}}
    _, secret = resolve_properties(
        {"properties": {"value": 1, "type": "number"}}, view(), ValueResource(), "a"
    )
    assert not secret


def test_a_secret_is_not_quoted_when_it_turns_out_wrong():
    body = {"properties": {"size": {"get_param": "secret"}, "tags": []}}
    with pytest.raises(InvalidTemplate) as caught:
        resolve_properties(body, view(), Server(), "a")
    assert "hunter2" not in str(caught.value.diagnostics)


def test_a_failing_function_is_a_single_fault_and_not_also_a_missing_property():
    resources = {"a": a("Test::Server", properties={"size": {"list_join": [",", [1]]}, "tags": []})}
    assert [path for path, _ in faults(resources)] == ["resources.a.properties.size.list_join"]


# Sizes and their limits.
