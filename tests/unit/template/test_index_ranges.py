"""Sets of numbers as ranges behave like sets, and their cost depends on the number of ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.template.index_ranges import Ordinals

NUMBERS = st.sets(st.integers(0, 30))


@given(NUMBERS, NUMBERS)
def test_they_combine_as_sets_do(one, other):
    a, b = Ordinals.of(one), Ordinals.of(other)
    assert set(a | b) == one | other
    assert set(a - b) == one - other
    assert set(a & b) == one & other
    assert list(a) == sorted(one)
    assert len(a) == len(one)
    assert bool(a) == bool(one)
    assert (a == b) == (one == other)
    assert a.beyond == max(one, default=-1) + 1
    assert all((number in a) == (number in one) for number in range(-1, 32))


@given(NUMBERS, st.integers(-1, 40))
def test_head_and_tail_are_the_lowest_and_the_highest(numbers, count):
    a, recorded = Ordinals.of(numbers), sorted(numbers)
    assert list(a.head(count)) == recorded[: max(count, 0)]
    assert list(a.tail(count)) == (recorded[-count:] if count > 0 else [])


@given(NUMBERS)
def test_written_values_are_read_again(numbers):
    a = Ordinals.of(numbers)
    assert Ordinals.parse(a.text()) == a


def test_a_million_in_a_row_are_few_characters():
    assert Ordinals.span(0, 1_000_000).text() == "0-999999"
    assert (Ordinals.span(0, 1_000_000) - Ordinals.of([5])).text() == "0-4,6-999999"


@pytest.mark.parametrize("text", ["a", "3-1", "1,0", "-1", "1-", "1,,2", " 1", "9" * 19])
def test_invalid_ranges_are_refused(text):
    with pytest.raises(ValueError, match=r"range"):
        Ordinals.parse(text)


def test_texts_that_are_not_numbers_are_not_in_a_set():
    assert "1" not in Ordinals.of([1])


def test_a_span_beyond_all_limits_can_be_counted_and_parsed():
    span = Ordinals.span(0, 2**63)
    assert len(span) == 10**18
    assert Ordinals.parse(span.text()) == span
