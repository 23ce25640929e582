"""Previews over HTTP: response format, absence of side effects, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from api.app import operations
from api.dependencies import Dependencies
from api.routes import assemble
from orchestrator.resources.registry import load_registry
from tests.integration.api_world import Client
from tests.scenarios.stacks.five_resources import five
from tests.scenarios.world import World, test_resource

VERSION = "2021-04-16"
TURNS = ["unchanged", "updated", "replaced", "added", "deleted"]
HEATS = {
    "attributes",
    "creation_time",
    "description",
    "metadata",
    "physical_resource_id",
    "required_by",
    "resource_action",
    "resource_identity",
    "resource_name",
    "resource_status",
    "resource_status_reason",
    "resource_type",
    "stack_identity",
    "stack_name",
    "updated_time",
}
OURS = {"because", "certain", "changed_properties", "restricted_action", "unknown_properties"}


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url)
    yield made
    made.close()


@pytest.fixture
def api(world: World) -> Client:
    """The application over the world's database."""
    types, publish = load_registry(), world.messages.extend
    made = Dependencies(world.settings, world.database, world.cipher, types, operations(), publish)
    return Client(assemble(made).test_client(), "/v1")


def template(resources: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {"template": {"heat_template_version": VERSION, "resources": resources, **options}}


def test_an_update_preview_has_five_lists_of_resources_in_the_engines_form(world: World, api: Client) -> None:
    described = {**test_resource("a"), "description": "The first"}
    uuid = world.create("s", five(A=described, F=test_resource("f")))
    world.deliver_all()
    place, expected = f"/p1/stacks/s/{uuid}/preview", five(A=described, B=test_resource("b2"), E=None)
    expected["G"] = {**test_resource("g", requires=("A",)), "description": "New", "metadata": {"k": 1}}
    for method, query in (("PUT", ""), ("PATCH", "?show_nested=True")):
        answer = api.ask(method, place + query, 200, json=template(expected))
        assert list(answer) == ["resource_changes"]
        changes = answer["resource_changes"]
        assert list(changes) == TURNS
        named = {turn: [item["resource_name"] for item in held] for turn, held in changes.items()}
        assert named == {
            "unchanged": ["A", "C", "D"],
            "updated": ["B"],
            "replaced": [],
            "added": ["G"],
            "deleted": ["E", "F"],
        }
    for turn, held in changes.items():
        for item in held:
            assert set(item) == (HEATS if turn == "unchanged" else HEATS | OURS), turn
    identity = {"tenant": "p1", "stack_name": "s", "stack_id": uuid}
    first, [updated] = changes["unchanged"][0], changes["updated"]
    [row] = world.rows("SELECT physical_id FROM resource WHERE name = 'A'")
    assert first["physical_resource_id"] == row.physical_id
    assert (first["resource_action"], first["resource_status"]) == ("CREATE", "COMPLETE")
    assert first["resource_identity"] == {**identity, "path": "/resources/A"}
    assert first["stack_identity"] == {**identity, "path": ""}
    assert (first["description"], first["attributes"]) == ("The first", {"output": "a"})
    assert updated["changed_properties"] == {"value": ["b", "b2"]}
    assert updated["required_by"] == ["C"]
    [added] = changes["added"]
    assert (added["resource_action"], added["resource_status"]) == ("INIT", "COMPLETE")
    assert (added["physical_resource_id"], added["creation_time"]) == ("", None)
    assert (added["description"], added["metadata"]) == ("New", {"k": 1})
    assert added["attributes"] == {"output": None}
    assert changes["deleted"][0]["resource_type"] == "OS::Heat::TestResource"
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.messages == []


def test_a_preview_is_refused_for_the_reasons_of_its_update(world: World, api: Client) -> None:
    uuid = world.create("s", five())
    world.deliver_all()
    place = f"/p1/stacks/s/{uuid}/preview"
    assert api.message("PUT", place, 400, json={}) == "No template specified"
    message = "The Resource Type (No::Such) could not be found."
    assert api.message("PUT", place, 400, json=template({"a": {"type": "No::Such"}})) == message
    query = f"{place}?show_nested=maybe"
    assert "acceptable values are: true, false" in api.message("PUT", query, 400, json=template(five()))
    missing = api.message("PUT", "/p1/stacks/s/00000000-0000-4000-8000-000000000000/preview", 404, json={})
    assert missing == "The Stack (s) could not be found."
    assert api.message("PUT", f"/p2/stacks/s/{uuid}/preview", 404, json=template(five())) == missing
    api.ask("POST", place, 405, json=template(five()))


def test_nothing_secret_is_in_a_preview(world: World, api: Client) -> None:
    parameters = {"p": {"type": "string", "hidden": True, "default": "sesame"}}
    expected = {
        "a": {**test_resource({"get_param": "p"}), "metadata": {"m": {"get_param": "p"}}},
        "r": {"type": "OS::Heat::RandomString"},
    }
    uuid = world.create("s", expected, parameters=parameters)
    world.deliver_all()
    [row] = world.rows("SELECT sealed FROM resource WHERE name = 'r'")
    drawn = world.cipher.open(row.sealed)["attributes"]["value"]
    additional = {**expected, "b": expected["a"]}
    additional["c"] = test_resource({"get_attr": ["r", "value"]})
    body = {**template(additional, parameters=parameters), "parameters": {"p": "sesame2"}}
    text = api.http.put(f"/v1/p1/stacks/s/{uuid}/preview", json=body).get_data(as_text=True)
    assert '"updated":[{' in text
    assert "sesame" not in text
    assert drawn not in text
    body["stack_name"] = "t"
    text = api.http.post("/v1/p1/stacks/preview", json=body).get_data(as_text=True)
    assert '"properties":' in text
    assert "sesame" not in text


def test_a_create_preview_is_a_stack_without_a_status(world: World, api: Client) -> None:
    resources = {
        "a": {**test_resource("x"), "metadata": {"k": {"get_param": "n"}}},
        "b": test_resource({"get_attr": ["a", "output"]}, requires=("a",)),
        "v": {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "b"}}},
    }
    sections = {
        "description": "Three",
        "parameters": {"n": {"type": "number", "default": 3}},
        "outputs": {"o": {"value": {"get_attr": ["b", "output"]}}, "n": {"value": {"get_param": "n"}}},
    }
    body = {"stack_name": "s", "tags": "one,two", "timeout_mins": 7, **template(resources, **sections)}
    stack = api.ask("POST", "/p1/stacks/preview", 200, json=body)["stack"]
    made = stack.pop("resources")
    assert stack.pop("creation_time").endswith("Z")
    assert stack == {
        "id": "None",
        "links": [{"rel": "self", "href": "http://localhost/v1/p1/stacks/s/None"}],
        "stack_name": "s",
        "updated_time": None,
        "deletion_time": None,
        "description": "Three",
        "template_description": "Three",
        "parameters": {"n": "3", "OS::stack_id": "None", "OS::stack_name": "s", "OS::project_id": "p1"},
        "outputs": [
            {"output_key": "n", "description": "No description given", "output_value": 3},
            {"output_key": "o", "description": "No description given", "output_value": None},
        ],
        "disable_rollback": True,
        "timeout_mins": 7,
        "stack_owner": stack["stack_owner"],
        "parent": None,
        "stack_user_project_id": None,
        "tags": ["one", "two"],
        "capabilities": [],
        "notification_topics": [],
    }
    assert [item["resource_name"] for item in made] == ["a", "b", "v"]
    assert all(set(item) - {"unknown_properties"} == HEATS | {"properties"} for item in made)
    assert [item.get("unknown_properties", []) for item in made] == [[], ["value"], ["value"]]
    a, b, v = made
    assert (a["required_by"], b["required_by"], v["required_by"]) == (["b"], ["v"], [])
    assert (a["metadata"], a["properties"]["value"], a["attributes"]) == ({"k": 3}, "x", {"output": None})
    assert a["properties"]["update_replace_value"] is None
    assert b["properties"]["value"] == "test_string"  # the default, as long as there is no other
    assert v["properties"] == {"value": "b", "type": None}
    assert a["resource_identity"]["path"] == "/resources/a"
    assert world.rows("SELECT 1 FROM stack UNION ALL SELECT 1 FROM content") == []


def test_a_create_preview_is_refused_as_the_create_is(world: World, api: Client) -> None:
    world.create("s", five())
    place, body = "/p1/stacks/preview", template(five())
    assert (
        api.message("POST", place, 409, json={"stack_name": "s", **body}) == "The Stack (s) already exists."
    )
    assert api.message("POST", place, 400, json=body) == "No stack name specified"
    api.ask("POST", "/p2/stacks/preview", 200, json={"stack_name": "s", **body})
    world.settings.quotas["stacks"] = 1
    text = api.message("POST", place, 400, json={"stack_name": "t", **body})
    assert text.startswith("Request limit exceeded: You have reached the maximum stacks per tenant, 1.")


INNER = """
heat_template_version: 2021-04-16
parameters: {v: {type: string, default: a}}
resources:
  leaf: {type: OS::Heat::TestResource, properties: {value: {get_param: v}}}
"""
OUTER = """
heat_template_version: 2021-04-16
resources:
  inner: {type: inner.yaml}
"""


def test_resources_with_child_stacks_are_always_listed_as_updated(world: World, api: Client) -> None:
    files = {"outer.yaml": OUTER, "inner.yaml": INNER}
    uuid = world.create("s", {"outer": {"type": "outer.yaml"}, "A": test_resource("a")}, files=files)
    world.deliver_all()
    place = f"/p1/stacks/s/{uuid}/preview"
    same = {**template({"outer": {"type": "outer.yaml"}, "A": test_resource("a")}), "files": files}
    changes = api.ask("PUT", f"{place}?show_nested=true", 200, json=same)["resource_changes"]
    named = {turn: [item["resource_name"] for item in held] for turn, held in changes.items() if held}
    assert named == {"unchanged": ["A", "leaf"], "updated": ["outer", "inner"]}
    outer, inner = changes["updated"]
    assert "parent_resource" not in outer
    assert inner["parent_resource"] == "outer"
    assert outer["unchanged"] is inner["unchanged"] is True
    shallow = api.ask("PUT", place, 200, json=same)["resource_changes"]
    assert [item["resource_name"] for item in shallow["updated"]] == ["outer"]

    files["inner.yaml"] = INNER.replace("default: a", "default: b")
    changes = api.ask("PUT", f"{place}?show_nested=true", 200, json={**same, "files": files})
    updated = changes["resource_changes"]["updated"]
    assert [item["resource_name"] for item in updated] == ["outer", "inner", "leaf"]
    assert not any("unchanged" in item for item in updated)

    none = {**template({"outer": {"type": "OS::Heat::None"}, "A": test_resource("a")})}
    changes = api.ask("PUT", f"{place}?show_nested=true", 200, json=none)["resource_changes"]
    named = {turn: [item["resource_name"] for item in held] for turn, held in changes.items() if held}
    assert named == {"unchanged": ["A"], "replaced": ["outer"], "deleted": ["inner", "leaf"]}
