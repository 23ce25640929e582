"""Several threads send the same request at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from orchestrator.store.connections.batching import MAX_BATCH, Batcher


class Slow:
    """Doubles numbers, refuses some; holds its first caller until it is let go."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.asked.append(list(numbers))
        self.begun.set()
        assert self.go_on.wait(10)
        if 13 in numbers:
            raise ValueError("13")
        if 99 in numbers:
            raise psycopg.OperationalError("gone")
        return [2 * number for number in numbers]


def ask(slow: Slow, first: int, other_items: Sequence[int]) -> list[object]:
    """Return the results: the first request runs alone, the rest join while it is running."""
    batch = Batcher(slow)

    def one(number: int) -> object:
        try:
            return batch(number)
        except Exception as error:
            return repr(error)

    with ThreadPoolExecutor(1 + len(other_items)) as pool:
        reported = [pool.submit(one, first)]
        assert slow.begun.wait(10)
        for number in other_items:
            reported.append(pool.submit(one, number))
            while len(batch._queue) < len(reported) - 1:  # in this order
                pass
        slow.go_on.set()
        return [each.result(10) for each in reported]


def test_a_single_request_runs_at_once_and_concurrent_requests_are_batched() -> None:
    slow = Slow()
    assert ask(slow, 1, [2, 3, 4]) == [2, 4, 6, 8]
    assert slow.asked == [[1], [2, 3, 4]]


def test_there_is_a_most_that_goes_together() -> None:
    slow = Slow()
    other_items = list(range(1000, 1000 + MAX_BATCH + 5))
    assert ask(slow, 1, other_items) == [2, *(2 * number for number in other_items)]
    assert [len(numbers) for numbers in slow.asked] == [1, MAX_BATCH, 5]


def test_a_failing_request_does_not_affect_the_rest_of_its_batch() -> None:
    slow = Slow()
    assert ask(slow, 1, [2, 13, 4]) == [2, 4, "ValueError('13')", 8]


def test_a_missing_server_is_reported_to_all_deployments_and_requested_once() -> None:
    slow = Slow()
    assert ask(slow, 1, [2, 99, 4]) == [2, *["OperationalError('gone')"] * 3]
    assert slow.asked == [[1], [2, 99, 4]]


def test_it_goes_on_after_a_refusal() -> None:
    slow = Slow()
    slow.go_on.set()
    batch = Batcher(slow)
    with pytest.raises(ValueError, match="13"):
        batch(13)
    assert batch(1) == 2
