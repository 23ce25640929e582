"""Batches of a group: every way through them keeps enough untouched, and ends as wanted."""

from __future__ import annotations

from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ProviderError
from orchestrator.resources.groups.member_removal import free, numbered, remaining
from orchestrator.resources.groups.rolling_update import Group, Policy, batches, check_pauses
from orchestrator.template.index_ranges import Ordinals

NONE = Ordinals()
MOST_STEPS = 40


def numbered_spares(taken: Ordinals, count: int) -> Ordinals:
    return free(count, taken)


def young_spares(taken: Ordinals, count: int) -> Ordinals:
    return Ordinals.span(taken.beyond, taken.beyond + count)


def run(present, renewed, expected, policy, spare=numbered_spares, lowest_first=False):
    """Return all intermediate states of the group, after checking the bounds of each step."""
    group = Group(Ordinals.of(present), Ordinals.of(renewed))
    target = Ordinals.of(expected)
    way = [group]
    for after in islice(batches(group, target, policy, spare, lowest_first=lowest_first), MOST_STEPS):
        before, now = set(group.present), set(after.present)
        made = now - before
        assert set(after.renewed) <= now
        assert made <= set(after.renewed)
        changed = (set(after.renewed) & before) - set(group.renewed)
        untouched = (before & now) - changed
        assert len(made) + len(changed) <= max(policy.batch, 1)
        assert len(untouched) >= min(policy.min_in_service, len(target), len(before))
        assert not (set(group.renewed) & now) - set(after.renewed), "nothing turns old again"
        assert (now, set(after.renewed)) != (before, set(group.renewed)), "every step gets somewhere"
        way.append(after)
        group = after
    assert set(group.present) == set(target)
    assert set(group.renewed) == set(target)
    return way


@pytest.mark.parametrize("target", range(7))
def test_the_matrix_of_batches_never_goes_below_and_ends_as_wanted(target):
    for current, batch, least in product(range(7), repeat=3):
        way = run(range(current), (), range(target), Policy(batch, least))
        beyond = max(len(group.present) for group in way)
        assert beyond <= max(current, target) + max(batch, 1)


@given(
    st.sets(st.integers(0, 12), max_size=7),
    st.sets(st.integers(0, 12), max_size=7),
    st.sets(st.integers(0, 12), max_size=7),
    st.builds(Policy, st.integers(0, 4), st.integers(0, 7)),
    st.booleans(),
    st.booleans(),
)
def test_any_interrupted_state_converges_to_the_template(present, renewed, wanted, policy, young, lowest):
    spare = young_spares if young else numbered_spares
    run(present, renewed & present, wanted, policy, spare, lowest_first=lowest)


@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 6), st.integers(0, 6))
def test_the_youngest_of_a_group_that_keeps_no_names_end_new(current, target, batch, least):
    """Each step computes the desired members again: the temporary members are younger and stay."""
    group = Group(Ordinals.span(0, current), NONE)
    for _ in range(MOST_STEPS):
        expected = remaining(group.present, target)
        expected |= young_spares(group.present, target - len(expected))
        after = next(batches(group, expected, Policy(batch, least), young_spares, lowest_first=True), None)
        if after is None:
            break
        untouched = (group.present & after.present) - (after.renewed - group.renewed)
        assert len(untouched) >= min(least, target, len(group.present))
        group = after
    assert len(group.present) == target
    assert group.renewed == group.present


def shown(way):
    return [(group.present.text(), group.renewed.text()) for group in way]


def test_the_highest_are_renewed_first():
    way = run(range(3), (), range(3), Policy(1))
    assert shown(way) == [("0-2", ""), ("0-2", "2"), ("0-2", "1-2"), ("0-2", "0-2")]


def test_missing_members_are_created_before_old_members_are_updated():
    way = run([0, 2], (), range(3), Policy(1))
    assert way[1].renewed.text() == "1"


def test_temporary_members_are_created_if_none_can_be_spared_and_deleted_afterwards():
    way = run(range(2), (), range(2), Policy(1, 2))
    assert shown(way) == [("0-1", ""), ("0-2", "2"), ("0-2", "1-2"), ("0-2", "0-2"), ("0-1", "0-1")]


def test_a_group_created_in_batches_is_made_from_the_first_on():
    way = run((), (), range(5), Policy(2))
    assert [group.present.text() for group in way] == ["", "0-1", "0-3", "0-4"]


def test_a_million_members_are_no_million_steps_to_think_of():
    group = Group(Ordinals.span(0, 1_000_000), NONE)
    steps = list(batches(group, group.present, Policy(100_000, 950_000), numbered_spares))
    assert 10 <= len(steps) <= 22


def test_pauses_that_leave_no_time_are_refused():
    def steps():
        return batches(Group(NONE, NONE), Ordinals.span(0, 4), Policy(1), numbered_spares)

    check_pauses(steps(), Policy(1, 0, 19.9), 60)  # three pauses between four batches
    check_pauses(steps(), Policy(1, 0, 0), 0)
    with pytest.raises(
        ProviderError, match=r"^The current update policy will result in stack update timeout\.$"
    ):
        check_pauses(steps(), Policy(1, 0, 20), 60)


def test_pauses_are_not_counted_further_than_needed():
    many = batches(Group(NONE, NONE), Ordinals.span(0, 10**9), Policy(1), numbered_spares)
    with pytest.raises(ProviderError):
        check_pauses(many, Policy(1, 0, 60), 3600)


def test_numbers_are_the_first_that_are_not_skipped():
    assert list(free(3, NONE)) == [0, 1, 2]
    assert list(free(3, numbered(["0", "2", "x", "07", "-1", "", "9" * 30]))) == [1, 3, 4]
    assert not free(0, Ordinals.of([4]))


def test_server_names_scale_from_none_to_three_to_one_to_three():
    sizes = [0, 3, 1, 3]
    assert [list(free(size, NONE)) for size in sizes] == [[], [0, 1, 2], [0], [0, 1, 2]]


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ({}, "3-4"),
        ({"victims": "newest"}, "0-1"),
        ({"first": [Ordinals.of([4])]}, "2-3"),
        ({"first": [Ordinals.of([0, 4])], "victims": "newest"}, "1-2"),
        ({"first": [Ordinals.of([4]), Ordinals.of([2, 3])]}, "0-1"),
        ({"outdated": Ordinals.of([1, 3])}, "3-4"),
        ({"outdated": Ordinals.of([1, 3, 4]), "victims": "outdated"}, "0,2"),
        ({"outdated": Ordinals.of([3]), "victims": "outdated"}, "2,4"),
        ({"first": [Ordinals.span(0, 5)]}, "3-4"),
    ],
)
def test_the_failed_go_first_and_then_whom_the_policy_says(more, left):
    assert remaining(Ordinals.span(0, 5), 2, **more).text() == left


def test_no_member_is_deleted_within_the_maximum():
    group = Ordinals.span(0, 3)
    assert remaining(group, 3, first=[group], outdated=group, victims="outdated") == group
    assert remaining(group, 7) == group
