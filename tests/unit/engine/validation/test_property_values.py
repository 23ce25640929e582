"""Faults in the values of properties and parameters, found before any resource is created."""

from __future__ import annotations

import pytest

from tests.unit.engine.validation.validation_world import a, diagnostics, faults, severities

BOTH = {"new": 1, "older": 2}


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
    [lenient] = diagnostics(resources, timeout=60.0, strict=False)
    assert (lenient.severity, lenient.refused) == ("warning", True)


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
