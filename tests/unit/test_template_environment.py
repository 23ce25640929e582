"""Environments (spec/hot-language.md §9.1)."""

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.environment import Environment


def faults(source, **more):
    with pytest.raises(InvalidTemplate) as caught:
        Environment.parse(source, **more)
    return [fault.message for fault in caught.value.diagnostics]


@pytest.mark.parametrize("source", [None, "", {}, "{}"])
def test_nothing_is_an_empty_environment(source):
    assert Environment.parse(source) == Environment()


def test_text_and_object_mean_the_same():
    text = "parameters: {a: 1}\nparameter_defaults: {b: 2}\nresource_registry: {resources: {}}\n"
    expected = Environment({"a": 1}, {"b": 2}, {"resources": {}})
    assert Environment.parse(text) == expected
    assert Environment.parse(text.encode()) == expected
    assert Environment.parse(expected.to_json()) == expected


def test_a_map_without_any_section_is_bare_parameters():
    assert Environment.parse({"flavor": "m1", "n": 1}).parameters == {"flavor": "m1", "n": 1}


def test_wrong_and_empty_sections_are_told_together_in_heats_words():
    assert faults({"parameters": None, "zzz": {}}) == [
        'environment has empty section "parameters"',
        'environment has wrong section "zzz"',
    ]


def test_what_comes_later_is_refused_clearly():
    assert faults("resource_registry: {'My::Type': t.yaml}") == [
        'The resource_registry entry "My::Type" is not supported yet.'
    ]
    assert "not supported yet" in faults({"parameters": {}}, files=["a.yaml"])[0]


def test_a_fault_in_the_text_tells_its_place():
    with pytest.raises(InvalidTemplate) as caught:
        Environment.parse("parameters:\n  a: [\n")
    [fault] = caught.value.diagnostics
    assert fault.line == 3
    assert "template" not in fault.message


def test_a_text_that_is_no_map_is_refused():
    assert faults("- a") == ["The environment is not a valid YAML mapping data type."]


def test_a_requests_own_parameters_come_on_top():
    env = Environment.parse({"parameters": {"a": 1, "b": 1}}).with_parameters({"b": 2})
    assert env.parameters == {"a": 1, "b": 2}
    assert env.to_json()["resource_registry"] == {"resources": {}}
