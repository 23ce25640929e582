"""The outcome of observations and errors."""

from __future__ import annotations

import pytest

from orchestrator.engine.check.outcome import (
    Attempts,
    Deleted,
    DeleteProgress,
    Failed,
    Outcome,
    Ready,
    Wait,
    failure_reason,
    outcome_of_action,
    outcome_of_delete,
    outcome_of_error,
    outcome_of_observation,
    retry_seconds,
)
from orchestrator.engine.check.refusals import (
    BUSY,
    CHANGING,
    FAILING,
    IN_USE,
    PAUSED,
    QUOTA,
    REFUSALS,
    UNREACHABLE,
    Refusal,
    RefusalTimes,
    next_attempt,
)
from orchestrator.errors import (
    AwaitingBudget,
    Diagnostic,
    InvalidTemplate,
    NotFound,
    ProviderBusy,
    ProviderChanging,
    ProviderError,
    ProviderFailed,
    ProviderGatewayFailed,
    ProviderInUse,
    ProviderQuotaExceeded,
    ProviderSilent,
    ProviderUnreachable,
    ServiceUnavailable,
)
from orchestrator.resources.base import Observation

READY, PENDING = Observation(True), Observation(True, ready=False, retry_after=5.0, reason="booting")
BROKEN = Observation(True, error="no disk", error_kind="Error")
BAD_LUCK = Observation(True, error="no disk", error_kind="Error", replaceable=True)
ABSENT = Observation(False)
FIRST = Attempts(0, 0, 60.0)


def judged(observed: Observation, *, retries_left: int = 0) -> Outcome:
    return outcome_of_observation(observed, name="a", attempts=Attempts(2, retries_left, 60.0))


def deleted(observed: Observation, progress: DeleteProgress) -> Outcome:
    return outcome_of_delete(observed, progress, name="a")


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
    progress = DeleteProgress(10.0, 60.0)
    assert deleted(ABSENT, progress) == Deleted()
    assert deleted(PENDING, progress) == Wait(5.0, "booting")
    assert isinstance(deleted(READY, progress), Wait)


def test_the_delete_of_an_object_in_error_waits_for_its_next_request():
    assert deleted(BROKEN, DeleteProgress(10.0, 60.0)) == Wait(5.0, "Error: no disk")
    assert deleted(BROKEN, DeleteProgress(57.0, 60.0)) == Wait(3.0, "Error: no disk")
    assert deleted(BROKEN, DeleteProgress(0.0, 60.0, repeated=True)) == Wait(5.0, "Error: no disk", True)
    assert deleted(BROKEN, DeleteProgress(60.0, 60.0)) == Failed("Error: resources.a: no disk")
    assert deleted(BROKEN, DeleteProgress()) == Failed("Error: resources.a: no disk")


def test_a_delete_is_repeated_for_an_object_in_error_after_a_while():
    late, left = DeleteProgress(60.0, 60.0), Attempts(0, 1, 60.0)
    assert late.is_due(BROKEN, left)
    assert late.is_due(BROKEN, None)
    assert not late.is_due(BROKEN, FIRST)  # no attempts left
    assert not late.is_due(PENDING, left)
    assert not late.is_due(ABSENT, left)
    assert not DeleteProgress(59.0, 60.0).is_due(BROKEN, left)
    assert not DeleteProgress(60.0, 0.0).is_due(BROKEN, left)


@pytest.mark.parametrize(
    ("asked", "least", "most"), [(0.0, 0.0, 0.0), (7.0, 7.0, 7.7), (120.0, 120.0, 121.0), (1e9, 600.0, 601.0)]
)
def test_a_provider_is_asked_again_when_it_says(asked: float, least: float, most: float):
    outcome = outcome_of_error(ProviderBusy("later", retry_after=asked), name="a", attempts=FIRST)
    assert isinstance(outcome, Wait)
    assert outcome.refusal is BUSY
    assert least <= (outcome.seconds or 0.0) <= most


@pytest.mark.parametrize("asked", [-1.0, float("nan"), None])
def test_without_a_useful_time_the_pause_grows(asked: float | None):
    outcome = outcome_of_error(ProviderBusy("later", retry_after=asked), name="a", attempts=FIRST)
    assert isinstance(outcome, Wait)
    assert 0.5 <= (outcome.seconds or 0.0) <= 1.0


def test_an_observation_with_a_step_is_not_ready():
    assert not Observation(True, step="confirm").ready
    assert isinstance(judged(Observation(True, step="confirm")), Wait)


def test_an_action_fails_on_an_absent_resource():
    def acted(observed: Observation) -> Outcome:
        return outcome_of_action(observed, name="a", physical_id="a-1")

    assert acted(READY) == Ready(READY)
    assert acted(PENDING) == Wait(5.0, "booting")
    assert acted(BROKEN) == Failed("Error: resources.a: no disk")
    assert acted(ABSENT) == Failed("NotFound: resources.a: There is no a-1 any more.")
    gone = Observation(exists=False, reason="The address is not associated with any port.")
    assert acted(gone) == Failed("NotFound: resources.a: The address is not associated with any port.")


@pytest.mark.parametrize(
    ("error", "refusal", "reason"),
    [
        (ProviderBusy("slow down"), BUSY, "ProviderError: slow down"),
        (ProviderFailed("500", "HttpServerError"), FAILING, "HttpServerError: 500"),
        (ProviderGatewayFailed("502", "HttpServerError"), FAILING, "HttpServerError: 502"),
        (ServiceUnavailable("nova", "500"), PAUSED, "ServiceUnavailable: nova is unavailable (500)"),
        (ProviderSilent("no answer", "Timeout"), UNREACHABLE, "Timeout: no answer"),
        (ProviderUnreachable("no route"), UNREACHABLE, "ProviderUnreachable: no route"),
        (ConnectionResetError("by peer"), UNREACHABLE, "ConnectionResetError: by peer"),
        (TimeoutError("20 s"), UNREACHABLE, "TimeoutError: 20 s"),
    ],
)
def test_a_provider_in_an_outage_is_tried_again_until_the_timeout_of_the_stack(
    error: Exception, refusal: Refusal, reason: str
):
    for tries in (0, 3, 10_000):
        refused = RefusalTimes(tries, {refusal.kind: 10_000.0 * tries})
        wait = outcome_of_error(error, name="a", attempts=Attempts(9, 0, 60.0, refused))
        assert isinstance(wait, Wait)
        assert (wait.refusal, wait.retried, wait.discard, wait.reason) == (refusal, False, False, reason)
        assert wait.seconds is not None
        assert 0.5 <= wait.seconds / min(15.0, 2.0**tries if tries < 9 else 15.0) <= 1.0


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (ProviderInUse("taken"), IN_USE),
        (ProviderChanging("immutable", "Conflict"), CHANGING),
        (ProviderQuotaExceeded("10 of 10 servers", "Conflict"), QUOTA),
        (ProviderInUse("taken", retry_after=500.0), IN_USE),
    ],
)
def test_a_refusal_with_a_limit_is_repeated_until_then_and_at_last_at_its_end(
    error: ProviderBusy, refusal: Refusal
):
    assert refusal.seconds is not None
    now = 0.0
    while isinstance(outcome := refused_for(now, error, refusal), Wait):
        assert outcome.refusal is refusal
        assert outcome.seconds is not None
        assert 0 < outcome.seconds <= max(15.0, error.retry_after or 0.0) * 1.1
        now += outcome.seconds
    assert now == pytest.approx(refusal.seconds)
    assert outcome == Failed(failure_reason("Conflict", "a", str(error)))


def test_the_operator_sets_the_time_for_quota():
    error = ProviderQuotaExceeded("10 of 10 servers")
    assert isinstance(refused_for(0.0, error, QUOTA, quota_seconds=0.0), Failed)
    assert isinstance(refused_for(601.0, error, QUOTA, quota_seconds=700.0), Wait)


def refused_for(seconds: float, error: Exception, refusal: Refusal, quota_seconds: float = 600.0) -> Outcome:
    refused = RefusalTimes(0, {refusal.kind: seconds}, quota_seconds)
    return outcome_of_error(error, name="a", attempts=Attempts(0, 0, 60.0, refused))


def test_other_errors_are_final():
    def outcome(error: Exception) -> Outcome:
        return outcome_of_error(error, name="a", attempts=FIRST)

    refused = ProviderError("quota")
    assert outcome(refused) == Failed(failure_reason(refused.kind, "a", "quota"))
    assert outcome(ValueError("x")) == Failed("ValueError: resources.a: x")


def test_our_own_errors_have_the_names_of_heat():
    def reason(error: Exception) -> str:
        outcome = outcome_of_error(error, name="a", attempts=FIRST)
        assert isinstance(outcome, Failed)
        return outcome.reason

    assert reason(InvalidTemplate([Diagnostic("code", "wrong", "")])).startswith("StackValidationFailed: ")
    missing = NotFound("stack", "b")
    assert reason(missing) == f"{missing.heat_type}: resources.a: {missing}"


def test_the_operator_limits_the_pause_between_attempts():
    assert all(0.5 <= retry_seconds(failed, 0.5) <= 1.0 for failed in range(20))
    for longest in (0.5, 60.0):
        for tries in range(20):
            times = RefusalTimes(tries, {IN_USE.kind: 5.0 * tries}, max_seconds=longest)
            for refusal in REFUSALS:
                pause = next_attempt(refusal, ProviderBusy("x"), times)
                assert pause is not None
                assert pause <= min(15.0, longest)


def test_a_request_without_a_place_in_the_budget_is_no_attempt():
    outcome = outcome_of_error(AwaitingBudget("nova", 1.5), name="a", attempts=FIRST)
    assert outcome == Wait(1.5, "waiting for nova's budget")
