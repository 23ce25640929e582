"""The time of the next round, and the loss of many objects at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.observation.rounds import is_mass_loss, next_interval, pause

durations = st.floats(0, 1_000)


def test_intervals_are_short_after_news_and_grow_in_quiet_rounds():
    course = [0.0]
    for news in (False, False, False, False, True, False):
        course.append(next_interval(course[-1], 5.0, 30.0, news=news))
    assert course[1:] == [5.0, 10.0, 20.0, 30.0, 5.0, 10.0]


@given(durations, st.floats(0.1, 60), st.floats(0.1, 600), st.booleans())
def test_an_interval_never_exceeds_the_longest(previous, shortest, longest, news):
    assert next_interval(previous, shortest, longest, news=news) <= longest


@given(durations, durations, st.floats(0, 1, exclude_max=True))
def test_a_round_takes_a_small_share_of_the_time(interval, duration, random):
    assert pause(interval, duration, random) >= duration * 20 * 0.9 - 1e-6


@pytest.mark.parametrize(
    ("lost", "observed", "expected"),
    [(4, 4, False), (5, 25, False), (5, 24, True), (6, 25, True), (100, 10_000, False), (0, 0, False)],
)
def test_the_loss_of_many_objects_is_noticed(lost, observed, expected):
    assert is_mass_loss(lost, observed) is expected
