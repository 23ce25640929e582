"""Update restrictions of the environment for a resource (docs/internals/hot-language.md §9.6)."""

from __future__ import annotations

import orjson
import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.preview.update import preview_update
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World, test_resource

TEMPLATE = {"heat_template_version": "2021-04-16"}
REPLACE, UPDATE = "replace is restricted for resource.", "update is restricted for resource."


@pytest.fixture
def world(postgres_url):
    made = World(postgres_url, types=Cloud().types())
    yield made
    made.close()


def forbidding(**actions):
    return {"resource_registry": {"resources": {n: {"restricted_actions": a} for n, a in actions.items()}}}


def server(value):
    return cloud_thing(type="Cloud::Server", value=value)


def refusals(world, uuid, name="a"):
    return [item for item in world.event_reasons(uuid, name) if "restricted" in item]


def reason(world, uuid):
    return world.rows("SELECT status_reason FROM stack WHERE uuid = :u", u=uuid)[0].status_reason


NAMED_BOTH, REPLACING = ["update", "replace"], "replace"
OTHER = {
    "update": (test_resource("v"), test_resource("w"), NAMED_BOTH, UPDATE),
    "replace": (test_resource("v"), test_resource("w", update_replace=True), NAMED_BOTH, REPLACE),
    "replace alone": (test_resource("v"), test_resource("w", update_replace=True), REPLACING, REPLACE),
    "another type": (test_resource("v"), {"type": "OS::Heat::None"}, REPLACING, REPLACE),
    "of a cloud, update": (server("v"), server("w"), "update", UPDATE),
    "of a cloud, replace": (cloud_thing(value="v"), cloud_thing(value="w"), REPLACING, REPLACE),
}


@pytest.mark.parametrize(("before", "wanted", "words", "told"), OTHER.values(), ids=OTHER)
def test_a_restricted_change_fails_the_update_and_leaves_the_resource_unchanged(
    world, before, wanted, words, told
):
    uuid = world.create("s", {"a": before, "b": test_resource("b", requires=("a",))})
    world.deliver_all()
    [made] = world.rows("SELECT action, status, physical_id FROM resource WHERE name = 'a'")
    environment = forbidding(**{"[a]": words})
    body = orjson.dumps({"template": {**TEMPLATE, "resources": {"a": wanted}}, "environment": environment})
    for turn, items in preview_update(world.context, world.stack_row("s"), Body(body)).items.items():
        said = {item.expected.name: item.expected.restricted for item in items}
        assert said in ({}, {"b": ""}, {"a": told.split()[0]}), turn
        assert ("a" in said) == (turn == ("updated" if told is UPDATE else "replaced")), turn
    for times in (1, 2):
        world.update("s", {"a": wanted}, environment=forbidding(**{"[a]": words}), disable_rollback=True)
        world.deliver_all(shuffle=True, repeat=0.3)
        assert world.state(uuid) == "UPDATE_FAILED"
        assert refusals(world, uuid) == [f"UPDATE_FAILED {told}"] * times
        assert reason(world, uuid) == f"Resource UPDATE failed: ResourceActionRestricted: resources.a: {told}"
        assert world.rows("SELECT action, status, physical_id FROM resource WHERE name = 'a'") == [made]
    world.update("s", {"a": wanted})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(refusals(world, uuid)) == 2


def test_unrestricted_changes_are_made(world):
    uuid = world.create("s", {"a": test_resource("v")})
    world.deliver_all()
    world.update("s", {"a": test_resource("w")}, environment=forbidding(a="replace"))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.event_reasons(uuid, "a")[-1] == "UPDATE_COMPLETE state changed"


def test_restricted_replacement_applies_to_unhealthy_resources_too(world):
    environment = forbidding(a="replace")
    uuid = world.create("s", {"a": test_resource("v")}, environment=environment)
    world.deliver_all()
    world.mark("s", "a", unhealthy=True)
    world.update("s", {"a": test_resource("v")}, environment=environment)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert refusals(world, uuid) == [f"UPDATE_FAILED {REPLACE}"]


def test_a_stack_in_a_stack_is_not_touched_when_that_is_forbidden(world):
    child = '{"heat_template_version": "2021-04-16", "parameters": {"p": {"type": "string"}}}'

    def nested(p):
        return {"a": {"type": "c.yaml", "properties": {"p": p}}}

    uuid = world.create("s", nested("1"), files={"c.yaml": child})
    world.deliver_all()
    world.update("s", nested("2"), files={"c.yaml": child}, environment=forbidding(a="update"))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert refusals(world, uuid) == [f"UPDATE_FAILED {UPDATE}"]
    world.update("s", nested("2"), files={"c.yaml": child})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_a_forbidden_change_is_taken_back_by_a_rollback(world):
    uuid = world.create("s", {"a": test_resource("v"), "b": test_resource("1")})
    world.deliver_all()
    world.update(
        "s",
        {"a": test_resource("w", requires=("b",)), "b": test_resource("2")},
        environment=forbidding(a="update"),
        disable_rollback=False,
    )
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert {r.properties["value"] for r in world.rows("SELECT properties FROM resource")} == {"v", "1"}
