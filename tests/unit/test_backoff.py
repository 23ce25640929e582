"""The pause doubles up to a bound; jitter spreads it within the documented range."""

from __future__ import annotations

import pytest

from orchestrator.backoff import backoff_seconds


def test_the_pause_doubles_from_a_second_to_the_maximum():
    assert [backoff_seconds(tries, 60.0) for tries in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_any_number_of_tries_yields_the_bound():
    assert backoff_seconds(100_000, 3_600.0) == 3_600.0


@pytest.mark.parametrize("tries", [0, 3, 50])
def test_a_fraction_of_the_pause_is_random(tries):
    full = backoff_seconds(tries, 60.0)
    pauses = [backoff_seconds(tries, 60.0, jitter_fraction=0.5) for _ in range(200)]
    assert full / 2 <= min(pauses) < max(pauses) <= full


@pytest.mark.parametrize("tries", [0, 3, 50])
def test_extra_jitter_is_added_to_the_bounded_pause(tries):
    full = backoff_seconds(tries, 60.0)
    pauses = [backoff_seconds(tries, 60.0, extra_jitter=2.0) for _ in range(200)]
    assert full <= min(pauses) < max(pauses) <= full + 2.0
