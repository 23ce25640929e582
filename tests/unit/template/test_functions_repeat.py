"""`repeat` (docs/internals/hot-language.md §5.3), version by version."""

import math

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from orchestrator.template.definition import UNKNOWN
from orchestrator.template.functions import repeat as module
from orchestrator.template.versions import VERSIONS
from tests.unit.template.functions_stub import NEW, UNDECIDED, failed, given, refused, resolved

LISTS = [version for version in VERSIONS if "2015-04-30" <= version < "2016-10-14"]
MAPS = [version for version in VERSIONS if "2016-10-14" <= version < "2017-09-01"]
ALL = [version for version in VERSIONS if version >= "2015-04-30"]


def repeat(template, for_each, **options):
    return {"repeat": {"template": template, "for_each": for_each, **options}}


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    ("template", "for_each", "copies"),
    [
        ("x%a%", {"%a%": ["1", "2"]}, ["x1", "x2"]),
        ("%a%%b%", {"%a%": ["1", "2"], "%b%": ["3", "4"]}, ["13", "14", "23", "24"]),
        ("ab", {"b": ["x", "y"], "a": ["1", "2"]}, ["1x", "2x", "1y", "2y"]),
        ("a", {"a": None}, []),
        ("ab", {"a": ["1", "2"], "b": []}, []),
        ("a", {"a": ["b"], "b": ["c"]}, ["c"]),
        (
            {"a": "a", "b": ["a", 1, None]},
            {"a": ["p", "q"]},
            [{"p": "p", "b": ["p", 1, None]}, {"q": "q", "b": ["q", 1, None]}],
        ),
        ({"a": 1, "b": 2}, {"a": ["b"]}, [{"b": 2}]),
        (5, {"a": ["p", "q"]}, [5, 5]),
        (None, {"a": [1]}, [None]),
        ("%a%", {"%a%": given("list")}, ["a", "b"]),
        ("%a%", {"%a%": [given("text"), "y"]}, ["a,b", "y"]),
        ("%a%", {"%a%": given("none")}, []),
        ({"list_join": ["-", ["%a%", "z"]]}, {"%a%": ["p"]}, ["p-z"]),
        ([{"str_replace": {"template": "%a% z", "params": {"z": "%a%"}}}], {"%a%": ["p"]}, [["p p"]]),
        ({"get_%a%": "text"}, {"%a%": ["param"]}, [{"get_param": "text"}]),
        (repeat("ab", {"b": ["1", "2"]}), {"a": ["x", "y"]}, [["x1", "x2"], ["y1", "y2"]]),
    ],
)
def test_repeat(version, template, for_each, copies):
    assert not refused(repeat(template, for_each), version)
    assert resolved(repeat(template, for_each), version) == copies


@pytest.mark.parametrize("version", LISTS)
def test_maps_are_refused_by_the_versions_that_only_know_lists(version):
    message = 'The values of the "for_each" argument to "repeat" must be lists'
    assert failed(repeat("a", {"a": {"k": 1}}), version) == message
    assert failed(repeat("a", {"a": "xyz"}), version) == message


@pytest.mark.parametrize("version", [*MAPS, NEW])
def test_of_a_map_the_keys_are_taken_by_the_versions_that_can(version):
    assert resolved(repeat("a", {"a": {"k": 1, "l": 2}}), version) == ["k", "l"]
    assert resolved(repeat("x", {"a": given("map")}), version) == ["x"]
    assert failed(repeat("a", {"a": "xyz"}), version) == (
        'The values of the "for_each" argument to "repeat" must be lists or maps'
    )


@pytest.mark.parametrize("version", [*LISTS, *MAPS])
def test_permutations_mean_nothing_to_versions_before_them(version):
    assert resolved(repeat("ab", {"a": ["1", "2"], "b": ["x"]}, permutations="no"), version) == ["1x", "2x"]


def test_without_permutations_the_lists_are_walked_together():
    assert resolved(repeat("ab", {"a": ["1", "2"], "b": ["x", "y"]}, permutations=False)) == ["1x", "2y"]
    assert resolved(repeat("ab", {"a": ["1", "2"], "b": None}, permutations=False)) == []
    assert resolved(repeat("ab", {"a": ["1"], "b": {"k": 1}}, permutations=True)) == ["1k"]
    assert failed(repeat("ab", {"a": ["1", "2"], "b": ["x"]}, permutations=False)) == (
        "For repeat, the length of for_each values should be equal if no nested loop."
    )
    assert failed(repeat("ab", {"a": ["1"], "b": {"k": 1}}, permutations=False)) == (
        'The values of the "for_each" argument to "repeat" must be lists'
    )


FORM = (
    '\'"repeat" syntax should be repeat:\\n              template: This is %var%\\n'
    "              for_each:\\n                %var%: [\\'a\\', \\'b\\', \\'c\\']'"
)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("x", 'Arguments to "repeat" must be a map'),
        ([], 'Arguments to "repeat" must be a map'),
        (None, 'Arguments to "repeat" must be a map'),
        (given("map"), 'Arguments to "repeat" must be a map'),
        ({}, FORM),
        ({"template": "x"}, FORM),
        ({"for_each": {}, "permutations": 5}, FORM),
        ({"template": "x", "for_each": None}, 'The "for_each" argument to "repeat" must contain a map'),
        ({"template": "x", "for_each": ["a"]}, 'The "for_each" argument to "repeat" must contain a map'),
        ({"template": "x", "for_each": given("text")}, ""),
    ],
)
@pytest.mark.parametrize("version", ALL)
def test_unresolved_arguments_that_repeat_refuses(version, args, message):
    assert refused({"repeat": args}, version) == message


@pytest.mark.parametrize("value", ["x", None, 0, "false", [], given("number")])
def test_permutations_are_written_and_boolean(value):
    assert refused(repeat("a", {"a": ["x"]}, permutations=value)) == (
        '"permutations" should be boolean type for repeat function.'
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (repeat("a", {"a": [1]}), "replace() argument 2 must be str, not int"),
        (repeat("z", {"a": [None]}), "replace() argument 2 must be str, not None"),
        (repeat("a", {5: ["x"]}), "replace() argument 1 must be str, not int"),
        (repeat("a", {}), 'The "for_each" argument to "repeat" must contain a variable'),
        (repeat("a", given("text")), 'The "for_each" argument to "repeat" must contain a map'),
    ],
)
def test_values_that_repeat_refuses(value, message):
    assert failed(value) == message


def test_a_function_in_the_template_is_evaluated_before_anything_is_replaced_in_it():
    assert failed(repeat({"digest": ["%a%", "x"]}, {"%a%": ["md5"]})).startswith(
        "repeat.template.digest: Algorithm must be one of"
    )
    assert resolved(repeat({"make_url": {"host": "%a%"}}, {"%a%": ["h"]})) == ["//%25a%25"]


def test_a_repeat_with_something_unknown_is_unknown():
    assert resolved(repeat("a", {"a": UNDECIDED}), strict=False) is UNKNOWN
    assert resolved(repeat("a", {"a": ["x", UNDECIDED]}), strict=False) is UNKNOWN
    assert resolved(repeat({"x": [UNDECIDED]}, {"a": ["x"]}), strict=False) is UNKNOWN
    assert resolved(repeat("a", UNDECIDED), strict=False) is UNKNOWN


def test_a_small_template_cannot_make_a_result_without_bounds(monkeypatch):
    digits = list("0123456789")
    assert failed(repeat("x", dict.fromkeys("abcdefg", digits))) == (
        f'The result of "repeat" would have more than {module.MAX_VALUES} values'
    )
    monkeypatch.setattr(module, "MAX_TEXT_LENGTH", 100)
    assert failed(repeat("aaaa", {"a": ["x" * 10, "y" * 20]})) == (
        'The result of "repeat" would be longer than 100 characters'
    )


WORDS = st.lists(st.text("xyz", max_size=2), max_size=4)


@over(st.lists(WORDS, min_size=1, max_size=3))
def test_there_are_as_many_copies_as_combinations_and_the_last_variable_changes_fastest(lists):
    names = [f"%{n}%" for n in range(len(lists))]
    copies = resolved(repeat(";".join(names), dict(zip(names, lists, strict=True))))
    assert len(copies) == math.prod(map(len, lists))
    if copies:
        assert copies[0].split(";") == [items[0] for items in lists]
        assert [copy.split(";")[-1] for copy in copies[: len(lists[-1])]] == lists[-1]
