"""Environments merged from files (docs/internals/hot-language.md §9.3), and the operator's (§9.2)."""

from pathlib import Path

import orjson
import pytest

from orchestrator.errors import InvalidRequest, InvalidTemplate, LimitExceeded, Misconfigured
from orchestrator.operations.request_body import read_request
from orchestrator.template.environment import Environment
from orchestrator.template.environment_files import (
    MAX_FILES,
    MAX_REFERENCES,
    merge_environment_files,
    schemas_in,
    without_secrets,
)
from orchestrator.template.global_environment import ALIASES, global_environment
from orchestrator.template.parameters import ParameterSchema
from orchestrator.template.resource_registry import ResourceRegistry

TYPES = {"s": "string", "l": "comma_delimited_list", "j": "json", "n": "number", "b": "boolean"}
SCHEMAS = {name: ParameterSchema(name, kind) for name, kind in TYPES.items()}


def merged(*environments, request=None, schemas=SCHEMAS, **options):
    """Return the merged result of the files e0, e1, … that contain `environments`."""
    files = {
        f"e{n}": item if isinstance(item, str) else orjson.dumps(item).decode()
        for n, item in enumerate(environments)
    }
    return merge_environment_files(list(files), files, schemas, Environment(request or {}), **options)


def parameters(*values, strategy=None, **options):
    """Return the parameters after files that each give some, with the strategy said in each."""
    said = {"parameter_merge_strategies": {"default": strategy}} if strategy else {}
    return dict(merged(*({"parameters": item, **said} for item in values), **options).parameters)


def faults(*environments, **options):
    with pytest.raises(InvalidTemplate) as caught:
        merged(*environments, **options)
    return [(fault.file, fault.path, fault.message) for fault in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("name", "old", "new", "merge", "deep"),
    [
        ("s", "x", "y", "xy", "xy"),
        ("s", 1, 2, "12", "12"),
        ("s", "x", "", "x", "x"),
        ("l", ["a"], ["b", "a"], ["a", "b", "a"], ["a", "b", "a"]),
        ("l", "a,b", "c", "a,b,c", "a,b,c"),
        ("l", "a,b", ["c"], ["a", "b", "c"], ["a", "b", "c"]),
        ("l", "", "b", "b", "b"),
        ("j", {"a": 1}, {"b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ("j", {"a": 1}, {"a": None, "b": None}, {"a": 1}, {"a": 1}),
        ("j", '{"a": 1}', {"b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ("j", {"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
        ("j", {"a": [1], "s": "x"}, {"a": [2], "s": "y"}, {"a": [2], "s": "y"}, {"a": [1, 2], "s": "xy"}),
        ("j", {"a": "x", "b": 1}, {"a": ["y"], "b": {}}, {"a": ["y"], "b": {}}, {"a": ["y"], "b": {}}),
        ("j", {}, {"a": None}, {"a": None}, {"a": None}),
        ("n", 1, 2, 3, 3),
        ("n", "1.5", 2, 3.5, 3.5),
    ],
)
def test_each_strategy_merges_as_its_type_allows(name, old, new, merge, deep):
    assert parameters({name: old}, {name: new}) == {name: new}
    assert parameters({name: old}, {name: new}, strategy="overwrite") == {name: new}
    assert parameters({name: old}, {name: new}, strategy="merge") == {name: merge}
    assert parameters({name: old}, {name: new}, strategy="deep_merge") == {name: deep}


@pytest.mark.parametrize("strategy", ["merge", "deep_merge"])
def test_booleans_do_not_merge(strategy):
    said = {"parameter_merge_strategies": {"default": strategy}}
    reported = ("e1", "parameters.b", "Invalid merge strategy 'merge' for parameter 'b'.")
    assert faults({"parameters": {"b": True}, **said}, {"parameters": {"b": False}}) == [reported]
    assert faults({"parameters": {"s": "x"}}, {"parameters": {"b": False}, **said}) == [reported]
    assert parameters({"b": True}, strategy=strategy) == {"b": True}
    assert parameters({"b": True}, {"b": False}) == {"b": False}


def test_conflicting_values_are_reported_with_their_place():
    said = "parameter_merge_strategies: {default: merge}\n"
    with pytest.raises(InvalidTemplate) as caught:
        merged(
            f"{said}parameters: {{j: {{}}, n: 1}}\n",
            "parameters:\n  j: [1]\n  n: x\n  s: y\n",
            request={"j": {"a": 1}},
        )
    [list_, number] = caught.value.diagnostics
    assert list_.message == "Invalid parameter in environment Value must be a map to be merged; got list."
    assert (list_.file, list_.path, list_.line, list_.column) == ("e1", "parameters.j", 2, 3)
    assert number.message.startswith("Invalid parameter in environment ")
    assert number.line == 3
    hidden = {"n": ParameterSchema("n", "number", hidden=True)}
    with pytest.raises(InvalidTemplate) as caught:
        merged(f"{said}parameters: {{n: 1}}", "parameters: {n: secret}", schemas=hidden)
    assert "secret" not in str(caught.value)


def test_a_parameters_merge_strategy_is_its_own_then_an_earlier_files_then_the_default():
    first = {"parameters": {"l": ["a"]}, "parameter_merge_strategies": {"l": "merge"}}
    assert merged(first, {"parameters": {"l": ["b"]}}).parameters == {"l": ["a", "b"]}
    other = {"parameters": {"l": ["b"]}, "parameter_merge_strategies": {"default": "overwrite"}}
    assert merged(first, other, {"parameters": {"l": ["c"]}}).parameters == {"l": ["a", "b", "c"]}
    plain, late = {"parameters": {"l": ["a"]}}, {"parameters": {"l": ["b"]}}
    late["parameter_merge_strategies"] = {"default": "merge"}
    assert merged(plain, late).parameters == {"l": ["b"]}
    only_said = {"parameter_merge_strategies": {"l": "merge"}}
    assert merged(only_said, plain, {"parameters": {"l": ["b"]}}).parameters == {"l": ["b"]}
    assert merged(first, {"parameters": {"s": "x"}, "parameter_merge_strategies": {"l": "overwrite"}})


def test_a_strategy_that_differs_from_an_earlier_files_is_a_conflict_also_between_sections():
    item = {"parameters": {"l": "a"}}
    two = {"parameters": {"l": "b"}, "parameter_merge_strategies": {"l": "merge"}}
    conflict = "Conflicting merge strategy 'merge' for parameter 'l' in file 'e1'."
    assert faults(item, two) == [("e1", "parameter_merge_strategies.l", conflict)]
    two = {"parameter_defaults": {"l": "b"}, "parameter_merge_strategies": {"l": "merge"}}
    assert faults(item, two) == [("e1", "parameter_merge_strategies.l", conflict)]
    assert merged({"parameters": {"l": "a"}}, {**two, "parameter_defaults": {"l": None}})


def test_an_unknown_strategy_is_refused():
    assert faults({"parameters": {"l": "a"}, "parameter_merge_strategies": {"l": "append"}}) == [
        ("e0", "parameter_merge_strategies.l", "Invalid merge strategy 'append' for parameter 'l'.")
    ]


def test_the_files_beat_the_requests_parameters_unless_it_says_otherwise():
    assert merged({"parameters": {"s": "f1"}}, request={"s": "cli", "n": 1}).parameters == {"s": "f1", "n": 1}
    won = merged({"parameters": {"s": "f1", "l": "a"}}, request={"s": "cli"}, parameters_win=True)
    assert won.parameters == {"s": "cli", "l": "a"}
    both = {"parameters": {"l": "b"}, "parameter_merge_strategies": {"l": "merge"}}
    assert merged(both, request={"l": "a"}).parameters == {"l": "a,b"}
    assert merged(both, request={"l": "a"}, parameters_win=True).parameters == {"l": "a"}


def test_an_unknown_parameter_stays_from_the_first_file_that_gives_any_and_is_dropped_later():
    assert merged({"parameters": {"u": 1}}, {"parameters": {"v": 1, "s": "x"}}).parameters == {
        "u": 1,
        "s": "x",
    }
    assert merged({"parameter_defaults": {"s": "d"}}, {"parameters": {"u": 1}}).parameters == {"u": 1}
    assert merged({"parameters": {"u": 1}}, request={"s": "x"}).parameters == {"s": "x"}
    assert merged({"parameter_defaults": {"u": 1}}, {"parameter_defaults": {"v": 1}}).parameter_defaults == {
        "u": 1
    }


def test_a_null_value_takes_nothing_away():
    assert parameters({"s": "x"}, {"s": None}) == {"s": "x"}
    assert parameters({"s": None}, {"s": "y"}, strategy="merge") == {"s": "y"}


def test_a_file_named_twice_is_merged_twice():
    files = {"e": "parameters: {l: a}\nparameter_merge_strategies: {l: merge}\n"}
    assert merge_environment_files(["e", "e"], files, SCHEMAS, Environment()).parameters == {"l": "a,a"}
    with pytest.raises(LimitExceeded):
        merge_environment_files(["e"] * (MAX_REFERENCES + 1), files, SCHEMAS, Environment())
    many = {f"e{number}": "{}" for number in range(MAX_FILES + 1)}
    with pytest.raises(LimitExceeded):
        merge_environment_files([*many], many, SCHEMAS, Environment())


def test_other_sections_merge_by_entry():
    item = {"resource_registry": {"A": "B", "N": "O", "resources": {"a": {"hooks": "pre-create"}}}}
    two = {"resource_registry": {"A": "E", "C": "D", "N": None, "resources": {"b": {"hooks": "pre-create"}}}}
    sink = {"type": "zaqar-queue", "target": "q"}
    both = merged({**item, "event_sinks": [sink]}, {**two, "event_sinks": [sink, {**sink, "target": "r"}]})
    assert both.resource_registry == {
        "A": "E", "N": "O", "C": "D", "resources": {"b": {"hooks": "pre-create"}},
    }  # fmt: skip
    assert both.event_sinks == (sink, {**sink, "target": "r"})
    names = merged({"encrypted_param_names": ["a"]}, {"encrypted_param_names": ["a", "b"]})
    assert names.encrypted_param_names == ("a", "b")


def test_the_faults_of_all_files_are_reported_together_each_with_its_file():
    assert faults(
        "zzz: {}", "parameters:", "a: [", {"parameters": {"l": "a"}, "parameter_merge_strategies": {"l": 1}}
    )[:2] == [
        ("e0", "zzz", 'environment has wrong section "zzz"'),
        ("e1", "parameters", 'environment has empty section "parameters"'),
    ]
    assert [file for file, _, _ in faults("zzz: {}", "a: [", {"parameter_merge_strategies": {"l": 1}})] == [
        "e0", "e1", "e2",
    ]  # fmt: skip


def test_the_parameters_of_every_template_among_the_files_count_and_the_roots_come_first():
    version = "heat_template_version: 2018-08-31\n"
    files = {
        "a.yaml": f"{version}parameters: {{s: {{type: json}}, x: {{type: number}}}}\n",
        "b.yaml": f"{version}parameters: {{y: {{type: nonsense}}, z: {{type: json}}}}\nresources: 5\n",
        "c.yaml": "parameters: [",
        "d.txt": "parameters: not a template",
        "e.yaml": "parameters: {s: x}",
    }
    result = schemas_in(files, {"s": SCHEMAS["s"]})
    assert (result["s"].type, result["x"].type, result["z"].type) == ("string", "number", "json")
    assert result.keys() == {"s", "x", "z"}


def fetch_nothing(url):
    raise AssertionError(f"{url} is fetched")


def request(**options):
    return read_request(orjson.dumps({"stack_name": "s", "template": "x", **options}), fetch_nothing)


def test_a_request_names_environment_files_among_its_files():
    files = {"e1": "parameters: {}", "e2": ""}
    read = request(files=files, environment_files=["e2", "e1"], parameters_win=True)
    assert (read.environment_files, read.parameters_win) == (("e2", "e1"), True)
    read = request(environment_files=None)
    assert (read.environment_files, read.parameters_win) == ((), False)


@pytest.mark.parametrize(
    ("files", "named", "told"),
    [
        ({}, ["e1"], 'No content found in the "files" section for environment file: e1'),
        ({"e1": 5}, ["e1"], "The content of the file e1 must be a string."),
        ({"e1": ""}, "e1", "'environment_files' must be a list of names in 'files'."),
        ({"e1": ""}, [1], "'environment_files' must be a list of names in 'files'."),
    ],
)
def test_a_request_that_names_no_file_of_its_own_is_refused(files, named, told):
    with pytest.raises(InvalidRequest) as caught:
        request(files=files, environment_files=named)
    assert str(caught.value) == told


def test_old_names_of_types_go_on():
    registry = ResourceRegistry.build({}, global_environment())
    assert registry.target("r", "OS::Quantum::Net").name == "OS::Neutron::Net"
    assert registry.target("r", "OS::Metering::Alarm").name == "OS::Aodh::Alarm"
    assert registry.target("r", "OS::Neutron::Net").path == ()


def test_the_operators_files_come_over_the_aliases_in_the_order_of_their_names(tmp_path: Path):
    (tmp_path / "20.yaml").write_text("resource_registry: {A: second, 'OS::Quantum*': null, B: null}\n")
    (tmp_path / "10.yaml").write_text("resource_registry: {A: first, B: OS::B}\n")
    (tmp_path / "README").write_text("not read")
    result = global_environment(tmp_path)
    registry = ResourceRegistry.build({}, result)
    assert registry.target("r", "A").name == "second"
    assert registry.target("r", "OS::Quantum::Net") is None
    assert registry.target("r", "B") is None
    assert result.keys() - {"A", "B"} == ALIASES.keys()
    assert global_environment(tmp_path) is result


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("zzz: {}", '{path}:1 is invalid: environment has wrong section "zzz"'),
        ("\nresource_registry: {A: 5}", "{path}:2 is invalid: The resource_registry entry"),
        ("parameters: {a: 1}", "{path} may hold a resource_registry only, not parameters"),
    ],
)
def test_a_wrong_file_of_the_operators_is_named(tmp_path: Path, text, told):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(Misconfigured) as caught:
        global_environment(tmp_path)
    assert told.format(path=path) in str(caught.value)
    with pytest.raises(Misconfigured, match="cannot be read"):
        global_environment(tmp_path / "gone")


def test_a_null_entry_of_a_later_file_removes_all_earlier_entries(tmp_path: Path):
    (tmp_path / "10.yaml").write_text("resource_registry: {'My::*': OS::A, 'My::T': OS::B}\n")
    (tmp_path / "20.yaml").write_text("resource_registry: {'My::*': null}\n")
    assert ResourceRegistry.build({}, global_environment(tmp_path)).target("r", "My::T") is None


def test_a_fault_does_not_quote_a_line_that_may_hold_a_hidden_value():
    text = "parameters: {n: SECRET}\nparameter_merge_strategies: {n: merge}\n"
    files = {"a": "parameters: {n: 1}\nparameter_merge_strategies: {n: merge}\n", "b": text}
    schemas = {"n": ParameterSchema("n", "number", hidden=True)}
    with pytest.raises(InvalidTemplate) as caught:
        merge_environment_files(["a", "b"], files, schemas, Environment())
    (fault,) = caught.value.diagnostics
    assert (fault.file, fault.line) == ("b", 1)
    assert "SECRET" not in fault.message + fault.excerpt


def test_a_file_that_gives_a_hidden_parameter_is_not_kept():
    schemas = {"p": ParameterSchema("p", "string", hidden=True), "q": ParameterSchema("q", "string")}
    files = {
        "secret": "parameters: {p: x}",
        "default": "parameter_defaults: {p: x}",
        "open": "parameters: {q: x}",
        "unused": "parameters: {p: PARAM}",
    }
    kept = without_secrets(["secret", "default", "open", "secret"], files, schemas)
    assert [*kept] == ["open", "unused"]
