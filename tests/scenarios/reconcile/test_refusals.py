"""Temporary refusals end: each kind has a limit that counts from the first refusal of an operation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestrator.engine.check.refusals import QUOTA_SECONDS, REFUSALS, refusal_of
from orchestrator.errors import (
    ProviderBusy,
    ProviderChanging,
    ProviderFailed,
    ProviderGatewayFailed,
    ProviderInUse,
    ProviderQuotaExceeded,
    ProviderUnreachable,
)
from orchestrator.operations.diagnosis.explain import Explanation, explain
from orchestrator.resources.base import Context
from orchestrator.store.stacks import blockers
from tests.scenarios import clock
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

TAKEN = "IP address 10.0.0.9 already allocated (HTTP 409 from neutron)"
Make = Callable[[], Exception]

LIMITED: dict[str, Make] = {
    "in-use": lambda: ProviderInUse(TAKEN),
    "changing": lambda: ProviderChanging("Load Balancer is immutable", "Conflict"),
    "quota": lambda: ProviderQuotaExceeded("Quota exceeded (HTTP 403 from nova)", "Forbidden"),
}
ANSWERED: dict[str, Make] = {
    "busy": lambda: ProviderBusy("Too many requests (HTTP 429 from nova)", "TooManyRequests"),
    "failing": lambda: ProviderFailed("Unexpected error (HTTP 500 from nova)", "HttpServerError"),
    "gateway": lambda: ProviderGatewayFailed("Bad gateway (HTTP 502 from nova)", "HttpServerError"),
}
VERBS = ("create", "update", "observe", "delete")


def server(**properties: object) -> dict[str, object]:
    return cloud_thing(type="Cloud::Server", **properties)


def limit(kind: str) -> float:
    seconds = QUOTA_SECONDS if kind == "quota" else next(r.seconds for r in REFUSALS if r.kind == kind)
    assert seconds is not None
    return seconds


def refuse(cloud: Cloud, verb: str, make: Make) -> None:
    def raise_(_ctx: Context) -> None:
        raise make()

    cloud.on[verb] = raise_


def elapse(world: World, seconds: float) -> None:
    """Let the first refusals be so much older."""
    clock.age_refusals(world.database, seconds)


def begin(world: World, cloud: Cloud, verb: str, make: Make) -> str:
    """Start an operation whose verb is refused, and let it be refused several times."""
    refused_create = verb == "create"
    if refused_create:
        refuse(cloud, verb, make)
    uuid = world.create("s", {"a": server(value="old")})
    if not refused_create:
        world.deliver_all()
        refuse(cloud, verb, make)
        if verb == "delete":
            world.delete("s")
        else:
            world.update("s", {"a": server(value="new")})
    world.retry(4)
    return uuid


def explanation(world: World) -> Explanation:
    stack = world.stack_row("s")
    [node] = [n for n in blockers.unfinished(world.database, stack, None, 10).nodes if n.state == "waiting"]
    return explain(node, stack, 5)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", LIMITED)
def test_a_refusal_with_a_limit_fails_the_operation_past_it(
    world: World, cloud: Cloud, kind: str, verb: str
) -> None:
    uuid = begin(world, cloud, verb, LIMITED[kind])
    elapse(world, limit(kind) - 30.0)
    world.retry(2)
    assert world.state(uuid).endswith("_IN_PROGRESS")
    elapse(world, 31.0)
    world.retry(2)
    assert world.state(uuid).endswith("_FAILED")
    assert str(LIMITED[kind]()) in world.stack_row("s").status_reason


def test_the_limit_counts_from_the_first_refusal_across_lost_leases(world: World, cloud: Cloud) -> None:
    uuid = begin(world, cloud, "create", LIMITED["in-use"])
    elapse(world, limit("in-use") - 30.0)

    def die(_ctx: Context) -> None:
        raise SystemExit

    cloud.on["create"] = die
    with pytest.raises(SystemExit):
        world.retry(1)
    world.forget_leases()
    refuse(cloud, "create", LIMITED["in-use"])
    world.retry(3)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    elapse(world, 31.0)
    world.retry(3)
    assert world.state(uuid) == "CREATE_FAILED"


def test_a_new_request_starts_anew(world: World, cloud: Cloud) -> None:
    uuid = begin(world, cloud, "create", LIMITED["in-use"])
    elapse(world, limit("in-use") + 1.0)
    world.update("s", {"a": server(value="other")})
    world.retry(4)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    cloud.on.clear()
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_answers_of_an_overloaded_service_do_not_restart_the_limit(world: World, cloud: Cloud) -> None:
    uuid = begin(world, cloud, "create", LIMITED["in-use"])
    elapse(world, limit("in-use") + 1.0)
    refuse(cloud, "create", ANSWERED["busy"])
    world.retry(1)
    refuse(cloud, "create", LIMITED["in-use"])
    world.retry(2)
    assert world.state(uuid) == "CREATE_FAILED"


def test_a_refusal_after_an_outage_has_its_whole_time(world: World, cloud: Cloud) -> None:
    uuid = begin(world, cloud, "create", LIMITED["in-use"])
    elapse(world, limit("in-use") + 1.0)
    refuse(cloud, "create", lambda: ProviderUnreachable("no route to host"))
    world.retry(6)
    refuse(cloud, "create", LIMITED["in-use"])
    world.retry(6)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"


def test_each_kind_has_its_own_time(world: World, cloud: Cloud) -> None:
    uuid = begin(world, cloud, "create", LIMITED["quota"])
    elapse(world, limit("in-use") + 1.0)
    refuse(cloud, "create", LIMITED["in-use"])
    world.retry(2)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    refuse(cloud, "create", LIMITED["quota"])
    world.retry(2)
    elapse(world, limit("quota") - limit("in-use"))
    world.retry(2)
    assert world.state(uuid) == "CREATE_FAILED"


@pytest.mark.parametrize("kind", LIMITED)
def test_why_tells_a_refusal_with_its_text_since_when_and_until_when(
    world: World, cloud: Cloud, kind: str
) -> None:
    begin(world, cloud, "create", LIMITED[kind])
    found = explanation(world)
    assert found.word == "refused"
    assert found.since is not None
    assert str(LIMITED[kind]()) in found.text
    assert ", until 20" in found.text
    assert not no_answer(found.text)
    row = world.resource("a")
    assert (row.unreachable_since, row.unreachable_reason) == (None, None)


@pytest.mark.parametrize("kind", ANSWERED)
def test_an_answer_of_a_service_in_trouble_is_told_as_an_answer(
    world: World, cloud: Cloud, kind: str
) -> None:
    uuid = begin(world, cloud, "create", ANSWERED[kind])
    found = explanation(world)
    assert str(ANSWERED[kind]()) in found.text
    assert found.text.endswith("until the timeout of the stack")
    assert found.word != "unreachable"
    texts = [found.text, *world.event_reasons(uuid, "s"), *world.event_reasons(uuid, "a")]
    assert not [told for told in texts if no_answer(told)]
    assert world.resource("a").unreachable_since is None
    world.elapse(7_200, "action")
    world.retry(2)
    assert world.state(uuid) == "CREATE_FAILED"
    assert "Not reached" not in world.stack_row("s").status_reason
    assert str(ANSWERED[kind]()) in world.stack_row("s").status_reason


def test_no_answer_is_told_as_no_answer(world: World, cloud: Cloud) -> None:
    begin(world, cloud, "create", lambda: ProviderUnreachable("no route to host"))
    row = world.resource("a")
    assert row.unreachable_since is not None
    assert "no route to host" in row.unreachable_reason


def no_answer(told: str) -> bool:
    return "no answer" in told or "unreachable" in told.lower()


def test_a_timeout_before_the_limit_names_the_refusal(world: World, cloud: Cloud) -> None:
    uuid = begin(world, cloud, "create", LIMITED["quota"])
    world.elapse(7_200, "action")
    world.retry(2)
    assert world.state(uuid) == "CREATE_FAILED"
    reason = world.stack_row("s").status_reason
    assert reason == "Timed out. Refused: a (Forbidden: Quota exceeded (HTTP 403 from nova))"


def test_every_error_that_is_tried_again_has_a_kind_with_an_end() -> None:
    def errors(parent: type[Exception]) -> list[type[Exception]]:
        return [parent, *(deeper for child in parent.__subclasses__() for deeper in errors(child))]

    untold = {"AwaitingBudget", "AbsenceInDoubt"}
    for kind in [*errors(ProviderBusy), ConnectionError, TimeoutError]:
        error = kind.__new__(kind)
        found = refusal_of(error)
        assert (found is None) == (kind.__name__ in untold), kind
        assert found is None or found in REFUSALS
