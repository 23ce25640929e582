"""A path that is handed on to each member of a group."""

from __future__ import annotations

import pytest

from orchestrator.template.member_attributes import attribute_at, mark_each, mark_member, unmarked

NETS = [{"nets": {"a": [1, 2]}}, {"nets": {"b": [3]}}]


def test_a_path_goes_on_in_each_member_and_null_stands_where_it_leads_nowhere():
    assert attribute_at(mark_each(NETS), ["nets", "a", 0]) == [1, None]
    assert attribute_at(mark_each({"x": NETS[0], "y": NETS[1]}), ["nets", "b"]) == {"x": None, "y": [3]}
    assert attribute_at({"list": mark_each(NETS)}, ["list", "nets", "a"]) == [[1, 2], None]
    assert attribute_at(mark_each([5, None]), ["nets"]) == [None, None]


def test_a_member_attribute_is_its_id_or_the_requested_attribute():
    member = mark_member("id-1", {"ip": "10.0.0.1", "all": mark_each([1, 2])})
    assert unmarked(member) == "id-1"
    assert attribute_at({"resource.1": member}, ["resource.1"]) == "id-1"
    assert attribute_at(member, ["ip"]) == "10.0.0.1"
    assert attribute_at(member, ["all"]) == [1, 2]
    with pytest.raises(LookupError):
        attribute_at(member, ["nothing"])


def test_nested_groups_are_traversed_in_sequence():
    outer = mark_each([{"ips": mark_each(["a", "b"])}, {"ips": mark_each(["c"])}])
    assert attribute_at(outer, ["ips"]) == [["a", "b"], ["c"]]
    assert unmarked(mark_each([mark_each([1]), 2])) == [[1], 2]
    assert unmarked(mark_each({"x": mark_member("id", {})})) == {"x": "id"}


def test_any_other_value_is_walked_through_as_it_is():
    assert attribute_at({"a": [{"b": 1}]}, ["a", 0, "b"]) == 1
    assert attribute_at({"a": [{"b": 1}]}, ["a", "0", "b"]) == 1
    assert unmarked({"::each": [1], "more": 2}) == {"::each": [1], "more": 2}
    for path in (["x"], ["a", "b"], ["a", True], ["a", 0, "b", 0], ["a", None]):
        with pytest.raises((LookupError, TypeError, ValueError)):
            attribute_at({"a": [{"b": 1}]}, path)
