"""A path that is handed on to each member of a group."""

from __future__ import annotations

import pytest

from orchestrator.template.member_attributes import each, one, plain, reach

NETS = [{"nets": {"a": [1, 2]}}, {"nets": {"b": [3]}}]


def test_a_path_goes_on_in_each_member_and_null_stands_where_it_leads_nowhere():
    assert reach(each(NETS), ["nets", "a", 0]) == [1, None]
    assert reach(each({"x": NETS[0], "y": NETS[1]}), ["nets", "b"]) == {"x": None, "y": [3]}
    assert reach({"list": each(NETS)}, ["list", "nets", "a"]) == [[1, 2], None]
    assert reach(each([5, None]), ["nets"]) == [None, None]


def test_one_member_is_its_id_or_what_is_asked_of_it():
    member = one("id-1", {"ip": "10.0.0.1", "all": each([1, 2])})
    assert plain(member) == "id-1"
    assert reach({"resource.1": member}, ["resource.1"]) == "id-1"
    assert reach(member, ["ip"]) == "10.0.0.1"
    assert reach(member, ["all"]) == [1, 2]
    with pytest.raises(LookupError):
        reach(member, ["nothing"])


def test_groups_of_groups_are_gone_through_one_after_the_other():
    outer = each([{"ips": each(["a", "b"])}, {"ips": each(["c"])}])
    assert reach(outer, ["ips"]) == [["a", "b"], ["c"]]
    assert plain(each([each([1]), 2])) == [[1], 2]
    assert plain(each({"x": one("id", {})})) == {"x": "id"}


def test_any_other_value_is_walked_through_as_it_is():
    assert reach({"a": [{"b": 1}]}, ["a", 0, "b"]) == 1
    assert reach({"a": [{"b": 1}]}, ["a", "0", "b"]) == 1
    assert plain({"::each": [1], "more": 2}) == {"::each": [1], "more": 2}
    for path in (["x"], ["a", "b"], ["a", True], ["a", 0, "b", 0], ["a", None]):
        with pytest.raises((LookupError, TypeError, ValueError)):
            reach({"a": [{"b": 1}]}, path)
