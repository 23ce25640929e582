"""What is wrong with resources, as found before any of them is made and just before each is."""

from __future__ import annotations

import pytest

from orchestrator.engine.validate import resolve_properties, validate_stack
from orchestrator.errors import InvalidTemplate
from orchestrator.resources.base import Attribute, Property, ResourceType
from orchestrator.resources.builtin.delay import Delay
from orchestrator.resources.builtin.none import NoneResource
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.builtin.test_resource import TestResource
from orchestrator.resources.builtin.value import ValueResource
from orchestrator.resources.registry import Registry
from orchestrator.schema.constraints import Range
from orchestrator.template.definition import ResourceProxy, StackDefinition
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load


class Server(ResourceType):
    """Has one property of each kind of interest."""

    name = "Test::Server"
    properties = {  # noqa: RUF012
        "size": Property("integer", required=True, constraints=(Range(1, 10),)),
        "description": Property("string", update_allowed=True),
        "tags": Property("list", schema=Property("string")),
    }
    attributes = {"address": Attribute("Where it is.")}  # noqa: RUF012
    can_snapshot = True


TYPES = Registry.of(Delay, NoneResource, RandomString, Server, TestResource, ValueResource)
LIMITS = Limits()


def faults(resources, parameters=None, outputs=None, *, strict=True, timeout=3600.0, **supplied):
    """Validate a template of these sections; return (path, message) of every fault, in order."""
    found = diagnostics(resources, parameters, outputs, strict=strict, timeout=timeout, **supplied)
    return [(fault.path, fault.message) for fault in found]


def diagnostics(resources, parameters=None, outputs=None, *, strict=True, timeout=3600.0, **supplied):
    source = {
        "heat_template_version": "2016-10-14",
        "parameters": parameters or {},
        "resources": resources,
        "outputs": outputs or {},
    }
    template = load(source, LIMITS)
    values = ParameterValues.build(template.parameters, supplied, {}, {}, missing_ok=not strict)
    return validate_stack(template, values, TYPES, strict=strict, stack_timeout_seconds=timeout)


def a(type_name, **keys):
    return {"type": type_name, **keys}


def test_a_template_without_faults_has_none():
    resources = {
        "a": a("OS::Heat::RandomString", properties={"length": 8}),
        "b": a("OS::Heat::Value", properties={"value": {"get_attr": ["a", "value"]}}),
    }
    assert faults(resources, outputs={"o": {"value": {"get_attr": ["b", "value"]}}}) == []


def test_an_unknown_type_is_told_with_the_one_that_was_meant():
    (fault,) = diagnostics({"a": a("OS::Heat::RandomStrin")})
    assert fault.message == "The Resource Type (OS::Heat::RandomStrin) could not be found."
    assert fault.path == "resources.a.type"
    assert fault.hint == 'did you mean "OS::Heat::RandomString"?'


def test_every_fault_is_told_in_the_order_of_the_template():
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
def test_what_comes_from_a_resource_is_not_judged_before_it_is_there(size):
    resources = {
        "a": a("Test::Server", properties={"size": size, "tags": [{"get_resource": "b"}]}),
        "b": a("OS::Heat::TestResource"),
    }
    assert faults(resources) == []


def test_what_stands_beside_such_a_value_is_judged():
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


def test_all_properties_may_come_from_one_function():
    resources = {"a": a("Test::Server", properties={"get_param": "all"})}
    parameters = {"all": {"type": "json"}}
    assert faults(resources, parameters, strict=False) == []
    assert faults(resources, parameters, all={"size": 3}) == []
    assert [path for path, _ in faults(resources, parameters, all={"size": 0})] == [
        "resources.a.properties.size"
    ]
    assert [path for path, _ in faults(resources, parameters, all=[1])] == ["resources.a.properties"]


def test_a_types_own_rule_is_told_in_its_own_words():
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
        ("resources.a", "OS::Heat::Delay maximum delay 70s exceeds the stack timeout 60s.")
    ]
    assert faults(resources, timeout=60.0, strict=False) == []


def test_snapshot_is_refused_for_types_that_have_none():
    def of(policy, kind="OS::Heat::None", **more):
        return faults({"a": a(kind, deletion_policy=policy)}, {"p": {"type": "string"}}, **more)

    assert of("Retain", p="") == []
    assert of("Snapshot", "Test::Server", p="")[1:] == []
    assert of("Snapshot", p="") == [
        ("resources.a.deletion_policy", '"Snapshot" deletion policy not supported')
    ]
    assert of({"get_param": "p"}, p="delete") == []
    assert of({"get_param": "p"}, p="keep") == [
        ("resources.a.deletion_policy", 'Invalid deletion policy "keep"')
    ]
    assert of({"get_param": "p"}, strict=False) == []


def test_an_attribute_that_the_type_lacks_is_told_where_it_is_asked_for():
    resources = {
        "a": a("OS::Heat::TestResource"),
        "b": a("OS::Heat::Value", properties={"value": ["x", {"get_attr": ["a", "outptu"]}]}),
    }
    outputs = {"o": {"value": {"get_attr": ["b", "values", 0]}}}
    found = diagnostics(resources, outputs=outputs)
    assert [(fault.path, fault.message, fault.hint, fault.heat_type) for fault in found] == [
        (
            "resources.b.properties.value[1].get_attr",
            "The Referenced Attribute (a outptu) is incorrect.",
            'did you mean "output"?',
            "InvalidTemplateReference",
        ),
        (
            "outputs.o.value.get_attr",
            "The Referenced Attribute (b values) is incorrect.",
            'did you mean "value"?',
            "InvalidTemplateReference",
        ),
    ]


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
    found = faults(resources, parameters, secret="hunter2", list="hunter2")
    assert [path for path, _ in found] == [
        "resources.a.properties.value",
        "resources.b.properties.size",
        "resources.b.properties.tags",
        "resources.c.properties.wait_secs",
    ]
    assert "hunter2" not in str(found)
    assert "is not a list" in found[2][1]  # what is no secret is quoted still


# Just before the create: everything is known.


def view(**resources):
    proxies = {
        name: ResourceProxy(name, f"{name}-id", {"value": value}, "CREATE", "COMPLETE")
        for name, value in resources.items()
    }
    values = ParameterValues({"secret": "hunter2"}, hidden=frozenset({"secret"}))
    return StackDefinition("2016-10-14", values, proxies)


def test_properties_are_resolved_converted_and_completed():
    body = {"properties": {"size": {"get_attr": ["r", "value"]}, "tags": [{"get_resource": "r"}]}}
    assert resolve_properties(body, view(r="5"), Server(), "a") == {"size": 5, "tags": ["r-id"]}


def test_a_resource_without_properties_has_the_defaults():
    assert resolve_properties({}, view(), Delay(), "a")["actions"] == ["CREATE"]


def test_a_description_of_the_resource_stands_in_for_the_property_of_that_name():
    body = {"description": "mine", "properties": {"size": 1}}
    assert resolve_properties(body, view(), Server(), "a")["description"] == "mine"
    body["properties"]["description"] = "its own"
    assert resolve_properties(body, view(), Server(), "a")["description"] == "its own"


def test_a_value_that_turns_out_wrong_is_told_with_its_path():
    body = {"properties": {"size": {"get_attr": ["r", "value"]}, "tags": [{"get_attr": ["r", "value"]}]}}
    with pytest.raises(InvalidTemplate) as caught:
        resolve_properties(body, view(r=11), Server(), "a")
    assert str(caught.value) == "resources.a.properties.size: 11 is out of range (min: 1, max: 10)"


def test_a_types_own_rule_holds_for_values_that_only_now_are_known():
    body = {"properties": {"type": "number", "value": {"get_attr": ["r", "value"]}}}
    with pytest.raises(InvalidTemplate, match=r"^resources\.a\.properties\.value: could not convert"):
        resolve_properties(body, view(r="x"), ValueResource(), "a")


def test_whether_something_secret_went_in_is_remembered():
    plain, secret = view(r=1), view(r=1)
    properties = {"value": {"get_param": "secret"}, "type": "string"}
    resolve_properties({"properties": {"size": {"get_attr": ["r", "value"]}}}, plain, Server(), "a")
    resolve_properties({"properties": properties}, secret, ValueResource(), "a")
    assert (plain.touched_secret, secret.touched_secret) == (False, True)
    resolve_properties({"properties": {"value": 1, "type": "number"}}, secret, ValueResource(), "a")
    assert secret.touched_secret


def test_a_secret_is_not_quoted_when_it_turns_out_wrong():
    body = {"properties": {"size": {"get_param": "secret"}, "tags": []}}
    with pytest.raises(InvalidTemplate) as caught:
        resolve_properties(body, view(), Server(), "a")
    assert "hunter2" not in str(caught.value.diagnostics)


def test_a_function_that_fails_is_one_fault_and_not_a_missing_property_too():
    resources = {"a": a("Test::Server", properties={"size": {"list_join": [",", [1]]}, "tags": []})}
    assert [path for path, _ in faults(resources)] == ["resources.a.properties.size.list_join"]
