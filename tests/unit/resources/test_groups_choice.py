"""The members that a removal request selects, and the size of a group after scaling."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ProviderError
from orchestrator.resources.groups import capacity
from orchestrator.resources.groups.capacity import begun, cooldown_end, finished, new_capacity
from orchestrator.resources.groups.member_removal import entries, named, skip_list

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def no_references():
    raise AssertionError("not asked for")


def skipped(listed, kept=(), mode="append", members=("0", "1", "2"), by_reference=dict, **options):
    return skip_list(listed, kept, mode, members=members, by_reference=by_reference, **options)


def test_members_are_named_by_name_by_number_and_by_reference():
    references = {"id-1": "1"}
    assert skipped(["0"], by_reference=no_references) == ["0"]
    assert skipped([2], by_reference=no_references) == ["2"]
    assert skipped(["id-1"], by_reference=lambda: references) == ["1"]


def test_unknown_members_are_ignored_or_refused():
    assert skipped(["7", 8, "id-9", 0]) == ["0"]
    with pytest.raises(ProviderError, match=r"^not among the members of the group: 7, 8, id-9$"):
        skipped(["7", 8, "id-9", 0], strict=True)


def test_before_there_are_members_every_name_is_skipped():
    assert skipped(["7", 3, "x"], members=None, strict=True) == ["3", "7", "x"]


def test_skipped_members_stay_skipped_unless_the_list_is_replaced():
    assert skipped(["0"], kept=["5"]) == ["0", "5"]
    assert skipped(["0"], kept=["5"], mode="update") == ["0"]
    assert skipped(["5"], kept=["5", "6"], mode="update") == ["5"]
    assert skipped([], kept=["5"], mode="update") == []
    assert skipped(["5"], kept=["5"], strict=True) == ["5"]


def test_removal_policies_may_be_empty_or_several():
    assert entries([{"resource_list": ["a"]}, {}, {"resource_list": None}, {"resource_list": [1]}]) == [
        "a",
        1,
    ]


def test_members_to_delete_are_found_or_none_is_deleted():
    references = {"id-1": "b"}
    assert named(["a", "id-1", "b"], ["a", "b"], lambda: references) == ["a", "b"]
    with pytest.raises(ProviderError, match=r"^not among the members of the group: x$"):
        named(["a", "x"], ["a", "b"], lambda: references)


@pytest.mark.parametrize(
    ("current", "amount", "kind", "step", "wanted"),
    [
        (3, 1, "change_in_capacity", None, 4),
        (3, -1, "change_in_capacity", None, 2),
        (3, 1.9, "change_in_capacity", None, 4),
        (3, -9, "change_in_capacity", None, 1),
        (3, 99, "change_in_capacity", None, 50),
        (3, 5, "exact_capacity", None, 5),
        (3, 0, "exact_capacity", None, 1),
        (3, 10, "percent_change_in_capacity", None, 4),
        (3, -10, "percent_change_in_capacity", None, 2),
        (15, 10, "percent_change_in_capacity", None, 16),
        (25, 10, "percent_change_in_capacity", None, 27),
        (25, -10, "percent_change_in_capacity", None, 23),
        (10, 200, "percent_change_in_capacity", None, 30),
        (10, 10, "percent_change_in_capacity", 3, 13),
        (10, -10, "percent_change_in_capacity", 3, 7),
        (10, 50, "percent_change_in_capacity", 3, 15),
        (10, 0, "percent_change_in_capacity", 3, 10),
        (10, 1, "change_in_capacity", 3, 11),
    ],
)
def test_an_adjustment_leads_to_a_size_within_bounds(current, amount, kind, step, wanted):
    assert new_capacity(current, amount, kind, min_step=step, least=1, most=50) == wanted


@given(
    st.integers(0, 100),
    st.integers(-300, 300) | st.floats(-300, 300),
    st.sampled_from(list(capacity.CFN_ADJUSTMENTS.values())),
    st.none() | st.integers(0, 20),
    st.integers(0, 50),
    st.integers(0, 50),
)
def test_no_adjustment_leads_out_of_bounds_or_the_other_way(current, amount, kind, step, least, more):
    most = least + more
    size = new_capacity(current, amount, kind, min_step=step, least=least, most=most)
    assert isinstance(size, int)
    assert least <= size <= most
    if kind != "exact_capacity" and least <= current <= most:
        assert (size - current) * amount >= 0


def test_a_group_cools_down_after_scaling():
    reported = finished(begun({"mine": 1}), 60, "change_in_capacity : 1", NOW)
    assert reported == {
        "mine": 1,
        "scaling_in_progress": False,
        "cooldown_end": {"2026-11-20T12:01:00.000000": "change_in_capacity : 1"},
    }
    assert cooldown_end(reported) == "2026-11-20T12:01:00.000000"


def test_a_shorter_cooldown_does_not_end_a_longer_cooldown():
    long = finished({}, 600, "first", NOW)
    assert cooldown_end(finished(long, 1, "second", NOW)) == cooldown_end(long)
    now = "2026-11-20T12:00:00.000000"
    assert cooldown_end(finished({}, None, "first", NOW)) == now
    assert cooldown_end(finished({}, -5, "first", NOW)) == now
    assert cooldown_end({}) == ""
