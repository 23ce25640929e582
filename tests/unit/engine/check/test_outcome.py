"""The outcome of observations and errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.config import settings
from orchestrator.engine.check.outcome import (
    Deleted,
    Failed,
    Outcome,
    Ready,
    Wait,
    failure_reason,
    outcome_of_action,
    outcome_of_error,
    outcome_of_observation,
    retry_seconds,
)
from orchestrator.errors import Diagnostic, InvalidTemplate, NotFound, ProviderBusy, ProviderError
from orchestrator.resources.base import Observation

READY, PENDING = Observation(True), Observation(True, ready=False, retry_after=5.0, reason="booting")
BROKEN = Observation(True, error="no disk", error_kind="Error")
BAD_LUCK = Observation(True, error="no disk", error_kind="Error", replaceable=True)
ABSENT = Observation(False)


def judged(observed: Observation, *, deleting: bool = False, retries_left: int = 0) -> Outcome:
    return outcome_of_observation(
        observed, name="a", deleting=deleting, retries_left=retries_left, retry_count=2
    )


def test_an_observation_ends_an_operation_or_lets_it_wait():
    assert judged(READY) == Ready(READY)
    assert judged(PENDING) == Wait(5.0, "booting")
    assert judged(BROKEN) == Failed("Error: resources.a: no disk")
    assert judged(BROKEN, retries_left=1) == Failed("Error: resources.a: no disk")


@pytest.mark.parametrize("seen", [BAD_LUCK, ABSENT])
def test_a_resource_that_another_attempt_may_repair_is_discarded_and_tried_again(seen: Observation):
    assert isinstance(judged(seen), Failed)
    outcome = judged(seen, retries_left=1)
    assert isinstance(outcome, Wait)
    assert (outcome.retried, outcome.discard) == (True, True)
    assert outcome.seconds is not None
    assert 4.0 <= outcome.seconds <= 6.0  # the third attempt


def test_a_delete_ends_when_the_provider_confirms_absence():
    assert judged(ABSENT, deleting=True) == Deleted()
    assert judged(PENDING, deleting=True) == Wait(5.0, "booting")
    assert isinstance(judged(READY, deleting=True), Wait)
    assert judged(BROKEN, deleting=True, retries_left=3) == Failed("Error: resources.a: no disk")


def test_an_action_fails_on_an_absent_resource():
    def acted(observed: Observation) -> Outcome:
        return outcome_of_action(observed, name="a", physical_id="a-1")

    assert acted(READY) == Ready(READY)
    assert acted(PENDING) == Wait(5.0, "booting")
    assert acted(BROKEN) == Failed("Error: resources.a: no disk")
    assert acted(ABSENT) == Failed("NotFound: resources.a: There is no a-1 any more.")


def test_only_a_busy_provider_is_tried_again():
    def outcome(error: Exception, retries_left: int = 1) -> Outcome:
        return outcome_of_error(error, name="a", retries_left=retries_left, retry_count=0)

    busy = ProviderBusy("slow down")
    wait = outcome(busy)
    assert isinstance(wait, Wait)
    assert (wait.retried, wait.discard, wait.reason) == (True, False, f"{busy.kind}: slow down")
    assert outcome(busy, 0) == Failed(failure_reason(busy.kind, "a", "slow down"))
    refused = ProviderError("quota")
    assert outcome(refused) == Failed(failure_reason(refused.kind, "a", "quota"))
    assert outcome(ValueError("x")) == Failed("ValueError: resources.a: x")


def test_our_own_errors_have_the_names_of_heat():
    def reason(error: Exception) -> str:
        outcome = outcome_of_error(error, name="a", retries_left=0, retry_count=0)
        assert isinstance(outcome, Failed)
        return outcome.reason

    assert reason(InvalidTemplate([Diagnostic("code", "wrong", "")])).startswith("StackValidationFailed: ")
    missing = NotFound("stack", "b")
    assert reason(missing) == f"{missing.heat_type}: resources.a: {missing}"


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installation with RETRY_MAX_SECONDS=0.5."""
    monkeypatch.setenv("ORCHESTRATOR_RETRY_MAX_SECONDS", "0.5")
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.mark.usefixtures("short_pauses")
def test_the_operator_limits_the_pause_between_attempts():
    assert all(0.5 <= retry_seconds(tries) <= 1.0 for tries in range(20))
