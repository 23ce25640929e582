"""Functions that build lists and maps, and that select from them (docs/internals/hot-language.md §5.2,
§5.3, §15).
"""

import hashlib

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from orchestrator.template.definition import UNKNOWN
from orchestrator.template.functions import collections
from tests.unit.template.functions_stub import CFN, NEW, UNDECIDED, failed, given, refused, resolved

REPLACE = '"map_replace" : [ { "key1": "val1" }, {"keys": {"key1": "key2"}, "values": {"val1": "val2"}}]'
REPLACE_FORM = f'Incorrect arguments to "map_replace" should be: {REPLACE}'
REPLACE_MAPS = f'Incorrect arguments: to "map_replace", arguments must be a list of maps. Example:  {REPLACE}'


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("map_merge", [], {}),
        ("map_merge", [{"a": 1, "c": 0}, None, {"a": 2, "b": 3}], {"a": 2, "c": 0, "b": 3}),
        ("map_merge", [{"a": {"x": 1}}, {"a": {"y": 1}}], {"a": {"y": 1}}),
        ("map_merge", given("maps"), {"a": 1, "b": 2}),
        ("map_merge", [given("none"), given("map")], {"k": "v"}),
        ("map_merge", {"repeat": {"template": {"%a%": "%a%"}, "for_each": {"%a%": ["x"]}}}, {"x": "x"}),
        ("map_replace", [{"a": "v"}, {}], {"a": "v"}),
        ("map_replace", [{"a": "v"}, None], {"a": "v"}),
        ("map_replace", [None, {"keys": {"a": "b"}}], {}),
        ("map_replace", [{"a": "v", "b": "w"}, {"keys": {"a": "c"}}], {"c": "v", "b": "w"}),
        ("map_replace", [{"a": "v", "b": "w"}, {"values": {"v": "V", "V": "X"}}], {"a": "V", "b": "w"}),
        ("map_replace", [{"a": "v"}, {"keys": {"a": "a"}, "values": {"v": None}}], {"a": None}),
        ("map_replace", [{"a": "v"}, {"keys": None, "values": None}], {"a": "v"}),
        (
            "map_replace",
            [{"a": [1], "b": {"x": 1}, "c": 1}, {"values": {1: 2}}],
            {"a": [1], "b": {"x": 1}, "c": 2},
        ),
        ("map_replace", [{"a": "v"}, {"keys": {"a": None, "zz": "a"}}], {"a": "v"}),
        ("map_replace", [given("map"), {"keys": given("map")}], {"v": "v"}),
        ("list_concat", [], []),
        ("list_concat", [["a"], None, ["b", "a"]], ["a", "b", "a"]),
        ("list_concat", given("lists"), ["a", "b"]),
        ("list_concat", [given("list"), given("none")], ["a", "b"]),
        ("list_concat_unique", [["a"], None, ["b", "a"]], ["a", "b"]),
        (
            "list_concat_unique",
            [[{"a": 1}, [1]], [{"a": 1}, {"a": 2}, [1], [2]]],
            [{"a": 1}, [1], {"a": 2}, [2]],
        ),
        ("list_concat_unique", given("lists"), ["a", "b"]),
        ("filter", [["a"], ["a", "b", "a"]], ["b"]),
        ("filter", [None, ["a"]], ["a"]),
        ("filter", [["a"], None], None),
        ("filter", [[{"a": 1}], [{"a": 1}, 2]], [2]),
        ("filter", [given("list"), ["a", "c"]], ["c"]),
        ("filter", [given("none"), given("list")], ["a", "b"]),
        ("contains", ["a", ["a"]], True),
        ("contains", ["b", ["a"]], False),
        ("contains", ["a", "xay"], True),
        ("contains", ["", ""], True),
        ("contains", [None, [None]], True),
        ("contains", [{"a": 1}, [{"a": 1}]], True),
        ("contains", ["a", given("list")], True),
        ("digest", ["md5", "x"], "9dd4e461268c8034f5c8564e155c67a6"),
        ("digest", ["MD5", given("text")], hashlib.md5(b"a,b").hexdigest()),
        ("digest", ["sha512", "é"], hashlib.sha512(b"\xe9").hexdigest()),
        ("digest", ["sha256", ""], hashlib.sha256(b"").hexdigest()),
    ],
)
def test_their_values(name, args, value):
    assert not refused({name: args})
    assert resolved({name: args}) == value


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("filter", "x", 'Argument to "filter" must be a list'),
        ("filter", given("lists"), 'Argument to "filter" must be a list'),
        (
            "filter",
            [],
            '"filter" expected 2 arguments of the form [values, sequence] but got 0 arguments instead',
        ),
        ("contains", "x", collections.CONTAINS_FORM),
        ("contains", [], collections.CONTAINS_FORM),
        ("contains", given("list"), collections.CONTAINS_FORM),
        ("contains", ["a"], 'Arguments to "contains" must be of the form: [value1, [value1, value2]]'),
        ("map_merge", 5, ""),
        ("map_replace", "x", ""),
        ("list_concat", {"a": 1}, ""),
        ("digest", 5, ""),
    ],
)
def test_unresolved_arguments_that_they_refuse(name, args, message):
    assert refused({name: args}) == message


MERGE_FORM = (
    'Incorrect arguments to "map_merge" should be: "map_merge" : [ { "key1": "val1" }, { "key2": "val2" } ]'
)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("map_merge", 5, MERGE_FORM),
        ("map_merge", {"a": 1}, MERGE_FORM),
        ("map_merge", given("none"), MERGE_FORM),
        (
            "map_merge",
            [["a"]],
            "Incorrect arguments: Items to merge must be maps. "
            "['a'] is type <class 'list'> instead of a dict",
        ),
        ("map_replace", 5, REPLACE_FORM),
        ("map_replace", [], REPLACE_FORM),
        ("map_replace", [{}], REPLACE_FORM),
        ("map_replace", [{}, {}, 1], REPLACE_FORM),
        ("map_replace", [{}, {"keys": {}, "foo": {}}], REPLACE_FORM),
        ("map_replace", ["a", {}], REPLACE_MAPS),
        ("map_replace", [{}, "x"], REPLACE_MAPS),
        ("map_replace", [{}, {"keys": 5}], REPLACE_MAPS),
        (
            "map_replace",
            [{"a": 1, "b": 2}, {"keys": {"a": "b"}}],
            "key replacement b collides with a key in the input map",
        ),
        (
            "map_replace",
            [{"a": 1, "b": 2}, {"keys": {"a": "c", "b": "c"}}],
            "key replacement c collides with a key in the output map",
        ),
        ("map_replace", [{"a": 1}, {"keys": {"a": ["b"]}}], "unhashable type: 'list'"),
        (
            "list_concat",
            5,
            'Incorrect arguments to "list_concat" should be: "list_concat" : '
            "[ [ <value 1>, <value 2> ], [ <value 3>, <value 4> ] ]",
        ),
        (
            "list_concat_unique",
            [["a"], "b"],
            'Incorrect arguments: Items to concat must be lists. [["a"], "b"] contains an item that is not a '
            'list: "b"',
        ),
        ("filter", ["a", ["a"]], '"filter" filters a list of values'),
        ("filter", [["a"], "a"], '"filter" only works with lists'),
        ("contains", ["a", {"a": 1}], 'Second argument to "contains" should be a sequence.'),
        ("contains", ["a", given("none")], 'Second argument to "contains" should be a sequence.'),
        ("contains", [1, "x1"], "'in <string>' requires string as left operand, not int"),
        ("digest", 5, 'Argument to function "digest" must be a list of strings'),
        ("digest", ["md5", None], 'Argument to function "digest" must be a list of strings'),
        ("digest", ["md5"], 'Function "digest" usage: ["<algorithm>", "<value>"]'),
        ("digest", given("none"), 'Argument to function "digest" must be a list of strings'),
    ],
)
def test_values_that_they_refuse(name, args, message):
    assert failed({name: args}) == message


def test_digest_names_the_algorithms_there_are():
    message = failed({"digest": ["foo", "x"]})
    assert message.startswith("Algorithm must be one of {'")
    assert "'sha256'" in message
    assert "latin-1" in failed({"digest": ["md5", "日本"]})


@pytest.mark.parametrize(
    ("args", "value"),
    [
        ([0, ["a", "b"]], "a"),
        (["1", ["a", "b"]], "b"),
        ([-1, ["a", "b"]], "b"),
        ([5, ["a"]], ""),
        ([0, [None]], None),
        (["a", {"a": 1}], 1),
        (["z", {"a": 1}], ""),
        ([0, None], ""),
        ([0, ""], ""),
        ([0, "[1, 2]"], 1),
        (["a", '{"a": 5}'], 5),
        ([0, "null"], ""),
        ([{"Fn::Join": ["", ["1"]]}, {"Fn::Split": [",", "a,b"]}], "b"),
    ],
)
@pytest.mark.parametrize("version", [CFN, "2013-05-23"])
def test_fn_select(version, args, value):
    assert not refused({"Fn::Select": args}, version)
    assert resolved({"Fn::Select": args}, version) == value


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([0, {"a": 1}], 'Index to "Fn::Select" must be a string'),
        (["x", ["a"]], 'Index to "Fn::Select" must be an integer'),
        ([None, ["a"]], 'Index to "Fn::Select" must be an integer'),
        ([0, "x"], '"Fn::Select": Expecting value: line 1 column 1 (char 0)'),
        ([0, "5"], "Arguments to Fn::Select not fully resolved"),
    ],
)
def test_selections_that_fn_select_refuses(args, message):
    assert failed({"Fn::Select": args}, CFN) == message


MEMBERS = [".member.10.N=a", ".member.10.V=x=y", ".member.2.V=z", ".member.2.N=a", ".member.3.N=b", "o=p"]


@pytest.mark.parametrize(
    ("members", "value"),
    [
        (MEMBERS, {"a": "x=y"}),
        ([], {}),
        ([".member.0.N=k", ".member.0.V="], {"k": ""}),
        (["member.0.N=k", "member.0.V=v"], {}),
        ([".member.x.N=k", ".member.x.V=v"], {}),
        ({"Fn::Split": [";", ".member.0.N=k;.member.0.V=v"]}, {"k": "v"}),
    ],
)
def test_fn_member_list_to_map(members, value):
    assert resolved({"Fn::MemberListToMap": ["N", "V", members]}, CFN) == value


def test_arguments_that_cloudformation_functions_refuse():
    assert refused({"Fn::Select": [0]}, CFN) == (
        'Arguments to "Fn::Select" must be of the form [index, collection]'
    )
    assert refused({"Fn::MemberListToMap": []}, CFN).startswith("Wrong Arguments try: \"\n            {'Fn::")
    assert refused({"Fn::MemberListToMap": [5, "V", []]}, CFN) == (
        "Fn::MemberListToMap Key Name must be a string"
    )
    assert refused({"Fn::MemberListToMap": ["N", 5, []]}, CFN) == (
        "Fn::MemberListToMap Value Name must be a string"
    )
    assert failed({"Fn::MemberListToMap": ["N", "V", None]}, CFN) == "Member list must be a list"
    assert failed({"Fn::MemberListToMap": ["N", "V", [5]]}, CFN) == "Member list items must be strings"
    assert failed({"Fn::MemberListToMap": ["N", "V", ["x"]]}, CFN) == (
        "dictionary update sequence element #0 has length 1; 2 is required"
    )


def test_fn_base64_leaves_its_text_as_it_is():
    assert resolved({"Fn::Base64": {"Fn::Join": ["", ["x"]]}}, CFN) == "x"
    assert failed({"Fn::Base64": ["x"]}, CFN) == '"Fn::Base64" argument must be a string'


@pytest.mark.parametrize(
    ("value", "version"),
    [
        ({"map_merge": [UNDECIDED]}, NEW),
        ({"map_merge": UNDECIDED}, NEW),
        ({"map_replace": [{"a": UNDECIDED}, {}]}, NEW),
        ({"list_concat": [["a"], [[{"deep": UNDECIDED}]]]}, NEW),
        ({"list_concat_unique": UNDECIDED}, NEW),
        ({"filter": [["a"], [UNDECIDED]]}, NEW),
        ({"contains": [UNDECIDED, ["a"]]}, NEW),
        ({"digest": ["md5", UNDECIDED]}, NEW),
    ],
)
def test_values_made_from_unknown_values_are_unknown(value, version):
    assert resolved(value, version, strict=False) is UNKNOWN


def test_lists_of_very_many_maps_are_not_compared_without_end(monkeypatch):
    monkeypatch.setattr(collections, "MAX_COMPARISONS", 100)
    assert failed({"list_concat_unique": [[{"n": n} for n in range(20)]]}) == (
        "list comparison exceeds 100 elements"
    )


ITEMS = st.lists(st.none() | st.sampled_from("abc") | st.lists(st.integers(0, 2), max_size=2), max_size=6)


@over(ITEMS, ITEMS)
def test_unique_keeps_the_first_of_each_and_filter_takes_away_exactly_the_values(one, other):
    both = resolved({"list_concat": [one, other]})
    unique = resolved({"list_concat_unique": [one, other]})
    assert both == one + other
    assert [item for n, item in enumerate(both) if item not in both[:n]] == unique
    remaining = resolved({"filter": [one, other]})
    assert all(resolved({"contains": [item, other]}) for item in remaining)
    assert [item for item in other if item not in one] == remaining


NAMES = st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3)


@over(NAMES, NAMES)
def test_of_maps_that_are_merged_the_later_wins(one, other):
    assert resolved({"map_merge": [one, other]}) == one | other
