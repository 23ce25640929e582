"""Turns: a project has a few requests that compute at the same time, and delays no other project."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from typing import Any

import pytest

from api.middleware import in_flight
from api.middleware import turns as requests
from api.middleware.turns import Turns
from orchestrator.config import Settings
from orchestrator.operations.runtime import turns
from orchestrator.operations.runtime.turns import ALONE, SHARED
from orchestrator.rate_errors import TooManyConcurrentRequests
from orchestrator.security.caller import Caller

SECONDS = 20.0


class Api:
    """The middleware around requests that compute until the test ends them."""

    def __init__(self) -> None:
        self.wrapped = Turns(self._answer)
        self.computing: Queue[str] = Queue()
        self.over = threading.Event()
        self.pool = ThreadPoolExecutor(32)

    def send(self, project: str, **environ: Any) -> Any:
        """Start a request."""
        return self.pool.submit(self.wrapped, {"project": project, **environ}, None)  # type: ignore[arg-type]

    def _answer(self, environ: dict[str, Any], _: object) -> Iterable[bytes]:
        requests.begin(environ, environ["project"])
        begun = time.thread_time()
        turns.count_bytes(environ.get("size", 0))
        self.computing.put(environ["project"])
        while time.thread_time() - begun < environ.get("computes", 0.0):
            pass
        while environ.get("passes") and not self.over.is_set():
            turns.pass_on()
        if environ.get("fails"):
            raise RuntimeError
        if environ.get("waits"):
            with turns.paused():
                assert self.over.wait(SECONDS)
        elif not environ.get("short"):
            assert self.over.wait(SECONDS)
        return [b""]


@contextmanager
def serving() -> Iterator[Api]:
    api = Api()
    with api.pool:
        try:
            yield api
        finally:
            api.over.set()


def test_further_requests_of_a_project_wait_and_other_projects_compute() -> None:
    with serving() as api:
        answers = [api.send("hostile") for _ in range(ALONE + 3)]
        computing = [api.computing.get(timeout=SECONDS) for _ in range(ALONE)]
        assert api.send("other", short=True).result(SECONDS) == [b""]
        assert api.computing.get(timeout=SECONDS) == "other"
        assert computing == ["hostile"] * ALONE
        assert api.computing.empty()
        api.over.set()
        assert [answer.result(SECONDS) for answer in answers] == [[b""]] * len(answers)


def test_a_project_has_fewer_turns_while_other_projects_send_requests() -> None:
    with serving() as api:
        assert api.send("other", short=True).result(SECONDS) == [b""]
        answers = [api.send("hostile") for _ in range(ALONE)]
        assert api.computing.get(timeout=SECONDS) == "other"
        computing = [api.computing.get(timeout=SECONDS) for _ in range(SHARED)]
        assert api.send("other", short=True).result(SECONDS) == [b""]
        assert [*computing, api.computing.get(timeout=SECONDS)] == ["hostile"] * SHARED + ["other"]
        api.over.set()
        assert [answer.result(SECONDS) for answer in answers] == [[b""]] * ALONE


def test_a_project_with_expensive_requests_uses_a_part_of_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "CREDIT_SECONDS", 0.0)
    with serving() as api:
        assert api.send("other", short=True).result(SECONDS) == [b""]
        begun = time.monotonic()
        for _ in range(3):
            api.send("hostile", short=True, computes=0.1).result(SECONDS)
        assert time.monotonic() - begun > 0.5  # three computations, two delays
        api.wrapped.turns.charge("hostile", 0.1)  # waits for 0.5 seconds, then for twice as long
        delay = api.wrapped.turns.delay
        first, second = delay("hostile"), delay("hostile")
        assert second[0] > first[0] > 0
        assert delay("other") == (0, 0)


def test_requests_that_wait_for_the_database_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CREDIT_SECONDS", 0.0)
    monkeypatch.setattr(turns, "WAIT_WEIGHT", 1e9)
    with serving() as api:
        assert api.send("other", short=True).result(SECONDS) == [b""]
        waiting = api.send("hostile")
        assert api.computing.get(timeout=SECONDS) == "other"
        assert api.computing.get(timeout=SECONDS) == "hostile"
        api.over.set()
        assert waiting.result(SECONDS) == [b""]
        assert api.wrapped.turns.delay("hostile")[0] > 0.5


def test_large_bodies_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CREDIT_SECONDS", 0.0)
    with serving() as api:
        assert api.send("other", short=True).result(SECONDS) == [b""]
        assert api.send("hostile", short=True, size=turns.BYTES_PER_SECOND // 4).result(SECONDS) == [b""]
        assert api.wrapped.turns.delay("hostile")[0] > 1.0  # 0.25 / SHARE, minus the time until now
        assert api.wrapped.turns.delay("other")[0] < 0.1


def test_long_computations_leave_turns_to_further_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    with serving() as api:
        computing = [api.send("p", passes=True) for _ in range(ALONE)]
        for _ in computing:
            api.computing.get(timeout=SECONDS)
        assert api.send("p", short=True).result(SECONDS) == [b""]
        api.over.set()
        assert [answer.result(SECONDS) for answer in computing] == [[b""]] * ALONE


def test_the_parts_of_a_streamed_response_are_computed_in_turns() -> None:
    held: list[bool] = []

    def parts() -> Iterator[bytes]:
        for part in (b"a", b"b", b"c"):
            held.append(turns.project() == "p")
            yield part

    def app(environ: dict[str, Any], _: object) -> Iterable[bytes]:
        requests.begin(environ, "p")
        return parts()

    wrapped = Turns(app)  # type: ignore[arg-type]
    for part in wrapped({}, None):  # type: ignore[arg-type]
        assert part in {b"a", b"b", b"c"}
        assert turns.project() is None
        for _ in range(ALONE):  # no turn is held while a part is sent
            wrapped.turns.slots.acquire("p", 0.0)
        for _ in range(ALONE):
            wrapped.turns.slots.release("p")
    assert held == [True] * 3


def test_a_streamed_response_is_closed_with_its_client() -> None:
    closed = threading.Event()

    def parts() -> Iterator[bytes]:
        try:
            yield b"a"
            yield b"b"
        finally:
            closed.set()

    def app(environ: dict[str, Any], _: object) -> Iterable[bytes]:
        requests.begin(environ, "p")
        return parts()

    response = Turns(app)({}, None)  # type: ignore[arg-type]
    assert next(iter(response)) == b"a"
    response.close()  # type: ignore[attr-defined]
    assert closed.is_set()


def test_a_project_alone_is_not_delayed() -> None:
    with serving() as api:
        api.send("only", short=True, computes=0.1).result(SECONDS)
        assert api.wrapped.turns.delay("only") == (0, 0)


def test_the_delays_of_a_project_end_with_the_requests_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as api:
        assert api.send("other", short=True).result(SECONDS) == [b""]
        assert api.send("hostile", short=True).result(SECONDS) == [b""]
        api.wrapped.turns.charge("hostile", 1.0)
        assert api.wrapped.turns.delay("hostile")[0] > 0
        monkeypatch.setattr(turns, "RECENT_SECONDS", 0.0)
        api.wrapped.turns.note("hostile")
        assert api.wrapped.turns.delay("hostile") == (0, 0)


def test_the_delays_of_a_project_end_some_time_after_an_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    with serving() as api:
        assert api.send("other", short=True).result(SECONDS) == [b""]
        assert api.send("hostile", short=True).result(SECONDS) == [b""]
        for _ in range(100):
            api.wrapped.turns.charge("hostile", 100.0)
            assert api.wrapped.turns.delay("hostile")[0] == turns.MAX_DELAY_SECONDS
        monkeypatch.setattr(time, "monotonic", lambda: now + turns.MAX_DEBT_SECONDS + SECONDS)
        assert api.wrapped.turns.delay("hostile") == (0, 0)


def test_a_request_that_waits_for_a_server_computes_not() -> None:
    with serving() as api:
        waiting = [api.send("p", waits=True) for _ in range(ALONE)]
        for _ in waiting:
            api.computing.get(timeout=SECONDS)
        assert api.send("p", short=True).result(SECONDS) == [b""]
        api.over.set()
        assert [answer.result(SECONDS) for answer in waiting] == [[b""]] * ALONE


def test_a_request_that_waits_for_a_provider_has_no_turn() -> None:
    process = turns.Turns()

    def provider() -> bool:
        for _ in range(ALONE):  # none of them is taken by the request that waits
            process.slots.acquire("p", SECONDS)
        for _ in range(ALONE):
            process.slots.release("p")
        return True

    with ThreadPoolExecutor(1) as pool:
        turns.begin(process, "p")
        try:
            answer = pool.submit(provider)
            turns.await_answers([answer], SECONDS)
            assert answer.done()
            assert answer.result()
        finally:
            turns.end()


def test_a_failed_request_returns_its_turn() -> None:
    with serving() as api:
        for _ in range(ALONE + 1):
            with pytest.raises(RuntimeError):
                api.send("p", fails=True).result(SECONDS)


def test_a_turn_that_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.01)
    with serving() as api:
        computing = [api.send("p") for _ in range(ALONE)]
        for _ in computing:
            api.computing.get(timeout=SECONDS)
        with pytest.raises(TooManyConcurrentRequests, match="may have 4 concurrent requests in computation"):
            api.send("p").result(SECONDS)


def test_a_request_that_waited_before_its_authentication_does_not_wait_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: Queue[str] = Queue()
    over = threading.Event()

    def authenticate(environ: dict[str, Any], _: object) -> Iterable[bytes]:
        in_flight.identify(environ, Caller("p", "alice"), "p")
        monkeypatch.setattr(turns, "TURN_SECONDS", 10 * SECONDS)
        requests.begin(environ, "p")
        begun.put("p")
        assert environ.get("short") or over.wait(SECONDS)
        return [b""]

    api = in_flight.InFlight(Turns(authenticate), Settings())  # type: ignore[arg-type]

    def send(**environ: Any) -> None:
        api({"HTTP_X_AUTH_TOKEN": "known", "PATH_INFO": "/v1/p/stacks", **environ}, None).close()  # type: ignore[arg-type, attr-defined]

    send(short=True)
    assert begun.get(timeout=SECONDS) == "p"
    with ThreadPoolExecutor(ALONE + 1) as pool:
        try:
            sent = [pool.submit(send) for _ in range(ALONE)]
            for _ in sent:
                begun.get(timeout=SECONDS)
            monkeypatch.setattr(turns, "TURN_SECONDS", 0.01)
            with pytest.raises(TooManyConcurrentRequests):
                pool.submit(send).result(SECONDS)
        finally:
            over.set()
        for request in sent:
            request.result(SECONDS)


def test_a_turn_of_a_known_project_includes_the_authentication() -> None:
    begun: Queue[str] = Queue()
    over = threading.Event()

    def authenticate(environ: dict[str, Any], _: object) -> Iterable[bytes]:
        begun.put(environ["HTTP_X_AUTH_TOKEN"])
        in_flight.identify(environ, Caller("p", "alice"), "p")
        requests.begin(environ, "p")
        assert environ.get("short") or over.wait(SECONDS)
        return [b""]

    api = in_flight.InFlight(Turns(authenticate), Settings())  # type: ignore[arg-type]

    def send(token: str, **environ: Any) -> None:
        api({"HTTP_X_AUTH_TOKEN": token, "PATH_INFO": "/v1/p/stacks", **environ}, None).close()  # type: ignore[arg-type, attr-defined]

    send("known", short=True)
    assert begun.get(timeout=SECONDS) == "known"
    with ThreadPoolExecutor(ALONE + 2) as pool:
        try:
            sent = [pool.submit(send, "known") for _ in range(ALONE + 1)]
            assert [begun.get(timeout=SECONDS) for _ in range(ALONE)] == ["known"] * ALONE
            sent.append(pool.submit(send, "unknown"))
            assert begun.get(timeout=SECONDS) == "unknown"
            assert begun.empty()
        finally:
            over.set()
        for request in sent:
            request.result(SECONDS)
