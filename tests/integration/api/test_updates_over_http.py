"""Updates on real servers: over HTTP, with worker processes, and kill -9 of a worker during the update."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import httpx
import pytest

from orchestrator import config
from tests.e2e.running import Up, eventually

VERSION = "2021-04-16"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory):
    up = Up(tmp_path_factory.mktemp("updates")).wait_ready()
    with httpx.Client(base_url=f"{up.url}/v1/demo", timeout=30.0, follow_redirects=True) as client:
        client.up = up  # type: ignore[attr-defined]
        yield client
    up.stop()


def layers(size: int, value: str, **options: Any) -> dict[str, Any]:
    resources = {}
    for n in range(size):
        supplied = value if n < 10 else {"get_attr": [f"r{n - 10}", "output"]}
        resources[f"r{n}"] = {"type": "OS::Heat::TestResource", "properties": {"value": supplied, **options}}
    outputs = {"last": {"value": {"get_attr": [f"r{size - 1}", "output"]}}}
    return {"heat_template_version": VERSION, "resources": resources, "outputs": outputs}


def create(api: httpx.Client, name: str, template: dict[str, Any]) -> str:
    answer = api.post("/stacks", json={"stack_name": name, "template": template})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["stack"]["links"][0]["href"])


def ended(api: httpx.Client, place: str, seconds: float = 90.0) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        stack = api.get(place).json()["stack"]
        return None if stack["stack_status"].endswith("IN_PROGRESS") else stack

    result: dict[str, Any] = eventually(look, seconds)
    return result


def test_an_update_goes_on_when_a_worker_is_killed(api: httpx.Client) -> None:
    place = create(api, "killed", layers(300, "old"))
    assert ended(api, place)["stack_status"] == "CREATE_COMPLETE"
    assert api.put(place, json={"template": layers(300, "new")}).status_code == 202
    os.kill(api.up.child("celery"), signal.SIGKILL)  # type: ignore[attr-defined]
    stack = ended(api, place)
    assert stack["stack_status"] == "UPDATE_COMPLETE"
    assert stack["outputs"][0]["output_value"] == "new"


def test_updates_in_rapid_fire_end_as_the_last(api: httpx.Client) -> None:
    place = create(api, "rapid", layers(60, "v0"))
    for number in range(1, 11):
        assert api.put(place, json={"template": layers(60, f"v{number}")}).status_code == 202
    stack = ended(api, place)
    assert (stack["stack_status"], stack["outputs"][0]["output_value"]) == ("UPDATE_COMPLETE", "v10")
    history = api.get(f"{place}/revisions").json()["revisions"]
    assert [item["outcome"] for item in history[:1]] == ["complete"]
    assert {item["outcome"] for item in history[1:]} <= {"complete", "superseded"}
    assert len(history) == 11
    assert api.post(f"{place}/revisions/1/rollback").status_code == 202
    stack = ended(api, place)
    assert (stack["stack_status"], stack["outputs"][0]["output_value"]) == ("ROLLBACK_COMPLETE", "v0")
    assert api.get(f"{place}/revisions/12").json()["revision"]["copy_of"] == 1
    assert api.delete(place).status_code == 204


def test_a_forbidden_update_is_refused_and_changes_nothing(api: httpx.Client) -> None:
    place = create(api, "refused", layers(3, "x"))
    assert ended(api, place)["stack_status"] == "CREATE_COMPLETE"
    for body in ({}, {"template": {"heat_template_version": VERSION, "nonsense": 1}}):
        assert api.put(place, json=body).status_code == 400
    answer = api.post(f"{place}/actions", json={"cancel_update": None})
    assert answer.status_code == 400
    message = "Cancelling update when stack is CREATE_COMPLETE is not supported."
    assert answer.json()["error"]["message"] == message
    for body, said in (
        ({}, "No action specified"),
        ({"a": 1, "b": 2}, "Multiple actions specified"),
        ({"dance": None}, "Invalid action dance specified"),
    ):
        assert api.post(f"{place}/actions", json=body).json()["error"]["message"] == said
    assert ended(api, place)["stack_status"] == "CREATE_COMPLETE"


def test_a_large_update_goes_through_a_process_of_its_own(api: httpx.Client) -> None:
    long = {"entity_name": "x" * 60}
    assert len(json.dumps(layers(800, "old", **long))) > config.INLINE_BODY_SIZE
    place = create(api, "large", layers(800, "old", **long))
    assert ended(api, place)["stack_status"] == "CREATE_COMPLETE"
    template = layers(800, "old", **long)
    template["resources"]["r799"]["properties"]["value"] = "just this"
    assert api.put(place, json={"template": template}).status_code == 202
    stack = ended(api, place)
    assert (stack["stack_status"], stack["outputs"][0]["output_value"]) == ("UPDATE_COMPLETE", "just this")
    body = api.get(f"{place}/revisions/1/diff/2").json()["diff"]["sections"]  # the same in a single answer
    assert list(body) == ["resources"]
    [changed] = body["resources"]["changed"]
    assert (changed["name"], changed["changes"][0]["path"]) == ("r799", "properties.value")


def test_a_large_preview_goes_through_a_process_of_its_own(api: httpx.Client) -> None:
    """And is written as it is read: there are more than a thousand resources."""
    place = create(api, "foreseen", layers(1200, "old"))
    assert ended(api, place)["stack_status"] == "CREATE_COMPLETE"
    template = layers(1200, "old")
    template["resources"]["r1189"]["properties"]["value"] = "just this"
    answer = api.put(f"{place}/preview", json={"template": template})
    assert answer.status_code == 200, answer.text
    changes = answer.json()["resource_changes"]
    assert {turn: len(held) for turn, held in changes.items()} == {
        "unchanged": 1198,
        "updated": 2,
        "replaced": 0,
        "added": 0,
        "deleted": 0,
    }
    assert [item["resource_name"] for item in changes["updated"]] == ["r1189", "r1199"]
    assert changes["updated"][1]["because"] == "value changes (r1189 is changed)"
    answer = api.post("/stacks/preview", json={"stack_name": "other", "template": template})
    assert len(answer.json()["stack"]["resources"]) == 1200
    body = {"stack_name": "foreseen", "template": template}
    assert api.post("/stacks/preview", json=body).status_code == 409
