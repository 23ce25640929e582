"""The choice between keeping, updating and replacing an existing resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.engine.check.change import (
    ADOPT,
    COMPARE,
    PREEMPT,
    REISSUE,
    Ask,
    AwaitReady,
    Comparison,
    Decision,
    Desired,
    Evidence,
    Forbidden,
    Recorded,
    Refuse,
    Replace,
    ReplaceReason,
    Shadow,
    Update,
    decide_change,
)
from orchestrator.engine.check.decide import Keep
from orchestrator.resources.base import Change, Observation, Property, ResourceType

R = ReplaceReason


class Server(ResourceType):
    """An external type with a property of each sort."""

    name = "A::Server"
    properties = {  # noqa: RUF012
        "size": Property("integer", update_allowed=True),
        "place": Property("string"),
        "owner": Property("string", immutable=True),
        "mode": Property("string", update_allowed=True),
    }

    def change(self, before: Mapping[str, Any], after: Mapping[str, Any], changed: frozenset[str]) -> Change:
        return "replace" if "mode" in changed else super().change(before, after, changed)


class Tolerant(Server):
    """A type for which a name and an id are equal."""

    name = "A::Tolerant"

    def equal(self, name: str, before: Any, after: Any) -> bool:
        return name in ("mode", "owner") and {before, after} == {"small", "id-of-small"}


class Local(Server):
    """The same, without a provider."""

    name = "A::Local"
    calls_out = False


class Judging(Server):
    """A type that judges the health of its failed resources."""

    name = "A::Judging"

    def is_healthy_after_failure(self, ctx: object, physical_id: str) -> bool:
        raise NotImplementedError


class Findable(Judging):
    """A judging type whose objects can be looked up by token."""

    name = "A::Findable"

    def find(self, ctx: object, token: str) -> str | None:
        raise NotImplementedError


class Cancellable(Server):
    """A type whose operations can be cancelled."""

    name = "A::Cancellable"

    def cancel(self, ctx: object, physical_id: str) -> str:
        raise NotImplementedError


RECORDED = Recorded("a", "A::Server", "A::Server", "CREATE", "COMPLETE", "a-1", {"size": 1}, None)
DESIRED = Desired("A::Server", properties={"size": 1})
FAILED = RECORDED._replace(status="FAILED")
MARKED = FAILED._replace(action="CHECK", marked_unhealthy=True)
FEASIBLE, HEALTHY = Evidence(feasible=True), Evidence(healthy=True, feasible=True)
PRESENT, ABSENT, BROKEN = Observation(True), Observation(False), Observation(True, error="no disk")
PENDING = Observation(True, ready=False)
JUDGING = {"resource_type": Judging()}
FINDABLE = {"resource_type": Findable()}
NO_ID = FAILED._replace(physical_id=None)


def seen(observation: Observation) -> dict[str, Any]:
    return {"evidence": Evidence(observation=observation, feasible=True)}


def case(recorded: Recorded = RECORDED, desired: Desired = DESIRED, **options: Any) -> Comparison:
    return Comparison(recorded, desired, **{"resource_type": Server(), **options})


def to(**properties: Any) -> Desired:
    return Desired("A::Server", properties=properties)


def test_the_type_decides_whether_unlike_values_are_equal() -> None:
    recorded = RECORDED._replace(properties={"owner": "small", "mode": "small"})
    for rules, decision in ((COMPARE, Keep()), (REISSUE, Update(frozenset({"mode"})))):
        desired = to(owner="id-of-small", mode="id-of-small")
        assert decide_change(case(recorded, desired, resource_type=Tolerant()), rules) == decision
        assert decide_change(case(recorded, desired), rules) != decision
    assert decide_change(case(recorded, to(owner="other"), resource_type=Tolerant())) == Refuse(
        "Update to properties owner of a (A::Server) is not supported.",
        ("owner",),
        frozenset({"owner", "mode"}),
    )


@pytest.mark.parametrize(
    ("recorded", "desired", "more", "decision"),
    [
        (RECORDED, DESIRED, {}, Keep()),
        # Another type: decided before the definition is evaluated.
        (RECORDED, Desired("A::Other"), {}, Replace(R.TYPE_CHANGED)),
        (FAILED, Desired("A::Other"), {}, Replace(R.TYPE_CHANGED)),
        (RECORDED._replace(resource_type="one.yaml"), Desired("two.yaml"), {}, Ask("definition")),
        (RECORDED, Desired("OS::Heat::None", shadowed=True), {}, Shadow()),
        (RECORDED, Desired("OS::Heat::None"), {}, Replace(R.TYPE_CHANGED)),
        (
            RECORDED._replace(physical_id=None),
            Desired("OS::Heat::None", shadowed=True),
            {},
            Replace(R.TYPE_CHANGED),
        ),
        (RECORDED, Desired("A::Server"), {}, Ask("definition")),
        # External resources.
        (RECORDED, DESIRED._replace(external_id="a-1"), {}, Keep()),
        (FAILED, DESIRED._replace(external_id="a-1"), {}, Keep()),
        (
            RECORDED,
            DESIRED._replace(external_id="b-1"),
            {},
            Refuse("Update to property external_id of a (A::Server) is not supported."),
        ),
        # Failed resources.
        (NO_ID, DESIRED, {}, Replace(R.FAILED)),
        (NO_ID, DESIRED, FINDABLE, Ask("observation")),
        (NO_ID._replace(marked_unhealthy=True), DESIRED, FINDABLE, Replace(R.FAILED)),
        (NO_ID, DESIRED, FINDABLE | seen(ABSENT), Replace(R.FAILED)),
        (NO_ID, DESIRED, FINDABLE | seen(BROKEN), Replace(R.BROKEN)),
        (NO_ID, DESIRED, FINDABLE | seen(PENDING), AwaitReady(PENDING)),
        (NO_ID, DESIRED, FINDABLE | seen(PRESENT), Keep()),
        (FAILED, DESIRED, {"resource_type": Local()}, Replace(R.FAILED)),
        (FAILED, DESIRED, {"nested": True}, Keep()),
        # ... are observed before anything is concluded from the failure,
        (FAILED, DESIRED, {}, Ask("observation")),
        (FAILED, DESIRED, seen(ABSENT), Replace(R.MISSING)),
        (FAILED, DESIRED, seen(BROKEN), Replace(R.BROKEN)),
        (FAILED, DESIRED, seen(PENDING), AwaitReady(PENDING)),
        (FAILED, to(size=1, place="x"), seen(PENDING), Replace(R.FIXED_PROPERTIES, frozenset({"place"}))),
        (FAILED, DESIRED, seen(PRESENT), Keep()),
        (FAILED, to(size=2), seen(PRESENT), Update(frozenset({"size"}))),
        (FAILED._replace(action="CHECK"), DESIRED, seen(PRESENT), Keep()),
        # ... unless their delete was requested before,
        (FAILED._replace(action="DELETE"), DESIRED, {}, Replace(R.FAILED)),
        # ... or a user has marked them,
        (FAILED._replace(marked_unhealthy=True), DESIRED, {}, Replace(R.FAILED)),
        (MARKED, DESIRED, {}, Replace(R.UNHEALTHY)),
        (MARKED, DESIRED, {"nested": True}, Replace(R.UNHEALTHY)),
        # ... or their type judges by itself.
        (FAILED, DESIRED, JUDGING, Ask("health")),
        (FAILED, DESIRED, {**JUDGING, "evidence": Evidence(healthy=False)}, Replace(R.FAILED)),
        (
            FAILED._replace(action="CHECK"),
            DESIRED,
            {**JUDGING, "evidence": Evidence(False)},
            Replace(R.UNHEALTHY),
        ),
        (FAILED, DESIRED, {**JUDGING, "evidence": HEALTHY}, Keep()),
        # After a failed update, what the provider does not report is sent again.
        (
            FAILED._replace(action="UPDATE"),
            to(size=1, place="x"),
            {**JUDGING, "evidence": HEALTHY},
            Update(frozenset({"size"})),
        ),
        (FAILED._replace(action="UPDATE"), DESIRED, seen(PRESENT), Update(frozenset({"size"}))),
        (FAILED._replace(action="UPDATE"), DESIRED, seen(Observation(True, properties={"size": 1})), Keep()),
        (
            FAILED._replace(action="UPDATE"),
            to(size=1, place="x"),
            seen(PRESENT),
            Replace(R.FIXED_PROPERTIES, frozenset({"place"})),
        ),
        # Converge: the provider's answer comes before the properties.
        (RECORDED, to(size=2), {"converge": True}, Ask("observation")),
        (RECORDED, DESIRED, {"converge": True, "resource_type": Local()}, Keep()),
        (RECORDED, to(size=2), {"evidence": Evidence(observation=ABSENT)}, Replace(R.MISSING)),
        (RECORDED, to(size=2), {"evidence": Evidence(observation=BROKEN)}, Replace(R.BROKEN)),
        (RECORDED, DESIRED, {"evidence": Evidence(observation=PRESENT)}, Keep()),
        # Properties.
        (RECORDED, to(size=2), {}, Ask("feasibility")),
        (RECORDED, to(size=2), {"evidence": FEASIBLE}, Update(frozenset({"size"}))),
        (
            RECORDED,
            to(size=2),
            {"evidence": Evidence(feasible=False)},
            Replace(R.NOT_FEASIBLE, frozenset({"size"})),
        ),
        (RECORDED, to(size=2), {"nested": True}, Update(frozenset({"size"}))),
        (RECORDED, to(size=1, place="x"), {}, Replace(R.FIXED_PROPERTIES, frozenset({"place"}))),
        (RECORDED, to(size=1, mode="x"), {}, Replace(R.TYPE_RULE, frozenset({"mode"}))),
        (RECORDED, DESIRED._replace(metadata={"k": 1}), {"evidence": FEASIBLE}, Update()),
        (RECORDED, DESIRED._replace(metadata={}), {}, Keep()),
        (
            RECORDED,
            to(size=2, owner="x"),
            {},
            Refuse(
                "Update to properties owner of a (A::Server) is not supported.",
                ("owner",),
                frozenset({"owner", "size"}),
            ),
        ),
        (
            RECORDED,
            DESIRED._replace(undetermined=frozenset({"place"})),
            {},
            Replace(R.FIXED_PROPERTIES, frozenset({"place"})),
        ),
    ],
)
def test_an_existing_resource_is_kept_updated_or_replaced(
    recorded: Recorded, desired: Desired, more: dict[str, Any], decision: Decision
):
    assert decide_change(case(recorded, desired, **more)) == decision


@pytest.mark.parametrize(
    ("desired", "forbidden", "decision"),
    [
        (DESIRED, {"update", "replace"}, Keep()),
        (to(size=2), {"update"}, Forbidden("update")),
        (to(size=2), {"replace"}, Update(frozenset({"size"}))),
        (to(place="x"), {"update"}, Replace(R.FIXED_PROPERTIES, frozenset({"place", "size"}))),
        (to(place="x"), {"replace"}, Forbidden("replace")),
        (Desired("A::Other"), {"replace"}, Forbidden("replace")),
        (Desired("OS::Heat::None", shadowed=True), {"replace"}, Forbidden("replace")),
        (to(owner="x"), {"update", "replace"}, None),
    ],
)
def test_the_environment_forbids_updates_and_replacements(
    desired: Desired, forbidden: set[str], decision: Decision | None
):
    result = decide_change(case(desired=desired, evidence=FEASIBLE, restricted=frozenset(forbidden)))
    assert isinstance(result, Refuse) if decision is None else result == decision


@pytest.mark.parametrize(
    ("desired", "decision"),
    [
        (Desired("A::Other"), Replace(R.TYPE_CHANGED)),
        (Desired("A::Server"), Ask("definition")),
        (to(size=1, place="x"), Replace(R.FIXED_PROPERTIES, frozenset({"place"}))),
        (to(size=1), Update(frozenset({"size"}))),
        (to(size=2, mode="x"), Replace(R.TYPE_RULE, frozenset({"mode", "size"}))),
    ],
)
def test_an_unconfirmed_update_sends_every_updatable_property(desired: Desired, decision: Decision):
    assert decide_change(case(desired=desired), REISSUE) == decision


def test_a_second_failed_adoption_creates_a_replacement():
    for recorded, observed, decision in (
        (RECORDED, ABSENT, Keep()),
        (FAILED, PRESENT, Keep()),
        (FAILED, ABSENT, Replace(R.ADOPTION_FAILED)),
        (FAILED, BROKEN, Replace(R.ADOPTION_FAILED)),
    ):
        assert decide_change(case(recorded, evidence=Evidence(observation=observed)), ADOPT) == decision
    assert decide_change(case(), ADOPT) == Ask("observation")


def test_a_superseded_operation_is_cancelled_if_its_type_can():
    assert decide_change(case(), PREEMPT) == Keep()
    cancelled = decide_change(case(resource_type=Cancellable()), PREEMPT)
    assert cancelled == Replace(R.OPERATION_CANCELLED)
    unknown = RECORDED._replace(physical_id=None)
    assert decide_change(case(unknown, resource_type=Cancellable()), PREEMPT) == Keep()


def test_every_reason_has_a_text():
    fields = {"recorded": "A", "desired": "B", "error": "no disk", "names": "x", "verb": "changes"}
    result = [Replace(reason).text(**fields) for reason in ReplaceReason]
    assert result[0] == "its type changes from A to B"
    assert len(set(result)) == len(ReplaceReason)
    assert not any("{" in text for text in result)
