"""Adjustments of a group that are combined into a single change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.groups.adjustments import Adjustment, Bounds, Combination, Cooldown
from orchestrator.resources.groups.capacity import stamp
from orchestrator.template.index_ranges import Ordinals

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def named(names):
    if "x" in names:
        raise ProviderError("not among the members of the group: x")
    return Ordinals.of(int(name) for name in names)


def combination(size=4, *, failed=(), stuck=(), least=1, most=8, until="", seconds=None):
    present, cooldown = Ordinals.span(0, size), Cooldown(until, seconds)
    bounds, broken = Bounds(least, most, None), Ordinals.of([*failed, *stuck])
    return Combination(present, Ordinals.of(failed), broken, bounds, cooldown, NOW, named)


def exact(size):
    return Adjustment(size, "exact_capacity")


def percent(amount, step=None):
    return Adjustment(amount, "percent_change_in_capacity", step)


def remove(*members):
    return Adjustment(remove=tuple(members))


def reasons(rejections):
    return [None if rejection is None else rejection.reason for rejection in rejections]


@pytest.mark.parametrize(
    ("adjustments", "size"),
    [
        ([Adjustment(1), Adjustment(1), Adjustment(-1)], 5),
        ([Adjustment(3), exact(2)], 2),
        ([exact(6), percent(50)], 8),
        ([percent(50), Adjustment(1)], 7),
        ([remove("0"), Adjustment(1)], 4),
        ([Adjustment(1), remove("0")], 4),
        ([remove("0"), remove("0", "1")], 2),
        ([Adjustment(9), Adjustment(-1)], 7),
    ],
)
def test_adjustments_apply_in_order(adjustments, size):
    combined = combination()
    assert combined.apply_all(adjustments) == [None] * len(adjustments)
    assert combined.size == size


def test_adjustments_beyond_the_bounds_are_rejected():
    combined = combination(7)
    at_maximum, at_minimum = "at its maximum of 8 members", "at its minimum of 1 member"
    assert reasons(combined.apply_all([Adjustment(1), Adjustment(1), exact(9), percent(1)])) == [
        None,
        at_maximum,
        at_maximum,
        at_maximum,
    ]
    adjustments = [exact(1), Adjustment(-1), exact(0), exact(1), Adjustment(0)]
    assert reasons(combined.apply_all(adjustments)) == [
        None,
        at_minimum,
        at_minimum,
        "it has 1 member already",
        "it has 1 member already",
    ]


def test_the_cooldown_of_an_adjustment_applies_to_the_next():
    combined = combination(seconds=60)
    until = stamp(NOW + timedelta(seconds=60))
    rejection = f"cooldown until {until}Z"
    rejections = combined.apply_all([Adjustment(1), Adjustment(1), remove("0")])
    assert reasons(rejections) == [None, rejection, rejection]
    combined = combination(until=stamp(NOW))
    rejections = combined.apply_all([Adjustment(1, cooldown=0), Adjustment(1, cooldown=9), Adjustment(1)])
    assert [rejection is None for rejection in rejections] == [True, True, False]
    assert combined.size == 6


def test_a_reduction_counts_failed_members_and_a_growth_does_not():
    combined = combination(3, failed=[2])
    assert combined.apply_all([Adjustment(-1)]) == [None]
    assert combined.size == 2
    combined = combination(3, failed=[2])
    assert combined.apply_all([Adjustment(1), Adjustment(-1), Adjustment(-1)]) == [None] * 3
    assert combined.size == 1
    assert reasons(combination(2, failed=[1], least=2).apply_all([Adjustment(-1)])) == [
        "at its minimum of 2 members"
    ]


def test_an_invalid_request_does_not_affect_the_others():
    combined = combination(2)
    first, invalid, last = combined.apply_all([Adjustment(1), remove("x"), Adjustment(1)])
    assert (first, last, combined.size) == (None, None, 4)
    assert invalid is not None
    assert invalid.failed


def test_members_out_of_service_are_removed_during_the_cooldown():
    until = stamp(NOW + timedelta(seconds=60))
    combined = combination(3, failed=[1], stuck=[2], least=2, until=until)
    assert combined.apply_all([remove("1", "2")]) == [None]
    assert (combined.size, combined.removed.text()) == (2, "1-2")
    assert reasons(combined.apply_all([remove("0")])) == [f"cooldown until {until}Z"]
