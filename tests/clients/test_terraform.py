"""Requests of Terraform's OpenStack provider through gophercloud, request for request (as of 2025).

Go is not available here; the requests are sent in the same form and the answers read with the same
strictness.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.clients.conftest import TEMPLATE
from tests.clients.stock import Openstack
from tests.e2e.running import eventually

# stacks.Create, Update: the statuses that Go's HTTP client and gophercloud accept as success.
CREATED, ACCEPTED, DELETED = {201, 202}, {201, 202}, {202, 204}


@pytest.fixture
def go(openstack: Openstack) -> Iterator[httpx.Client]:
    """A client that follows a redirect of a GET with the same headers, and of nothing else."""
    headers = {"Accept": "application/json", "User-Agent": "HashiCorp Terraform/1.9 gophercloud/v2.0.0"}
    with httpx.Client(base_url=openstack.endpoint, headers=headers, timeout=30) as client:
        yield client


def find_user_objects(go: httpx.Client, identity: str) -> dict[str, Any]:
    """Return `stacks.Find`, decoded into gophercloud's RetrievedStack."""
    answer = go.get(f"/stacks/{identity}", follow_redirects=True)
    assert answer.status_code == 200
    stack: dict[str, Any] = answer.json()["stack"]
    for name in "id", "stack_name", "stack_status", "stack_status_reason", "description":
        assert isinstance(stack[name], str)
    for name in "creation_time", "updated_time":  # RFC 3339, or null
        assert stack[name] is None or dt.datetime.strptime(stack[name], "%Y-%m-%dT%H:%M:%S%z")
    assert all(isinstance(value, str) for value in stack["parameters"].values())
    assert all(isinstance(tag, str) for tag in stack["tags"])
    assert isinstance(stack["disable_rollback"], bool)
    assert stack["timeout_mins"] is None or isinstance(stack["timeout_mins"], int)
    assert (stack["capabilities"], stack["notification_topics"]) == ([], [])
    assert all({"rel", "href"} <= link.keys() for link in stack["links"])
    return stack


def test_a_stack_of_terraforms_is_created_read_updated_and_destroyed(go: httpx.Client) -> None:
    body = {
        "stack_name": "one",
        "disable_rollback": True,
        "parameters": {"value": "first"},
        "timeout_mins": 10,
        "template": TEMPLATE,  # as text
        "environment": "parameter_defaults: {secret: kept}\n",  # as text, too
        "files": {"unused": "x"},
        "tags": ",,red,blue",  # the provider adds an empty tag in front for each tag
    }
    made = go.post("/stacks", json=body)
    assert made.status_code in CREATED
    identity = made.json()["stack"]["id"]
    assert made.json()["stack"]["links"][0]["rel"] == "self"
    # WaitForState: pending, then target; anything else is an error.
    observed: list[str] = []

    def refreshed(*ended: str) -> bool:
        observed.append(find_user_objects(go, identity)["stack_status"])
        return observed[-1] in ended

    eventually(lambda: refreshed("CREATE_COMPLETE"))
    assert set(observed) <= {"CREATE_IN_PROGRESS", "CREATE_COMPLETE"}
    stack = find_user_objects(go, identity)
    assert (stack["stack_name"], stack["tags"], stack["timeout_mins"]) == ("one", ["red", "blue"], 10)
    assert (stack["outputs"][0]["output_key"], stack["outputs"][0]["output_value"]) == ("it", "first")
    # Update: a full replacement without tags, then a read at once.
    again = {"template": TEMPLATE, "parameters": {"value": "second"}, "timeout_mins": 20, "tags": ""}
    assert go.put(f"/stacks/one/{identity}", json=again).status_code in ACCEPTED
    stack = find_user_objects(go, identity)
    assert stack["stack_status"] in {"UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"}
    assert (stack["tags"], stack["timeout_mins"]) == ([], 20)
    eventually(lambda: refreshed("UPDATE_COMPLETE"))
    # UpdatePatch of gophercloud: only the given fields.
    assert go.patch(f"/stacks/one/{identity}", json={"parameters": {"value": "third"}}).status_code in {
        200,
        202,
        204,
    }
    eventually(lambda: find_user_objects(go, identity)["parameters"]["value"] == "third")
    eventually(lambda: refreshed("UPDATE_COMPLETE"))
    observed.clear()
    assert go.delete(f"/stacks/one/{identity}").status_code in DELETED
    eventually(lambda: refreshed("DELETE_COMPLETE"))  # by id it is found to the end, and after it
    assert set(observed) <= {"DELETE_IN_PROGRESS", "DELETE_COMPLETE"}
    assert go.get("/stacks/one", follow_redirects=True).status_code == 404
    gone = go.delete(f"/stacks/one/{identity}")
    assert gone.status_code == 404  # the provider reads this as "destroyed already"


def test_refusals_have_the_status_expected_by_the_provider(go: httpx.Client) -> None:
    refused = go.post("/stacks", json={"stack_name": "one", "template": "heat_template_version: 2000-01-01"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"]
    assert go.get("/stacks/5a0a6c5e-0b3e-4c51-8e16-3c2b2a5bd5b8", follow_redirects=True).status_code == 404
    assert go.post("/stacks", json={"stack_name": "one", "template": TEMPLATE}).status_code == 201
    assert go.post("/stacks", json={"stack_name": "one", "template": TEMPLATE}).status_code == 409


def test_gophercloud_lists_previews_validates_and_looks_inside(go: httpx.Client) -> None:
    body = {"stack_name": "one", "timeout_mins": 5, "template": TEMPLATE}
    preview = go.post("/stacks/preview", json=body)
    assert (preview.status_code, preview.json()["stack"]["stack_name"]) == (200, "one")
    checked = go.post("/validate", json={"template": TEMPLATE})
    assert (checked.status_code, checked.json()["Description"]) == (200, "Two of them")
    go.post("/stacks", json=body)
    eventually(lambda: find_user_objects(go, "one")["stack_status"] == "CREATE_COMPLETE")
    query = "sort_keys=name&sort_dir=asc&show_deleted=true&limit=1"
    (listed,) = go.get(f"/stacks?{query}").json()["stacks"]
    assert (listed["stack_name"], listed["tags"]) == ("one", None)
    stack = f"/stacks/one/{listed['id']}"
    assert go.get(f"{stack}/template").json()["description"] == "Two of them"
    (first, second) = go.get(f"{stack}/resources?nested_depth=1").json()["resources"]
    assert (first["required_by"], second["required_by"]) == (["second"], [])
    resource = go.get(f"{stack}/resources/second").json()["resource"]
    assert (resource["physical_resource_id"], resource["attributes"]) == (
        second["physical_resource_id"],
        {"output": "short"},
    )
    assert go.get(f"{stack}/resources/second/metadata").json()["metadata"] == {"shelf": "top"}
    marked = go.patch(
        f"{stack}/resources/second", json={"mark_unhealthy": True, "resource_status_reason": "x"}
    )
    assert marked.status_code in {200, 201}
    newest = go.get("/stacks/one/events", follow_redirects=True).json()["events"][0]
    assert newest["resource_status"] == "CHECK_FAILED"
    events = go.get(f"{stack}/resources/first/events?limit=1&sort_dir=asc").json()["events"]
    event = go.get(f"{stack}/resources/first/events/{events[0]['id']}").json()["event"]
    assert isinstance(event["resource_properties"], dict)
    assert go.get("/resource_types?support_status=SUPPORTED").status_code == 200
    assert go.get("/build_info").json()["api"]["revision"]
    assert go.request("DELETE", f"{stack}/abandon").status_code == 200
