"""The budget of a service: its size and its order."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.clients.openstack.session import budget as budget_module
from orchestrator.clients.openstack.session.budget import MAX_WAITING, Budget
from orchestrator.clients.openstack.session.concurrency_limit import ConcurrencyLimit
from orchestrator.errors import AwaitingBudget

SECONDS = 60.0  # of a call: its share is longer than any wait of these tests


def until(condition: object) -> None:
    end = time.monotonic() + 20
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.005)


class Run:
    """Requests in threads, each held until it is released; `order` are their names as they begin."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.order, self.refused = budget, [], []
        self.threads = ThreadPoolExecutor(40)
        self.gates: dict[str, threading.Event] = {}

    def start(
        self,
        owner: str,
        name: str,
        *,
        changes: bool = True,
        seconds: float = SECONDS,
        background: bool = False,
    ) -> None:
        before, refused = self.budget.waiting, len(self.refused)
        self.gates[name] = threading.Event()
        self.threads.submit(self._request, owner, name, changes, seconds, background)
        until(lambda: name in self.order or len(self.refused) > refused or self.budget.waiting > before)

    def _request(self, owner: str, name: str, changes: bool, seconds: float, background: bool) -> None:
        try:
            with self.budget.place(owner, changes=changes, kind="x", seconds=seconds, background=background):
                self.order.append(name)
                self.gates[name].wait(20)
        except AwaitingBudget:
            self.refused.append(name)

    def release(self, name: str, expected: str) -> None:
        """End a request; the next one to begin is `expected`."""
        number = len(self.order)
        self.gates[name].set()
        until(lambda: len(self.order) > number)
        assert self.order[-1] == expected

    def end(self) -> None:
        for gate in self.gates.values():
            gate.set()
        self.threads.shutdown()


@pytest.fixture
def run():
    run = Run(Budget("nova", ConcurrencyLimit(2, 2)))
    yield run
    run.end()


def test_the_stack_with_the_fewest_requests_is_next(run: Run) -> None:
    run.start("large", "l1")
    run.start("large", "l2")
    for name in ("l3", "l4", "l5"):
        run.start("large", name)
    run.start("small", "s1")
    run.release("l1", "s1")
    run.release("l2", "l3")
    run.release("s1", "l4")


def test_the_observation_is_last(run: Run) -> None:
    run.start("a", "1")
    run.start("a", "2")
    run.start("", "observation", changes=False, background=True)
    run.start("a", "read", changes=False)
    run.start("b", "change")
    run.release("1", "change")
    run.release("2", "read")
    run.release("change", "observation")


def test_a_change_is_before_a_read(run: Run) -> None:
    run.start("a", "1")
    run.start("a", "2")
    run.start("b", "read", changes=False)
    run.start("a", "change")
    run.release("1", "change")
    run.release("2", "read")


def test_a_request_waits_a_few_seconds_and_is_refused(run: Run) -> None:
    run.start("a", "1")
    run.start("a", "2")
    with (
        pytest.raises(AwaitingBudget, match="waiting for nova's budget") as caught,
        run.budget.place("b", changes=True, kind="x", seconds=0.1),
    ):
        pass
    assert caught.value.retry_after
    assert run.budget.waiting == 0


def test_an_operation_is_not_begun_while_requests_of_its_stack_wait_for_long(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def require(owner: str, longest: float) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(budget_module, "WAIT_SECONDS", longest)
            run.budget._require_short_wait(owner)

    monkeypatch.setattr(budget_module, "WAIT_SECONDS", SECONDS)
    run.start("large", "l1")
    run.start("large", "l2")
    time.sleep(0.02)  # the duration of a request, which is measured
    run.start("large", "l3")
    run.release("l1", "l3")
    require("large", 0.0001)  # none waits
    run.start("large", "l4")
    require("large", SECONDS)  # the wait is short
    with pytest.raises(AwaitingBudget) as refused:
        require("large", 0.0001)
    assert refused.value.retry_after is not None
    require("small", 0.0001)  # its request is the next


def test_requests_of_an_operation_use_its_reserved_place(run: Run) -> None:
    run.start("a", "1")
    with run.budget.reserved("b"):
        for name in ("read", "change"):
            with run.budget.place("b", changes=name == "change", kind="x", seconds=0.0, reserved=True):
                run.order.append(name)
        run.start("a", "2")  # waits: both places are occupied
        assert run.order == ["1", "read", "change"]
    until(lambda: run.order[-1] == "2")


def test_an_operation_without_a_place_is_not_begun(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "WAIT_SECONDS", 0.05)
    run.start("a", "1")
    run.start("a", "2")
    with pytest.raises(AwaitingBudget), run.budget.reserved("b"):
        pass
    run.gates["1"].set()
    with run.budget.reserved("b"):
        pass
    assert run.budget.waiting == 0


def test_a_stack_with_many_waiting_requests_yields_to_another(run: Run) -> None:
    for number in range(2 + MAX_WAITING):
        run.start("large", str(number))
    run.start("small", "s")
    assert run.refused == [str(1 + MAX_WAITING)]
    run.start("large", "more")
    assert run.refused[1:] == ["more"]
    run.release("0", "s")


def test_requests_that_a_user_waits_for_are_not_refused_before_their_deadline(run: Run) -> None:
    run.start("a", "1")
    run.start("a", "2")
    for number in range(2 * MAX_WAITING):
        run.start("", f"u{number}", changes=False)
    assert run.budget.waiting == 2 * MAX_WAITING
    assert run.refused == []
    run.release("1", "u0")


def limit(most: int = 16) -> ConcurrencyLimit:
    return ConcurrencyLimit(most)


def test_the_limit_grows_while_the_service_is_quick() -> None:
    subject = limit()
    for number in range(20):
        subject.record_answer("x", 0.5, full=True, now=number / 10)
    assert subject.value == 16


def test_the_limit_of_an_idle_service_stays() -> None:
    subject = limit()
    for number in range(300):
        subject.record_answer("x", 0.5, full=False, now=number)
    assert subject.value == 2


@pytest.mark.parametrize(("capacity", "least", "most"), [(2, 3, 8), (4, 6, 12), (20, 14, 16)])
def test_the_limit_finds_the_capacity_of_a_service(capacity: int, least: int, most: int) -> None:
    """A service that processes some requests at a time, in half a second each; the others wait."""
    subject, now, values = limit(), 0.0, []
    while now < 600:
        seconds = max(0.5, 0.5 * subject.value / capacity)
        now += seconds / subject.value
        subject.record_answer("x", seconds, full=True, now=now)
        values.append(subject.value)
    assert least <= sum(values) / len(values) <= most
    assert values[-1] <= most + 2


def test_refusals_halve_the_limit_once_a_second() -> None:
    subject = limit()
    for number in range(20):
        subject.record_answer("x", 0.5, full=True, now=number / 10)
    for now in (10.0, 10.1, 10.2):
        subject.record_busy(now)
    assert subject.value == 8
    for now in (12.0, 14.0, 16.0, 18.0):
        subject.record_busy(now)
    assert subject.value == 2
    assert limit(1).value == 1


def test_quick_answers_of_different_duration_are_not_slow() -> None:
    subject = limit()
    for number in range(300):
        subject.record_answer("x", 0.005 if number % 2 else 0.09, full=True, now=number)
    assert subject.value == 16
