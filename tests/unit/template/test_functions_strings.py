"""Texts made of texts (docs/internals/hot-language.md §5.2, §15), version by version."""

import json

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from orchestrator.template.definition import UNKNOWN
from orchestrator.template.functions import resolved_argument, strings
from orchestrator.template.versions import VERSIONS
from tests.unit.template.functions_stub import CFN, NEW, UNDECIDED, failed, given, refused, resolved

OLD = "2013-05-23"
REPLACES = ("str_replace", "str_replace_strict", "str_replace_vstrict")


def replace(template, params, name="str_replace", **options):
    return {name: {"template": template, "params": params, **options}}


@pytest.mark.parametrize("name", REPLACES)
@pytest.mark.parametrize(
    ("template", "params", "text"),
    [
        ("ab", {"a": "b", "b": "c"}, "bc"),
        ("abcd", {"bcd": "X"}, "aX"),
        ("xaab ab", {"ab": "Y", "aa": "X"}, "xXb Y"),
        ("abc ab a", {"a": "1", "ab": "2", "abc": "3"}, "3 2 1"),
        ("n b f", {"n": 7, "b": True, "f": 1.5}, "7 True 1.5"),
        ("n f", {"n": 0, "f": False}, "0 False"),
        ("a.c", {".": "\\1"}, "a\\1c"),
        ("v", {"v": {"b": [1, True, None], "a": "é"}}, '{"a": "\\u00e9", "b": [1, true, null]}'),
        ("", {}, ""),
        ("a,b", {",": given("number")}, "a7b"),
        (given("text"), given("map"), None),
    ],
)
def test_every_str_replace_inserts_longer_keys_first_and_never_rescans_inserted_text(
    name, template, params, text
):
    if text is None and name != "str_replace":
        assert failed(replace(template, params, name)).endswith("not found in the template: k")
    else:
        assert resolved(replace(template, params, name)) == (text if text is not None else "a,b")


def test_a_key_that_occurs_only_in_a_longer_key_is_not_left_over():
    assert resolved(replace("abcd", {"ab": "Y", "bcd": "X"})) == "aX"
    assert failed(replace("ab", {"ab": 1, "a": 2}, "str_replace_strict")) == (
        "The following params were not found in the template: a"
    )


def test_null_is_put_in_as_nothing_and_other_arguments_are_overlooked():
    assert resolved(replace("a-b", {"a": None, "b": ""}, extra=1)) == "-"


def test_strict_names_every_param_that_is_missing_longest_first():
    assert failed(replace("x", {"zb": 1, "zzz": 1, "a b": 2, "x": 3}, "str_replace_strict")) == (
        "The following params were not found in the template: a b,zzz,zb"
    )


@pytest.mark.parametrize("empty", [None, "", [], {}])
def test_vstrict_refuses_params_without_a_value(empty):
    assert failed(replace("ab", {"a": empty, "b": 1}, "str_replace_vstrict")) == (
        "str_replace_vstrict has an undefined or empty value for param a, must be a defined non-empty value"
    )
    assert resolved(replace("ab", {"a": "x", "b": 1}, "str_replace_vstrict")) == "x1"


@pytest.mark.parametrize("version", [v for v in VERSIONS if v < "2015-10-15"])
def test_maps_and_lists_are_not_put_in_by_the_versions_that_cannot(version):
    assert failed(replace("v", {"v": [1]}), version) == (
        '"str_replace" params must be strings or numbers, param v is not valid'
    )


@pytest.mark.parametrize("name", REPLACES)
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("x", 'Arguments to "{}" must be a map'),
        (None, 'Arguments to "{}" must be a map'),
        (["a", "b"], 'Arguments to "{}" must be a map'),
        (given("map"), 'Arguments to "{}" must be a map'),
        (
            {"template": "x"},
            '\'"{}" syntax should be {}:\\n              template: This is var1 template var2\\n'
            "              params:\\n                var1: a\\n                var2: string'",
        ),
        ({"template": "x", "params": None}, '"{}" parameters must be a mapping'),
        ({"template": "x", "params": ["a"]}, '"{}" parameters must be a mapping'),
        ({"template": 5, "params": {}}, ""),
        ({"template": given("none"), "params": given("none")}, ""),
    ],
)
def test_unresolved_arguments_that_every_str_replace_refuses(name, args, message):
    assert refused({name: args}) == message.replace("{}", name)


@pytest.mark.parametrize("name", REPLACES)
def test_resolved_arguments_that_every_str_replace_refuses(name):
    assert failed(replace(5, {}, name)) == f'"{name}" template must be a string'
    assert failed(replace(given("none"), {}, name)) == f'"{name}" template must be a string'
    assert failed(replace("x", given("list"), name)) == f'"{name}" params must be a map'
    assert failed(replace("x", {"": "a"}, name)) == "empty separator"
    assert failed(replace("x", {5: "a"}, name)) == f'"{name}" param placeholders must be strings'


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([",", ["a", "b"]], "a,b"),
        (["", []], ""),
        (["-", ["a", None, "b"]], "a--b"),
        (["-", None], ""),
        ([",", given("list")], "a,b"),
        ([given("text"), ["1", "2"]], "1a,b2"),
    ],
)
def test_list_join(version, args, text):
    assert resolved({"list_join": args}, version) == text


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([",", ["a"], None, [{"b": 1, "a": [2]}, ["c"]]], 'a,{"a": [2], "b": 1},["c"]'),
        ([",", ["a"], "", {}, ["b"]], "a,b"),
    ],
)
def test_list_join_takes_many_lists_and_puts_in_json_in_versions_that_can(args, text):
    assert resolved({"list_join": args}) == text
    assert refused({"list_join": args}, OLD).startswith('Incorrect arguments to "list_join"')


@pytest.mark.parametrize(
    ("version", "args", "message"),
    [
        (NEW, [",", [1]], "Items to join must be string, map or list not 1"),
        (NEW, [",", [True]], "Items to join must be string, map or list not True"),
        (OLD, [",", [1]], "Items to join must be strings not 1"),
        (OLD, [",", [{"a": 1, "b": 2}]], "Items to join must be strings not {'a': 1, 'b': 2}"),
        (NEW, [",", "text"], '"list_join" must operate on a list'),
        (OLD, [",", ""], '"list_join" must operate on a list'),
        (NEW, [1, "text"], '"list_join" must operate on a list'),
        (NEW, [1, ["a"]], '"list_join" delimiter must be a string'),
        (NEW, [given("none"), []], '"list_join" delimiter must be a string'),
    ],
)
def test_items_that_list_join_cannot_join(version, args, message):
    assert failed({"list_join": args}, version) == message


@pytest.mark.parametrize("args", ["x", 5, None, {}, {"a": 1}, [], [","], given("lists")])
@pytest.mark.parametrize(("version", "more"), [(OLD, ""), (NEW, " ...")])
def test_the_form_of_list_join_is_a_delimiter_and_lists(version, more, args):
    assert refused({"list_join": args}, version) == (
        f'Incorrect arguments to "list_join" should be: "list_join" : [ " ", [ "str1", "str2"]{more}]'
    )


SPLIT = '"str_split" should be: "str_split" : [ ",", "apples,pears", <index>]'


@pytest.mark.parametrize(
    ("args", "value"),
    [
        ([",", "a,b"], ["a", "b"]),
        ([",", ""], [""]),
        ([",", given("text"), 0], "a"),
        ([",", "a,b", "1"], "b"),
        ([",", "a,b", -1], "b"),
        ([",", "a,b", 1, "more"], "b"),
        ([given("none"), "a b"], ["a", "b"]),
        ([",", None], None),
        ([",", given("none"), "x"], None),
        (given("list"), ["b"]),
    ],
)
def test_str_split(args, value):
    assert not refused({"str_split": args})
    assert resolved({"str_split": args}) == value


@pytest.mark.parametrize("args", ["a,b", {}, {"a": 1}])
def test_the_form_of_str_split_is_a_list(args):
    assert refused({"str_split": args}) == f"Incorrect arguments to {SPLIT}"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (5, f"Incorrect arguments to {SPLIT}"),
        ([","], f"Incorrect arguments to {SPLIT}"),
        (given("map"), f"Incorrect arguments to {SPLIT}"),
        ([",", "a,b", "x"], f"Incorrect index to {SPLIT}"),
        ([",", "a,b", 2], 'Incorrect index to "str_split" should be between 0 and 1'),
        ([",", "a,b", -3], 'Incorrect index to "str_split" should be between 0 and 1'),
        (["", "a"], "empty separator"),
        ([5, "a"], "must be str or None, not int"),
        ([",", ["a"]], 'The text that "str_split" splits must be a string'),
    ],
)
def test_values_that_str_split_refuses(args, message):
    assert failed({"str_split": args}) == message


@pytest.mark.parametrize("version", [CFN, OLD])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"Fn::Join": [",", ["a", None, "b"]]}, "a,,b"),
        ({"Fn::Join": [",", None]}, ""),
        ({"Fn::Split": [",", "a,b"]}, ["a", "b"]),
        ({"Fn::Split": [",", {"Fn::Join": [",", ["a", "b"]]}]}, ["a", "b"]),
        ({"Fn::Replace": [{"b": "x", "abc": 1, "a": None}, "abcab"]}, "1x"),
    ],
)
def test_cloudformations_names_for_them(version, value, text):
    assert not refused(value, version)
    assert resolved(value, version) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"Fn::Join": [","]},
            'Incorrect arguments to "Fn::Join" should be: "Fn::Join" : [ " ", [ "str1", "str2"]]',
        ),
        (
            {"Fn::Split": "ab"},
            'Incorrect arguments to "Fn::Split" should be: "Fn::Split" : [ ",", "str1,str2"]]',
        ),
        (
            {"Fn::Replace": [{}]},
            'Incorrect arguments to "Fn::Replace" should be: '
            '{"Fn::Replace": [ {"$var1": "foo", "%var2%": "bar"}, "$var1 is %var2%"]}',
        ),
        ({"Fn::Replace": [None, "x"]}, '"Fn::Replace" parameters must be a mapping'),
    ],
)
def test_unresolved_arguments_that_cloudformation_functions_refuse(value, message):
    assert refused(value, CFN) == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Fn::Join": [",", "ab"]}, '"Fn::Join" must operate on a list'),
        ({"Fn::Join": [",", [1]]}, "Items to join must be strings not 1"),
        ({"Fn::Split": [5, "a"]}, "Delimiter for Fn::Split must be string"),
        ({"Fn::Split": [",", None]}, "String to split must be string; got <class 'NoneType'>"),
        (
            {"Fn::Replace": [{"a": []}, "x"]},
            '"Fn::Replace" params must be strings or numbers, param a is not valid',
        ),
        ({"Fn::Replace": [{"a": "b"}, None]}, '"Fn::Replace" template must be a string'),
    ],
)
def test_values_that_cloudformation_functions_cannot_use(value, message):
    assert failed(value, CFN) == message


@pytest.mark.parametrize(
    "value",
    [
        replace("a", {"a": UNDECIDED}),
        replace(UNDECIDED, {"a": "b"}, "str_replace_strict"),
        {"list_join": [",", [UNDECIDED]]},
        {"str_split": [",", UNDECIDED]},
        {"str_split": [",", "a", UNDECIDED]},
    ],
)
def test_a_text_made_of_something_unknown_is_unknown(value):
    assert resolved(value, strict=False) is UNKNOWN


def test_a_small_template_cannot_make_a_text_without_bounds():
    value = "x" * 10
    for _ in range(10):
        value = replace("x" * 100, {"x": value})
    assert failed(value).endswith(f"would be longer than {resolved_argument.MAX_TEXT_LENGTH} characters")
    wide = [{"list_join": ["x" * 1000, ["y"] * 1000]}]
    assert failed({"list_join": ["", wide * 20]}).endswith("characters")


def test_many_params_are_put_in_at_once_and_too_many_for_a_huge_template_are_refused(monkeypatch):
    params = {f"k{n};": f"{n}," for n in range(5_000)}
    assert resolved(replace("".join(params), params)) == "".join(params.values())
    monkeypatch.setattr(strings, "MAX_SEARCHED", 10)
    assert failed(replace("abcd", {"a": 1, "b": 2, "c": 3})) == (
        '"str_replace" has too many params for a template of this size'
    )


def test_a_template_may_have_any_character_in_it():
    odd = "".join(map(chr, range(40)))
    assert resolved(replace(f"{odd}-{odd}", {"-": odd, "\0": "a"})) == f"a{odd[1:]}{odd}a{odd[1:]}"


SOME = st.text("ab%", max_size=6)


@over(SOME, st.dictionaries(SOME.filter(bool), SOME, max_size=3))
def test_a_text_without_any_key_is_unchanged_and_a_key_is_replaced_as_by_str_replace(template, params):
    made = strings.replaced("f", template, params, json_since=True)
    if not any(key in template for key in params):
        assert made == template
    if len(params) == 1:
        [(key, keyword)] = params.items()
        assert made == template.replace(key, keyword)


@over(st.lists(st.text("ab,", max_size=4), min_size=1), st.sampled_from([",", "--", "ba"]))
def test_splitting_and_joining_returns_the_same_text(texts, delimiter):
    whole_text = delimiter.join(texts)
    assert resolved({"list_join": [delimiter, {"str_split": [delimiter, whole_text]}]}) == whole_text


@over(
    st.recursive(
        st.none() | st.booleans() | st.integers(), lambda held: st.lists(held) | st.dictionaries(SOME, held)
    )
)
def test_values_inserted_as_json_can_be_parsed_again(value):
    if isinstance(value, (dict, list)):
        assert json.loads(resolved({"list_join": ["", [value]]})) == value
