"""The values of functions, version by version (docs/internals/hot-language.md §5)."""

import itertools
from types import SimpleNamespace

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.definition import UNKNOWN, ResourceProxy, StackDefinition
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.parameters import ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from orchestrator.template.versions import VERSIONS

OLD, MIDDLE, NEW = "2013-05-23", "2014-10-16", "2018-08-31"

VALUES = ParameterValues(
    {
        "s": "text",
        "n": 7,
        "yes": True,
        "l": ["a", "b", {"k": "deep"}],
        "m": {"k": {"x": [1, 2]}, "1": "one"},
        "which": "s",
        "where": "x",
        "secret": "hush",
    },
    hidden=frozenset({"secret"}),
)


def proxy(name="r", action="CREATE", **changes):
    recorded = {
        "reference_id": "id-1",
        "attributes": {"x": {"y": ["p", {"z": 1}]}, "none": None, "show": {"all": 1}},
        "action": action,
        "status": "COMPLETE",
    }
    return ResourceProxy(name, **{**recorded, **changes})


def stack(version=NEW, *proxies, strict=True, values=VALUES):
    return StackDefinition(version, values, {p.name: p for p in proxies or (proxy(),)}, strict=strict)


def refusal(value, version=NEW, path="here"):
    with pytest.raises(InvalidTemplate) as caught:
        stack(version).resolve(value, path)
    return caught.value


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("s", "text"),
        ("n", 7),
        (["s"], "text"),
        (["m", "k", "x", 1], 2),
        (["m", "k", "x", "1"], 2),
        (["m", 1], ""),
        (["m", "1"], "one"),
        (["l", "2", "k"], "deep"),
        (["l", 9], ""),
        (["l", "x"], ""),
        (["m", "nope", "x"], ""),
        (["n", "x"], ""),
        (["m", None], ""),
        ({"get_param": "which"}, "text"),
        ([{"get_param": "which"}], "text"),
    ],
)
def test_get_param(version, argument, value):
    assert stack(version).resolve({"get_param": argument}) == value


def test_get_param_of_an_unknown_name_is_a_missing_parameter():
    error = refusal({"get_param": "nope"})
    assert str(error) == "The Parameter (nope) was not provided."
    assert error.heat_type == "UserParameterMissing"


def test_get_param_refuses_arguments_that_can_never_work():
    assert str(refusal({"get_param": []})) == 'here.get_param: Function "get_param" must have arguments'
    assert str(refusal({"get_param": 5})) == 'here.get_param: Argument to "get_param" must be string or list'
    assert str(refusal({"get_param": [5]})) == 'here.get_param: Parameter name in "get_param" must be string'


@pytest.mark.parametrize("version", VERSIONS)
def test_get_resource_returns_the_reference_id_or_the_name_before_creation(version):
    new = proxy("new", "INIT", reference_id=None)
    observed = stack(version, proxy(), new)
    assert observed.resolve([{"get_resource": "r"}, {"get_resource": "new"}]) == ["id-1", "new"]


def test_only_resources_that_were_handed_in_may_be_referred_to():
    error = refusal({"p": [{"get_resource": "other"}]}, path="a.Properties")
    assert str(error) == 'The specified reference "other" (in a.Properties.p[0]) is incorrect.'
    assert error.heat_type == "InvalidTemplateReference"
    assert (
        str(refusal({"get_attr": ["other", "x"]}))
        == 'The specified reference "other" (in here) is incorrect.'
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        (["r", "x"], {"y": ["p", {"z": 1}]}),
        (["r", "x", "y", 0], "p"),
        (["r", "x", "y", "1", "z"], 1),
        (["r", "x", "y", 7], None),
        (["r", "x", "nope"], None),
        (["r", "none", "x"], None),
        (["r", {"get_param": "where"}, "y", {"get_param": ["m", "nope"]}], None),
        (["r", {"get_param": "where"}, "y", 0], "p"),
    ],
)
def test_get_attr(version, argument, value):
    assert stack(version).resolve({"get_attr": argument}) == value


def test_get_attr_without_a_name_gives_all_but_show_in_versions_that_have_it():
    assert stack("2015-10-15").resolve({"get_attr": ["r"]}) == {"x": {"y": ["p", {"z": 1}]}, "none": None}


@pytest.mark.parametrize(
    "action", ["CREATE", "ADOPT", "SUSPEND", "RESUME", "UPDATE", "ROLLBACK", "SNAPSHOT", "CHECK"]
)
def test_attributes_count_in_any_status_of_an_action_that_has_it_exist(action):
    observed = stack(NEW, proxy("r", action, status="FAILED"))
    assert observed.resolve({"get_attr": ["r", "x", "y", 0]}) == "p"


@pytest.mark.parametrize("action", ["INIT", "DELETE"])
def test_attributes_of_missing_resources_are_null_and_unknown_during_validation(action):
    gone = proxy("r", action)
    assert stack(NEW, gone).resolve({"get_attr": ["r", "x"]}) is None
    assert stack(NEW, gone, strict=False).resolve({"a": {"get_attr": ["r"]}}) == {"a": UNKNOWN}


def test_only_values_computed_from_unknown_values_are_unknown():
    observed = stack(NEW, proxy("r", "INIT"), strict=False)
    value = {
        "join": {"list_join": [",", [{"get_attr": ["r", "x"]}]]},
        "replace": {"str_replace": {"template": "a", "params": {"a": {"get_attr": ["r", "x"]}}}},
        "inside": {"get_param": ["m", {"get_attr": ["r", "x"]}]},
        "name": {"get_param": {"get_attr": ["r", "x"]}},
        "attribute": {"get_attr": ["r", {"get_attr": ["r", "x"]}]},
        "known": {"list_join": [",", ["a", "b"]]},
    }
    assert observed.resolve(value) == {**dict.fromkeys(value, UNKNOWN), "known": "a,b"}


def test_a_parameter_without_a_value_is_unknown_while_validating_and_missing_otherwise():
    schemas = {"p": ParameterSchema("p", "string")}
    values = ParameterValues.build(schemas, {}, {}, {}, missing_ok=True)
    assert stack(strict=False, values=values).resolve({"get_param": ["p", "x"]}) is UNKNOWN
    with pytest.raises(InvalidTemplate, match=r"The Parameter \(p\) was not provided"):
        stack(values=values).resolve({"get_param": "p"})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("template", "params", "text"),
    [
        ("ab", {"a": "b", "b": "c"}, "bc"),
        ("abc ab a", {"a": "1", "ab": "2", "abc": "3"}, "3 2 1"),
        ("x=$x", {"$x": None}, "x="),
        ("n b f", {"n": 7, "b": True, "f": 1.5}, "7 True 1.5"),
        ("nothing", {"zz": 1}, "nothing"),
        ("a.c", {".": "\\1"}, "a\\1c"),
        ("same", {}, "same"),
    ],
)
def test_str_replace(version, template, params, text):
    assert stack(version).resolve({"str_replace": {"template": template, "params": params}}) == text


def test_str_replace_puts_in_maps_and_lists_as_json_in_versions_that_can():
    value = {"str_replace": {"template": "v", "params": {"v": {"b": [1, True, None], "a": "é"}}}}
    assert stack("2015-10-15").resolve(value) == '{"a": "\\u00e9", "b": [1, true, null]}'
    assert str(refusal(value, "2015-04-30", "x")) == (
        'x.str_replace: "str_replace" params must be strings or numbers, param v is not valid'
    )


def test_str_replace_takes_its_template_and_its_params_from_functions():
    value = {"str_replace": {"template": {"get_param": "s"}, "params": {"get_param": ["m", "nope"]}}}
    assert str(refusal(value)) == 'here.str_replace: "str_replace" params must be a map'
    value = {"str_replace": {"template": {"get_param": "s"}, "params": {"t": {"get_param": "n"}}}}
    assert stack().resolve(value) == "7ex7"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([", ", ["a", "b"]], "a, b"),
        (["", []], ""),
        (["-", ["a", None, "b"]], "a--b"),
        (["-", None], ""),
        ([{"get_param": "s"}, ["1", "2"]], "1text2"),
    ],
)
def test_list_join(version, arguments, text):
    assert stack(version).resolve({"list_join": arguments}) == text


def test_list_join_joins_many_lists_and_json_in_versions_that_can():
    value = {"list_join": [",", ["a"], None, [{"b": 1, "a": [2]}, ["c"]]]}
    assert stack("2015-10-15").resolve(value) == 'a,{"a": [2], "b": 1},["c"]'


@pytest.mark.parametrize(
    ("version", "arguments", "message"),
    [
        (NEW, [",", [1]], "Items to join must be string, map or list not 1"),
        (OLD, [",", [1]], "Items to join must be strings not 1"),
        (OLD, [",", [{"a": 1, "b": 2}]], "Items to join must be strings not {'a': 1, 'b': 2}"),
        (NEW, [",", "text"], '"list_join" must operate on a list'),
        (NEW, [1, ["a"]], '"list_join" delimiter must be a string'),
    ],
)
def test_list_join_refuses_unsupported_items(version, arguments, message):
    assert str(refusal({"list_join": arguments}, version, "x")) == f"x.list_join: {message}"


@pytest.mark.parametrize(
    "value",
    [
        {"get_param": "s", "x": 1},
        {"unknown_fn": [1]},
        {"equals": ["a", "b"]},
        {"list_join": ["x"], "more": 1},
        {},
    ],
)
def test_only_a_map_with_a_single_function_name_is_a_call(value):
    assert stack().resolve({"a": [value]}) == {"a": [value]}


def test_functions_work_at_any_depth_and_do_not_change_the_template():
    written = {"a": [{"b": {"list_join": ["", [{"get_param": "s"}, {"get_resource": "r"}]]}}]}
    before = str(written)
    assert stack().resolve(written) == {"a": [{"b": "textid-1"}]}
    assert str(written) == before


def test_reading_a_hidden_parameter_or_a_secret_resource_is_remembered():
    hidden, secret, plain = stack(), stack(NEW, proxy(secret=True)), stack()
    hidden.resolve({"list_join": ["", [{"get_param": "secret"}]]})
    secret.resolve({"get_resource": "r"})
    plain.resolve([{"get_param": "s"}, {"get_attr": ["r", "x"]}])
    assert (hidden.used_secret, secret.used_secret, plain.used_secret) == (True, True, False)


def test_reading_a_resource_that_is_not_created_is_remembered():
    observed = stack(NEW, proxy(), proxy("new", "INIT"))
    observed.resolve({"get_resource": "r"})
    assert not observed.used_uncreated
    observed.resolve({"get_resource": "new"})
    assert observed.used_uncreated


def definition(value):
    names = {"parameters": "pao", "resources": "rqz"}
    document = {
        "heat_template_version": NEW,
        "parameters": {name: {"type": "string"} for name in names["parameters"]},
        "resources": {
            **{name: {"type": "T"} for name in names["resources"]},
            "seen": {"type": "T", "properties": {"value": value}},
        },
    }
    return load(document, Limits()).resources["seen"]


def test_references_list_the_dependencies_of_an_expression():
    value = {
        "a": {"list_join": [",", [{"get_param": "p"}, {"get_attr": ["r", "x", 0]}]]},
        "b": [
            {"get_attr": ["r", "y"]},
            {"get_attr": ["q"]},
            {"get_resource": "z"},
            {"get_param": ["o", "k"]},
        ],
        "get_resource": "plain",
        "c": {"get_parm": "no"},
    }
    result = definition(value)
    assert result.requires == {"r", "q", "z"}
    assert result.dep_attrs == {"r": {"x", "y"}, "q": {"*"}}
    assert result.parameters == {"p", "o"}


def test_a_computed_name_stands_for_all():
    result = definition([{"get_param": {"get_param": "p"}}, {"get_attr": ["r", {"get_param": "a"}]}])
    assert result.parameters == {"p", "a", "*"}
    assert result.dep_attrs == {"r": {"*"}}


def test_the_total_output_of_all_functions_of_a_value_is_bounded():
    text = {"str_replace": {"template": "a" * 5_000, "params": {"a": "b" * 1000}}}
    with pytest.raises(InvalidTemplate, match="The functions make more than 32 MiB altogether"):
        stack().resolve([text] * 10)
    with pytest.raises(InvalidTemplate, match='"str_split" would have more than 1000000 values'):
        stack().resolve({"str_split": ["b", text]})


def test_many_slow_functions_share_a_time_budget(monkeypatch):
    ticks = itertools.count()
    clock = SimpleNamespace(thread_time=lambda: float(next(ticks)))  # each call takes a second
    monkeypatch.setattr("orchestrator.template.definition.time", clock)
    function = {"repeat": {"template": "a", "for_each": {"a": ["1", "2"]}}}
    with time_budget(60.5):
        assert len(stack().resolve([function] * 60)) == 60
    with time_budget(58.5), pytest.raises(InvalidTemplate, match="of the request took too much time"):
        stack().resolve([function] * 60)


@pytest.mark.parametrize(
    "value",
    [
        [{"get_param": "p"}] * 1000,
        {"list_join": ["", [{"get_param": "p"}] * 1000]},
        {"yaql": {"expression": "1", "data": [{"get_param": "p"}] * 1000}},
    ],
)
def test_a_large_value_referenced_many_times_is_not_expanded(value):
    values = ParameterValues({"p": ["x" * 20] * 10_000})
    with pytest.raises(InvalidTemplate, match="The value would hold more than 1000000 values"):
        StackDefinition("2021-04-16", values, {}).resolve(value)
