"""The decision about a fault: pure."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.observation.policies import MODES
from orchestrator.engine.observation.repairs import (
    FIRST_PAUSE,
    MAX_PER_HOUR,
    MAX_TRIES,
    Attempt,
    Circumstances,
    Fault,
    action_for,
    decide,
    is_worth_recovering,
)

NOW = dt.datetime(2026, 1, 14, 12, tzinfo=dt.UTC)
HEAL = Circumstances("heal")
MISSING = Fault("MISSING")
NAMES = st.frozensets(st.sampled_from("abc"))
FAULTS = st.one_of(
    st.builds(
        Fault,
        st.sampled_from(["MISSING", "FAILED"]),
        holds_data=st.booleans(),
        external=st.booleans(),
        restricted=st.frozensets(st.sampled_from(["update", "replace"])),
    ),
    st.builds(
        Fault,
        st.just("MODIFIED"),
        NAMES.map(lambda names: tuple(sorted(names))),
        holds_data=st.booleans(),
        fixed=NAMES,
        unset=NAMES,
        external=st.booleans(),
        restricted=st.frozensets(st.sampled_from(["update", "replace"])),
    ),
)
AROUND = st.builds(
    Circumstances,
    st.sampled_from(MODES),
    st.sampled_from(["", "paused"]),
    st.sampled_from(["", "loss"]),
    st.sampled_from(["", "busy"]),
    approved=st.booleans(),
)
ATTEMPTS = st.lists(
    st.builds(
        Attempt,
        st.integers(0, 7_200).map(lambda seconds: NOW - dt.timedelta(seconds=seconds)),
        st.sampled_from(["started", "done", "failed", "superseded"]),
    ),
    max_size=12,
)


@given(FAULTS, AROUND, ATTEMPTS)
def test_a_repair_is_allowed_by_everything(fault: Fault, around: Circumstances, attempts) -> None:
    decision = decide(fault, around, attempts, NOW)
    if decision.verb != "repair":
        assert decision.reason
        return
    assert around.mode in ("heal", "ask")
    assert not around.paused
    assert not around.stack
    assert not fault.external
    assert ("update" if decision.action == "update" else "replace") not in fault.restricted
    if not around.approved:
        assert around.mode == "heal"
        assert not around.loss
        assert decision.action == "update" or not fault.holds_data
    assert all(attempt.status != "started" for attempt in attempts)
    assert sum(NOW - attempt.at < dt.timedelta(hours=1) for attempt in attempts) < MAX_PER_HOUR


@given(FAULTS, AROUND, ATTEMPTS)
def test_an_approval_only_adds_repairs(fault: Fault, around: Circumstances, attempts) -> None:
    before = decide(fault, around._replace(approved=False), attempts, NOW)
    after = decide(fault, around._replace(approved=True), attempts, NOW)
    assert after == before or before.verb == "ask"
    assert after.verb != "ask"


@pytest.mark.parametrize(
    ("fault", "action"),
    [
        (Fault("MISSING"), "recreate"),
        (Fault("FAILED"), "replace"),
        (Fault("MODIFIED", ("a",)), "update"),
        (Fault("MODIFIED", ("a", "b"), fixed=frozenset("b")), "replace"),
        (Fault("MODIFIED", ("a", "b"), fixed=frozenset("b"), unset=frozenset("b")), "update"),
        (Fault("MODIFIED", ("a",), unset=frozenset("a")), None),
    ],
)
def test_the_smallest_action_is_chosen(fault: Fault, action: str | None) -> None:
    assert action_for(fault) == action


@pytest.mark.parametrize("tries", range(1, MAX_TRIES))
def test_the_pause_doubles_with_each_try(tries: int) -> None:
    last = NOW - FIRST_PAUSE * 2 ** (tries - 1)
    earlier = [Attempt(last - dt.timedelta(hours=1), "failed")] * (tries - 1)
    attempts = [*earlier, Attempt(last, "failed")]
    assert decide(MISSING, HEAL, attempts, NOW).verb == "repair"
    early = decide(MISSING, HEAL, attempts, NOW - dt.timedelta(seconds=1))
    assert (early.verb, early.due_at) == ("wait", NOW)


def test_a_success_ends_the_count() -> None:
    old = [Attempt(NOW - dt.timedelta(hours=9 - n), "failed") for n in range(MAX_TRIES)]
    assert decide(MISSING, HEAL, old, NOW).verb == "give_up"
    success = Attempt(NOW - dt.timedelta(hours=2), "done")
    assert decide(MISSING, HEAL, [*old, success], NOW).verb == "repair"


def test_a_resource_that_is_repaired_again_and_again_is_given_up() -> None:
    often = [Attempt(NOW - dt.timedelta(minutes=n), "done") for n in range(MAX_PER_HOUR)]
    assert decide(MISSING, HEAL, often, NOW).verb == "give_up"
    assert decide(MISSING, HEAL, often[1:], NOW).verb == "repair"


def test_a_failed_object_is_recovered_before_it_is_replaced() -> None:
    assert action_for(Fault("FAILED", recoverable=True)) == "recover"
    assert action_for(Fault("FAILED")) == "replace"
    assert decide(Fault("FAILED", holds_data=True, recoverable=True), HEAL, (), NOW).verb == "repair"
    restricted = Fault("FAILED", recoverable=True, restricted=frozenset({"update"}))
    assert decide(restricted, HEAL, (), NOW).verb == "report"
    tried = Attempt(NOW, "failed", "recover")
    done = tried._replace(status="done")
    assert [is_worth_recovering(attempts) for attempts in ((), (tried,), (done,))] == [True, False, True]
