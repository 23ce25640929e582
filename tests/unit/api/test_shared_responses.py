"""Responses shared by pages that are refreshed at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import cast

import pytest
from flask import Response

from api.streaming.hub import EventHub
from api.streaming.shared_responses import MAX_AGE_SECONDS, MAX_KEPT_BYTES, SharedResponses
from orchestrator.store.events.stream import Position


class Events:
    """How far events were distributed, as the hub says it."""

    position: Position | None = Position(7, 0)


class Reads:
    """A view that numbers its reads."""

    def __init__(self) -> None:
        self.now = 0.0
        self.numbers = count(1)
        self.events = Events()
        self.responses = SharedResponses(cast(EventHub, self.events), lambda: self.now)

    def get(self, *key: str, status: int = 200, size: int = 0) -> bytes:
        def view() -> Response:
            return Response(f"{next(self.numbers)}".ljust(size), status, mimetype="application/json")

        response = self.responses.get(key, view)
        assert response.mimetype == "application/json"
        return response.get_data()


def test_a_response_is_shared_until_events_are_distributed() -> None:
    reads = Reads()
    assert [reads.get("list"), reads.get("list"), reads.get("other")] == [b"1", b"1", b"2"]
    reads.events.position = Position(7, 1)
    assert [reads.get("list"), reads.get("list")] == [b"3", b"3"]


def test_a_response_is_shared_for_a_short_time() -> None:
    reads = Reads()
    assert reads.get("list") == b"1"
    reads.now = MAX_AGE_SECONDS - 0.01
    assert reads.get("list") == b"1"
    reads.now = MAX_AGE_SECONDS
    assert reads.get("list") == b"2"


def test_nothing_is_shared_while_no_events_are_distributed() -> None:
    reads = Reads()
    reads.events.position = None
    assert [reads.get("list"), reads.get("list")] == [b"1", b"2"]


def test_errors_and_large_responses_are_not_shared() -> None:
    reads = Reads()
    assert [reads.get("list", status=404), reads.get("list")] == [b"1", b"2"]
    large = MAX_KEPT_BYTES + 1
    assert reads.get("large", size=large) != reads.get("large", size=large)


def test_an_error_leaves_the_next_request_alone() -> None:
    reads = Reads()

    def fail() -> Response:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        reads.responses.get(("list",), fail)
    assert reads.get("list") == b"1"


def test_simultaneous_requests_read_once() -> None:
    reads, together = Reads(), threading.Barrier(4)

    def request() -> bytes:
        together.wait(10)
        return reads.get("list")

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(request) for _ in range(4)]
    assert {each.result() for each in found} == {b"1"}


def test_events_during_a_read_end_its_sharing() -> None:
    reads = Reads()

    def view() -> Response:
        reads.events.position = Position(8, 0)  # after the read began
        return Response("old")

    assert reads.responses.get(("list",), view).get_data() == b"old"
    assert reads.get("list") == b"1"
