"""Snapshots, abandoning, exporting and adopting over HTTP: statuses, words and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from pydantic import SecretStr

from api.app import create_app
from orchestrator.security.encryption import new_key
from tests.integration.api_world import Client
from tests.scenarios.world import World, test_resource

TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"a": test_resource("v")}}
PATH = "/p1/stacks"
KEY = new_key()


class Installation(World):
    """A world behind its API."""

    def client(self, **settings: Any) -> Client:
        quotas = {**self.settings.quotas, **settings.pop("quotas", {})}
        changed = {"encryption_keys": SecretStr(KEY), "quotas": quotas, **settings}
        chosen = self.settings.model_copy(update=changed)
        return Client(create_app(chosen, self.database, self.messages.extend).test_client(), "/v1")

    def made(self, api: Client, name: str = "s", **request: Any) -> str:
        """Make a stack; return its path."""
        answer = api.ask("POST", PATH, 201, json={"stack_name": name, "template": TEMPLATE, **request})
        self.deliver_all()
        return f"{PATH}/{name}/{answer['stack']['id']}"

    def shown(self, api: Client, path: str) -> str:
        status: str = api.get(path)["stack"]["stack_status"]
        return status


@pytest.fixture
def world(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    monkeypatch.setattr("tests.scenarios.world.new_key", lambda: KEY)
    made = Installation(postgres_url, enable_stack_abandon=True, enable_stack_adopt=True)
    yield made
    made.close()


@pytest.fixture
def api(world: Installation) -> Client:
    return world.client()


def test_a_snapshot_from_first_to_last(world: Installation, api: Client) -> None:
    path = world.made(api)
    made = api.ask("POST", f"{path}/snapshots", 200, json={"name": "before"})
    assert (made["name"], made["action"], made["status"]) == ("before", "CREATE", "IN_PROGRESS")
    assert set(made) == {"id", "name", "action", "status", "status_reason", "creation_time", "data"}
    assert made["data"]["resources"] == {}
    assert world.shown(api, path) == "SNAPSHOT_IN_PROGRESS"
    world.deliver_all()
    shown = api.get(f"{path}/snapshots/{made['id']}")["snapshot"]
    assert (shown["status"], world.shown(api, path)) == ("COMPLETE", "SNAPSHOT_COMPLETE")
    assert shown["data"]["template"] == TEMPLATE
    assert shown["data"]["resources"]["a"]["resource_data"] == {"value": "v", "seconds": 0.0}
    assert api.get(f"{path}/snapshots") == {"snapshots": [shown]}
    world.update("s", {"a": test_resource("w")})
    world.deliver_all()
    assert api.ask("POST", f"{path}/snapshots/{made['id']}/restore", 202) is None
    assert world.shown(api, path) == "RESTORE_IN_PROGRESS"
    world.deliver_all()
    assert world.shown(api, path) == "RESTORE_COMPLETE"
    assert api.get(f"{path}/resources/a")["resource"]["attributes"] == {"output": "v"}
    assert api.ask("DELETE", f"{path}/snapshots/{made['id']}", 204) is None
    assert api.get(f"{path}/snapshots/{made['id']}")["snapshot"]["action"] == "DELETE"
    world.sweep_once()
    assert api.get(f"{path}/snapshots") == {"snapshots": []}


def test_refused_snapshot_requests(world: Installation, api: Client) -> None:
    path = world.made(api)
    unknown = "5d5ba3a5-4d55-4ac1-a1ba-8f4fb5ee4a6a"
    missing = f"The Snapshot ({unknown}) for Stack (s) could not be found."
    for method, place in (("GET", ""), ("DELETE", ""), ("POST", "/restore")):
        assert api.message(method, f"{path}/snapshots/{unknown}{place}", 404) == missing
    error = api.ask("GET", f"{path}/snapshots/{unknown}", 404)["error"]
    assert error["type"] == "SnapshotNotFound"
    assert "JSON object" in api.message("POST", f"{path}/snapshots", 400)
    assert "must be a string" in api.message("POST", f"{path}/snapshots", 400, json={"name": 1})
    made = api.ask("POST", f"{path}/snapshots", 200, json={})["id"]
    busy = api.message("POST", f"{path}/snapshots", 409, json={})
    assert busy == "Stack s already has an action (SNAPSHOT) in progress."
    refused = api.message("DELETE", f"{path}/snapshots/{made}", 400)
    assert refused == "Deleting in-progress snapshot is not supported."
    refused = api.message("POST", f"{path}/snapshots/{made}/restore", 400)
    assert refused == "Restoring incomplete snapshot is not supported."
    world.deliver_all()
    full = world.client(quotas={"snapshots_per_stack": 1})
    assert full.message("POST", f"{path}/snapshots", 400, json={}) == (
        "Request limit exceeded: You have reached the maximum snapshots per stack, 1. Please delete some "
        "snapshots."
    )
    api.get(f"{PATH}/s/snapshots", 404)
    api.get(f"{quote('/p2')}/stacks/{path.split('/stacks/')[1]}/snapshots/{made}", 404)


def test_actions_during_an_update_are_refused_or_queued(world: Installation, api: Client) -> None:
    path = world.made(api)
    api.ask("PATCH", path, 202, json={})
    busy = "Stack s already has an action (UPDATE) in progress."
    assert api.message("POST", f"{path}/actions", 409, json={"suspend": None}) == busy
    assert api.message("POST", f"{path}/snapshots?wait=false", 409, json={}) == busy
    assert "queued_action" not in api.get(path)["stack"]
    snapshot = api.ask("POST", f"{path}/snapshots?wait=true", 200, json={"name": "later"})
    assert (snapshot["name"], snapshot["status"]) == ("later", "IN_PROGRESS")
    refused = api.message("POST", f"{path}/actions?wait=true", 409, json={"suspend": None})
    assert refused == "Stack s already has a queued action (SNAPSHOT)."
    queued = api.get(path)["stack"]["queued_action"]
    assert queued["action"] == "SNAPSHOT"
    why = api.get(f"{path}/why")["why"]
    assert why["queued_action"] == queued
    assert why["desired_revision"] == {"number": 2, "reached": False, "last_reached": 1}
    assert f"SNAPSHOT is queued since {queued['since']}, until the stack is COMPLETE" in why["text"]
    world.deliver_all()
    assert world.shown(api, path) == "SNAPSHOT_COMPLETE"
    assert api.get(f"{path}/why")["why"]["desired_revision"]["reached"] is True


def test_a_suspended_stack_is_not_restored(world: Installation, api: Client) -> None:
    path = world.made(api)
    made = api.ask("POST", f"{path}/snapshots", 200, json={})["id"]
    world.deliver_all()
    world.act("s", "suspend")
    world.deliver_all()
    refused = api.message("POST", f"{path}/snapshots/{made}/restore", 400)
    assert refused == "Updating a stack when it is suspended is not supported."
    assert world.shown(api, path) == "SUSPEND_COMPLETE"


def test_a_large_template_is_restored_apart(world: Installation, api: Client) -> None:
    path = world.made(api)
    made = api.ask("POST", f"{path}/snapshots", 200, json={})["id"]
    world.deliver_all()
    world.update("s", {"a": test_resource("w")})
    world.deliver_all()
    small = world.client(inline_body_size=10)
    small.ask("POST", f"{path}/snapshots/{made}/restore", 202)
    world.deliver_all()
    assert world.shown(api, path) == "RESTORE_COMPLETE"


def test_a_stack_is_exported_abandoned_and_adopted(world: Installation, api: Client) -> None:
    path = world.made(api, tags="t")
    exported = api.get(f"{path}/export")
    assert list(exported["resources"]) == ["a"]
    assert set(exported) == {
        "name",
        "id",
        "action",
        "status",
        "environment",
        "files",
        "template",
        "resources",
        "project_id",
        "stack_user_project_id",
        "tags",
    }
    abandoned = api.ask("DELETE", f"{path}/abandon", 200)
    assert abandoned == exported
    assert world.shown(api, path) == "DELETE_IN_PROGRESS"
    world.deliver_all()
    assert world.shown(api, path) == "DELETE_COMPLETE"
    gone = api.message("DELETE", f"{path}/abandon", 404)
    assert gone == "The Stack (s) could not be found."
    assert api.message("GET", f"{path}/export", 404) == gone
    body = {"stack_name": "s", "adopt_stack_data": orjson.dumps(abandoned).decode()}
    response = api.http.post(f"/v1{PATH}", json=body)
    assert response.status_code == 201
    path = response.headers["Location"].split("/v1")[1]
    assert world.shown(api, path) == "ADOPT_IN_PROGRESS"
    world.deliver_all()
    shown = api.get(path)["stack"]
    assert (shown["stack_status"], shown["tags"]) == ("ADOPT_COMPLETE", ["t"])
    assert shown["stack_status_reason"] == "Stack ADOPT completed successfully"
    resource = api.get(f"{path}/resources/a")["resource"]
    assert resource["resource_status"] == "ADOPT_COMPLETE"
    assert resource["physical_resource_id"] == abandoned["resources"]["a"]["resource_id"]
    taken = api.message("POST", PATH, 409, json=body)
    assert taken == "The Stack (s) already exists."


def test_adopting_and_abandoning_are_off_as_shipped(world: Installation, api: Client) -> None:
    path = world.made(api)
    shipped = world.client(enable_stack_abandon=False, enable_stack_adopt=False)
    for method, place in (("GET", "export"), ("DELETE", "abandon")):
        body = shipped.ask(method, f"{path}/{place}", 400)
        assert body["error"]["message"] == "Stack Abandon is not supported."
        assert body["error"]["type"] == "NotSupported"
    body = {"stack_name": "t", "adopt_stack_data": "{}"}
    assert shipped.message("POST", PATH, 400, json=body) == "Stack Adopt is not supported."
    assert shipped.message("POST", f"{PATH}/preview", 400, json=body) == "Stack Adopt is not supported."
    assert world.shown(api, path) == "CREATE_COMPLETE"
    assert api.message("POST", PATH, 400, json=body) == "Invalid adopt data: 'template'"
    assert api.message("POST", f"{PATH}/preview", 400, json=body) == "Invalid adopt data: 'template'"


def test_data_in_yaml_are_adopted_too(world: Installation, api: Client) -> None:
    data = """
    template: {heat_template_version: 2021-04-16, resources: {a: {type: OS::Heat::RandomString}}}
    resources: {a: {resource_id: here, resource_data: {value: sesame}}}
    """
    body = {"stack_name": "s", "adopt_stack_data": data}
    foreseen = api.ask("POST", f"{PATH}/preview", 200, json=body)["stack"]
    assert [resource["resource_name"] for resource in foreseen["resources"]] == ["a"]
    assert "sesame" not in str(foreseen)
    made = api.ask("POST", PATH, 201, json=body)["stack"]["id"]
    world.deliver_all()
    path = f"{PATH}/s/{made}"
    assert world.shown(api, path) == "ADOPT_COMPLETE"
    assert api.get(f"{path}/resources/a")["resource"]["attributes"] == {"value": "******"}
    assert "sesame" not in str(world.rows("SELECT * FROM resource"))
    assert "sesame" not in str(world.rows("SELECT * FROM event"))
