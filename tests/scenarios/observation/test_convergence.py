"""Convergence on request: observe now, show what differs, repair it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from orchestrator.errors import (
    ActionInProgress,
    AwaitingBudget,
    Conflict,
    InvalidRequest,
    LimitExceeded,
    NotFound,
    NotSupported,
)
from orchestrator.operations.context import Body
from orchestrator.operations.observation import convergence, stack_survey
from orchestrator.operations.runtime import turns
from orchestrator.resources.base import Context, Observation
from tests.scenarios.observation.shelf import Box, Shelf
from tests.scenarios.observation.test_repairs import BOX, CHEST, Chest, Healer
from tests.scenarios.world import World

GROUP: dict[str, Any] = {
    "type": "OS::Heat::ResourceGroup",
    "properties": {"count": 3, "resource_def": BOX},
}
RESTRICTED: dict[str, Any] = {"resource_registry": {"resources": {"a": {"restricted_actions": "replace"}}}}


@pytest.fixture
def healer(postgres_url: str) -> Iterator[Healer]:
    shelf = Shelf()
    world = World(postgres_url, types=shelf.types() | {Chest.name: Chest(shelf)})
    yield Healer(world, shelf)
    world.close()


def made(healer: Healer, environment: dict[str, Any] | None = None, **resources: Any) -> str:
    options = {"environment": environment} if environment else {}
    uuid = healer.world.create("s", resources, **options)
    healer.deliver()
    healer.shelf.calls.clear()
    return uuid


def converge(healer: Healer, options: Any = None, stack: str = "s") -> Any:
    """Request a convergence; return the answer, and send the messages."""
    body = Body(data=orjson.dumps({"converge": options}))
    answer = convergence.converge(healer.world.context, healer.world.stack_row(stack), body)
    healer.world.messages += answer.messages
    return answer.body


def found(answer: Any) -> dict[str, tuple[str, str | None]]:
    return {one["path"]: (one["verdict"], one["action"]) for one in answer["resources"]}


def test_a_plan_shows_differences_and_actions_and_changes_nothing(healer: Healer):
    uuid = made(healer, a=BOX, b=BOX, c=BOX, d=CHEST)
    healer.shelf.objects[healer.id("a")]["label"] = "red"
    healer.shelf.objects[healer.id("b")]["error"] = "no host"
    for name in ("c", "d"):
        healer.remove(name)
    before = healer.world.rows("SELECT id, xmin::text FROM resource ORDER BY id")
    answer = converge(healer, {"plan": True})
    assert found(answer) == {
        "a": ("MODIFIED", "update"),
        "b": ("FAILED", "replace"),
        "c": ("MISSING", "recreate"),
        "d": ("MISSING", "recreate"),
    }
    [a, _, c, d] = answer["resources"]
    assert a["differences"] == [{"property": "label", "expected": "blue", "found": "red"}]
    assert (c["holds_data"], d["holds_data"]) == (False, True)
    assert (answer["observed"], answer["started"], answer["warnings"]) == (4, False, [])
    assert healer.world.messages == []
    assert healer.world.state(uuid) == "CREATE_COMPLETE"
    assert healer.world.rows("SELECT id, xmin::text FROM resource ORDER BY id") == before


def test_converge_repairs_what_differs_as_an_update_and_touches_nothing_else(healer: Healer):
    uuid = made(healer, a=BOX, b=BOX, c=CHEST)
    untouched, lost = healer.id("b"), healer.id("c")
    healer.shelf.objects[healer.id("a")]["label"] = "red"
    healer.remove("c")
    assert converge(healer)["started"]
    healer.shelf.calls.clear()
    healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert {found["label"] for found in healer.shelf.objects.values()} == {"blue"}
    assert healer.id("c") != lost
    assert f"get {untouched}" not in healer.shelf.calls
    assert any("Convergence (update)" in text for text in healer.world.event_reasons(uuid, "a"))
    assert not converge(healer)["started"]


def test_a_stack_in_step_gets_no_update(healer: Healer):
    uuid = made(healer, a=BOX)
    assert converge(healer)["resources"] == []
    assert healer.world.state(uuid) == "CREATE_COMPLETE"


def test_many_resources_are_observed_with_their_list(healer: Healer):
    made(healer, **{f"r{n}": BOX for n in range(stack_survey.FROM_LIST)})
    healer.remove("r3")
    lost = healer.id("r3")
    assert found(converge(healer, {"plan": True})) == {"r3": ("MISSING", "recreate")}
    assert healer.shelf.calls == ["list", f"get {lost}"]


def test_members_of_nested_stacks_are_named_by_their_paths_and_repaired(healer: Healer):
    uuid = made(healer, g=GROUP)
    kept = [healer.id("0"), healer.id("2")]
    healer.remove("1")
    assert found(converge(healer, {"plan": True})) == {"g.1": ("MISSING", "recreate")}
    converge(healer)
    healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.shelf.boxes() == sorted([*kept, healer.id("1")])


def test_an_object_that_could_not_be_observed_is_unknown_and_left_alone(healer: Healer):
    uuid = made(healer, a=BOX)
    healer.shelf.silent = True
    answer = converge(healer)
    assert found(answer) == {"a": ("UNKNOWN", None)}
    assert "cell is down" in answer["resources"][0]["obstacle"]
    assert (answer["observed"], answer["started"]) == (0, False)
    assert healer.world.state(uuid) == "CREATE_COMPLETE"


def test_a_restricted_action_is_stated_in_the_plan_and_refused(healer: Healer):
    uuid = made(healer, RESTRICTED, a=BOX, b=BOX)
    healer.remove("a")
    healer.remove("b")
    a, b = converge(healer, {"plan": True})["resources"]
    assert (a["action"], a["restricted"], b["restricted"]) == ("recreate", True, False)
    assert a["obstacle"] == "the environment restricts the action replace"
    with pytest.raises(InvalidRequest, match=r"restricts the repair of a \(recreate\)"):
        converge(healer)
    assert healer.world.state(uuid) == "CREATE_COMPLETE"
    assert converge(healer, {"resources": ["b"]})["started"]
    healer.deliver()
    assert healer.shelf.boxes() == [healer.id("b")]


def test_accepted_differences_are_no_differences(healer: Healer):
    made(healer, a=BOX)
    healer.db.execute(
        "INSERT INTO observation_rule (uuid, project_id, kind, stack_id, path, created_by) SELECT"
        " gen_random_uuid(), 'p1', 'accept', id, 'a.properties.label', 'u' FROM stack"
    )
    healer.shelf.objects[healer.id("a")]["label"] = "red"
    assert converge(healer)["resources"] == []


def test_a_busy_a_suspended_and_a_deleted_stack_are_refused(healer: Healer):
    made(healer, a=BOX)
    world = healer.world
    world.update("s", {"a": {**BOX, "properties": {"label": "green"}}})
    with pytest.raises(ActionInProgress):
        converge(healer, {"plan": True})
    healer.deliver()
    world.act("s", "suspend")
    healer.deliver()
    with pytest.raises(NotSupported, match="suspended"):
        converge(healer)
    world.act("s", "resume")
    healer.deliver()
    row = world.stack_row("s")
    world.delete("s")
    with pytest.raises(ActionInProgress):
        converge(healer)
    healer.deliver()
    with pytest.raises(NotFound):
        convergence.converge(world.context, row, Body(data=b'{"converge": null}'))


def test_a_stack_that_has_not_reached_its_revision_is_to_be_updated(healer: Healer):
    healer.world.create("s", {"a": {"type": "OS::Heat::TestResource", "properties": {"fail": True}}})
    healer.deliver()
    with pytest.raises(Conflict, match="Update it instead"):
        converge(healer)


@pytest.mark.parametrize(
    "options",
    [True, [], {"force": True}, {"plan": "yes"}, {"resources": []}, {"resources": [1]}, {"resources": ["a"]}],
)
def test_bad_requests_are_refused(healer: Healer, options: Any):
    made(healer, a=BOX)
    with pytest.raises(InvalidRequest):
        converge(healer, options)


def test_too_many_single_requests_are_refused(healer: Healer, monkeypatch: pytest.MonkeyPatch):
    made(healer, a=BOX, b=BOX)
    monkeypatch.setattr(stack_survey, "MAX_PREVIEW_OBSERVATIONS", 1)
    with pytest.raises(LimitExceeded, match="2 resources of the stack"):
        converge(healer, {"plan": True})


def test_a_resource_that_changes_after_its_observation_is_not_marked(
    healer: Healer, monkeypatch: pytest.MonkeyPatch
):
    uuid = made(healer, a=BOX)
    healer.remove("a")
    survey = stack_survey.survey

    def interrupted(*args: Any) -> Any:
        result = survey(*args)
        healer.db.execute("UPDATE resource SET updated_at = now()")
        return result

    monkeypatch.setattr(convergence, "survey", interrupted)
    with pytest.raises(Conflict, match="have changed"):
        converge(healer)
    assert healer.world.state(uuid) == "CREATE_COMPLETE"


def test_a_request_without_a_free_place_at_its_service_is_no_observation(
    healer: Healer, monkeypatch: pytest.MonkeyPatch
):
    made(healer, a=BOX)
    monkeypatch.setattr(stack_survey, "SECONDS", 0.5)

    def refuse(*args: Any) -> Any:
        raise AwaitingBudget("boxes", 0.1)

    monkeypatch.setattr(healer.world.types["Shelf::Box"], "observe", refuse, raising=False)
    answer = converge(healer)
    assert (found(answer), answer["observed"]) == ({"a": ("UNKNOWN", None)}, 0)


def test_a_slow_provider_delays_no_other_request_of_the_project(
    healer: Healer, monkeypatch: pytest.MonkeyPatch
):
    made(healer, a=BOX)
    process, observe, computed = turns.Turns(), Box.observe, list[str]()

    def observed(type_: Box, ctx: Context, physical_id: str) -> Observation:
        for _ in range(turns.ALONE):  # all turns of the project
            process.slots.acquire("p", 5.0)
        computed.append(physical_id)
        for _ in range(turns.ALONE):
            process.slots.release("p")
        return observe(type_, ctx, physical_id)

    monkeypatch.setattr(Box, "observe", observed)
    turns.begin(process, "p")
    try:
        converge(healer, {"plan": True})
    finally:
        turns.end()
    assert computed == [healer.id("a")]


def test_a_plan_warns_of_the_loss_of_many_objects(healer: Healer):
    made(healer, **{f"r{number}": BOX for number in range(6)})
    for number in range(5):
        healer.remove(f"r{number}")
    [warning] = converge(healer, {"plan": True})["warnings"]
    assert warning.startswith("5 of 6 objects of boxes do not exist: the fault may be the provider's.")
