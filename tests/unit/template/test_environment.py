"""Environments (docs/internals/hot-language.md §9.1, §9.7)."""

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.environment import Environment
from orchestrator.template.resource_registry import Target

SINK = {"type": "zaqar-queue", "target": "news"}
HOOK = {"type": "webhook", "target": "https://example.org/"}


def faults(source, **options):
    with pytest.raises(InvalidTemplate) as caught:
        Environment.parse(source, **options)
    return [fault.message for fault in caught.value.diagnostics]


@pytest.mark.parametrize("source", [None, "", {}, "{}"])
def test_nothing_is_an_empty_environment(source):
    assert Environment.parse(source) == Environment()


def test_text_and_object_mean_the_same():
    text = "parameters: {a: 1}\nparameter_defaults: {b: 2}\nresource_registry: {resources: {}, A: B}\n"
    text += "event_sinks: [{type: zaqar-queue, target: news, ttl: 60}]\nencrypted_param_names: [a]\n"
    expected = Environment({"a": 1}, {"b": 2}, {"A": "B"}, ("a",), ({**SINK, "ttl": 60},))
    assert Environment.parse(text) == expected
    assert Environment.parse(text.encode()) == expected
    assert Environment.parse(expected.to_json()) == expected


def test_the_api_shows_every_section_and_no_null_entry():
    environment = Environment.parse({"resource_registry": {"A": "B", "C*": None, "X": {"x": "y"}}})
    assert environment.to_json() == {
        "parameters": {},
        "parameter_defaults": {},
        "resource_registry": {"resources": {}, "A": "B", "X": {"x": "y"}},
        "encrypted_param_names": [],
        "event_sinks": [],
    }


def test_an_object_without_any_section_is_bare_parameters_and_a_text_is_not():
    assert Environment.parse({"flavor": "m1", "n": 1}).parameters == {"flavor": "m1", "n": 1}
    assert faults("flavor: m1") == ['Environment not in valid format: environment has wrong section "flavor"']


def test_wrong_and_empty_sections_are_reported_together_with_heats_message():
    assert faults({"parameters": None, "zzz": {}}) == [
        'environment has empty section "parameters"',
        'environment has wrong section "zzz"',
    ]
    assert faults("parameters:\nzzz: {}\nparameter_defaults: []\nevent_sinks: {}\n") == [
        'Environment not in valid format: environment has empty section "parameters"',
        'Environment not in valid format: environment has wrong section "zzz"',
        'Environment not in valid format: environment section "parameter_defaults" must be a map',
        'Environment not in valid format: environment section "event_sinks" must be a list',
    ]


def test_a_fault_reports_its_file_line_and_a_suggestion():
    with pytest.raises(InvalidTemplate) as caught:
        Environment.parse("parameters: {}\nparameter_default: {}\n")
    [fault] = caught.value.diagnostics
    assert (fault.file, fault.line, fault.column) == ("environment", 2, 1)
    assert fault.hint == 'did you mean "parameter_defaults"?'
    assert fault.excerpt == "parameter_default: {}"
    with pytest.raises(InvalidTemplate) as caught:
        Environment.parse("parameters:\n  a: [\n", file="e.yaml")
    [fault] = caught.value.diagnostics
    assert (fault.file, fault.line) == ("e.yaml", 3)
    assert "template" not in fault.message


def test_a_text_that_is_no_map_is_refused():
    assert faults("- a", file="e") == ["The environment is not a valid YAML mapping data type."]


def test_faults_of_the_registry_are_reported_with_the_rest():
    reported = faults({"resource_registry": {"resources": {"a": {"hooks": "x"}}, "T": 5}, "zzz": {}})
    assert len(reported) == 3
    assert reported[0].startswith('Invalid hook type "x" for resource breakpoint')


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        ("x", "An event sink must be a map with type and target"),
        (
            {**SINK, "type": "mail"},
            'Invalid event sink type "mail", acceptable types are: zaqar-queue, webhook',
        ),
        ({**SINK, "type": []}, 'Invalid event sink type "[]", acceptable types are: zaqar-queue, webhook'),
        ({"type": "zaqar-queue"}, "An event sink must name its target"),
        ({**SINK, "target": 5}, "An event sink must name its target"),
        ({**SINK, "ttl": 0}, "The ttl of an event sink must be a positive number of seconds"),
        ({**SINK, "ttl": True}, "The ttl of an event sink must be a positive number of seconds"),
        ({**SINK, "tll": 1}, 'Invalid key "tll" for an event sink'),
        ({**HOOK, "ttl": 1}, 'Invalid key "ttl" for an event sink'),
        ({**HOOK, "secret": 1}, "The secret of an event sink must be a string"),
        ({**HOOK, "events": "some"}, "The events of an event sink are one of: all, stack"),
    ],
)
def test_an_event_sink_that_cannot_work_is_refused_at_once(sink, told):
    assert faults({"event_sinks": [SINK, sink]}) == [told]


def test_encrypted_names_are_kept_and_are_names():
    assert Environment.parse({"encrypted_param_names": ["a"]}).encrypted_param_names == ("a",)
    assert faults({"encrypted_param_names": [1]}) == [
        'environment section "encrypted_param_names" must be a list of names'
    ]


def test_a_requests_own_parameters_come_on_top():
    env = Environment.parse({"parameters": {"a": 1, "b": 1}}).with_parameters({"b": 2})
    assert env.parameters == {"a": 1, "b": 2}
    assert env.to_json()["resource_registry"] == {"resources": {}}


def test_a_nested_stack_sees_its_resources_properties_and_inherits_defaults_registry_and_sinks():
    registry = {
        "A": "a.yaml",
        "B": "b.yaml",
        "resources": {"r": {"x": {"hooks": "pre-create"}}, "s": {"C": "D"}},
    }
    parent = Environment.parse(
        {
            "parameters": {"p": 1},
            "parameter_defaults": {"d": 1},
            "resource_registry": registry,
            "encrypted_param_names": ["p"],
            "event_sinks": [SINK],
        }
    )
    target = parent.registry().target("r", "A")
    assert target == Target("template", "a.yaml", True, ("A",))
    child = parent.child("r", {"q": 2}, target)
    assert child == Environment(
        {"q": 2},
        {"d": 1},
        {"resources": {"x": {"hooks": "pre-create"}}, "B": "b.yaml"},
        event_sinks=(SINK,),
    )
    assert parent.child("r", {}, None).resource_registry["A"] == "a.yaml"
