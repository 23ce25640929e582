"""Stacks over HTTP (docs/internals/rest-api.md §3, §5, §9): identity, show, documents, requests."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import uuid

import orjson
import pytest

from orchestrator.security.tokens import create_token
from tests.integration.api_world import OUTLINE, START, TEMPLATE, Client, World, api, project, root, world  # noqa: F401 - fixtures


def test_a_name_an_id_or_an_arn_redirects_with_the_query_kept(
    api: Client, world: World, project: str
) -> None:
    made = world.stack(project, "s")
    arn = f"arn:openstack:heat::{project}:stacks/s/{made.uuid}"
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        for reference in ("s", str(made.uuid), str(made.uuid).upper(), arn):
            response = api.http.open(
                f"/v1{root(project)}/stacks/{reference}?a=1&b=%20x", method=method, json={}
            )
            assert response.status_code == 302
            assert response.headers["Location"] == f"http://localhost/v1{made.path}?a=1&b=%20x"


def test_paths_below_an_arn_redirect_too(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "s")
    arn = f"arn:openstack:heat::{project}:stacks/s/{made.uuid}"
    below = api.http.get(f"/v1{root(project)}/stacks/{arn}/resources/a%20b/metadata?x=1")
    assert (below.status_code, below.headers["Location"]) == (
        302,
        f"http://localhost/v1{made.path}/resources/a%20b/metadata?x=1",
    )
    for tricky in ("", "resources//a", "../s", "resources/%2e%2e/x"):
        assert api.http.get(f"/v1{root(project)}/stacks/{arn}/{tricky}").status_code == 404


def test_paths_below_a_stack_redirect_too(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "s")
    for keyword in ("resources", "events", "template", "actions", "environment", "files"):
        response = api.http.get(f"/v1.0{root(project)}/stacks/s/{keyword}?x=1")
        assert response.headers["Location"] == f"http://localhost/v1.0{made.path}/{keyword}?x=1"
    assert api.http.post(f"/v1{root(project)}/stacks/s/actions").status_code == 302
    assert api.http.post(f"/v1{root(project)}/stacks/s/files").status_code == 405
    for keyword in ("outputs", "snapshots", "export"):
        assert (
            api.message("GET", f"{root(project)}/stacks/s/{keyword}", 404)
            == "The Stack (s) could not be found."
        )


def test_name_and_id_must_both_match(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "s")
    stacks = f"{root(project)}/stacks"
    for path in (f"wrongname/{made.uuid}", f"wrongname/{uuid.uuid4()}", "wrongname/not-a-uuid", "wrongname"):
        body = api.get(f"{stacks}/{path}", 404)
        assert body["error"]["type"] == "EntityNotFound"
        assert body["error"]["message"] == "The Stack (wrongname) could not be found."
    wrong_arn = f"arn:openstack:heat::another:stacks/s/{made.uuid}"
    api.get(f"{stacks}/{wrong_arn}", 404)


def test_a_deleted_stack_is_found_by_id_only_and_its_name_is_free(
    api: Client, world: World, project: str
) -> None:
    gone = world.stack(project, "s", action="DELETE", deleted_at=START)
    api.get(f"{root(project)}/stacks/s", 404)
    api.get(f"{root(project)}/stacks/{gone.uuid}", 302)
    shown = api.get(gone.path)["stack"]
    assert shown["stack_status"] == "DELETE_COMPLETE"
    assert shown["deletion_time"] == "2026-01-01T12:00:00Z"
    assert "outputs" not in shown
    assert api.get(f"{gone.path}/template") == TEMPLATE
    assert api.message("DELETE", gone.path, 404) == "The Stack (s) could not be found."
    again = world.stack(project, "s")
    assert api.http.get(f"/v1{root(project)}/stacks/s").headers["Location"].endswith(str(again.uuid))


def test_show_has_every_field(api: Client, world: World, project: str) -> None:
    made = world.stack(
        project, "s", tags=["x", "y"], timeout_mins=5, updated_at=START + dt.timedelta(hours=1)
    )
    shown = api.get(made.path)["stack"]
    assert shown == {
        "id": str(made.uuid),
        "links": [{"rel": "self", "href": f"http://localhost/v1{made.path}"}],
        "stack_name": "s",
        "description": "Two of them",
        "template_description": "Two of them",
        "stack_status": "CREATE_COMPLETE",
        "stack_status_reason": "Stack CREATE completed successfully",
        "creation_time": "2026-01-01T12:00:00Z",
        "updated_time": "2026-01-01T13:00:00Z",
        "deletion_time": None,
        "parameters": {
            "OS::stack_id": str(made.uuid),
            "OS::stack_name": "s",
            "OS::project_id": project,
            "size": "3",
            "names": "a,b",
            "password": "******",
        },
        "outputs": [
            {"output_key": "it", "description": "That one", "output_value": [1, 2]},
            {
                "output_key": "broken",
                "description": "No description given",
                "output_value": None,
                "output_error": "no such thing",
            },
        ],
        "disable_rollback": True,
        "keep_going": False,
        "resume": None,
        "timeout_mins": 5,
        "stack_owner": "somebody",
        "parent": None,
        "stack_user_project_id": None,
        "tags": ["x", "y"],
        "capabilities": [],
        "notification_topics": [],
    }


def test_outputs_are_left_out_when_not_wanted(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "s", revision={"outline": {**OUTLINE, "description": ""}})
    shown = api.get(f"{made.path}?resolve_outputs=False")["stack"]
    assert "outputs" not in shown
    assert shown["tags"] == []
    assert shown["description"] == "No description"


def test_an_output_whose_condition_does_not_hold_is_not_listed_and_has_no_value(
    api: Client, world: World, project: str
) -> None:
    outline = {**OUTLINE, "outputs": {}, "unwanted_outputs": {"off": "Of no use"}}
    made = world.stack(project, "s", revision={"outline": outline})
    assert api.get(f"{made.path}/outputs") == {"outputs": []}
    assert api.get(f"{made.path}/outputs/off")["output"] == {
        "output_key": "off",
        "description": "Of no use",
        "output_value": None,
    }


def test_outputs_are_listed_without_and_shown_with_their_value(
    api: Client, world: World, project: str
) -> None:
    made = world.stack(project, "s")
    assert api.get(f"{made.path}/outputs") == {
        "outputs": [
            {"output_key": "it", "description": "That one"},
            {"output_key": "broken", "description": "No description given"},
        ]
    }
    assert api.get(f"{made.path}/outputs/it")["output"]["output_value"] == [1, 2]
    assert api.get(f"{made.path}/outputs/broken")["output"]["output_error"] == "no such thing"
    assert api.message("GET", f"{made.path}/outputs/zz", 404) == "Specified output key zz not found."


def test_template_environment_and_files_equal_the_request(api: Client, world: World, project: str) -> None:
    long = "aé€😀\n" * 300_000  # longer than a slice, so that characters are cut in two
    files = {'a "quoted" name': world.content(long.encode()).hex(), "empty": world.content(b"").hex()}
    environment = {
        "parameters": {"size": 4, "password": "secret"},
        "parameter_defaults": {"password": "secret"},
    }
    made = world.stack(project, "s", revision={"files": files, "environment": environment})
    assert api.get(f"{made.path}/template") == TEMPLATE
    assert api.get(f"{made.path}/files") == {'a "quoted" name': long, "empty": ""}
    assert api.get(f"{made.path}/environment") == {
        "parameters": {"size": 4, "password": "******"},
        "parameter_defaults": {"password": "******"},
        "resource_registry": {"resources": {}},
        "encrypted_param_names": [],
        "event_sinks": [],
    }


def test_a_large_template_comes_in_slices(api: Client, world: World, project: str) -> None:
    body = orjson.dumps({"heat_template_version": "2021-04-16", "description": "x" * 5_000_000})
    made = world.stack(project, "s", revision={"template_hash": world.content(body)})
    response = api.http.get(f"/v1{made.path}/template", buffered=False)
    slices = list(response.iter_encoded())
    assert len(slices) > 3
    assert b"".join(slices) == body


def test_create_answers_201_with_the_place_and_publishes_afterwards(
    api: Client, world: World, project: str
) -> None:
    world.neighbour.published.clear()
    response = api.http.post(
        f"/v1{root(project)}/stacks", data=b'{"stack_name": "made"}', content_type="application/json"
    )
    place = f"http://localhost/v1{root(project)}/stacks/made/7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"
    assert response.status_code == 201
    assert response.headers["Location"] == place
    assert response.json == {
        "stack": {"id": "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01", "links": [{"rel": "self", "href": place}]}
    }
    assert world.neighbour.bodies[-1] == b'{"stack_name": "made"}'
    assert world.neighbour.projects[-1] == project
    assert [message.node_id for message in world.neighbour.published] == [1]


def test_delete_answers_204_and_publishes(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "s")
    world.neighbour.published.clear()
    assert api.ask("DELETE", made.path, 204) is None
    assert world.neighbour.deleted[-1] == "s"
    assert [message.node_id for message in world.neighbour.published] == [2]


@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
def test_an_update_answers_202_and_publishes(api: Client, world: World, project: str, verb: str) -> None:
    made = world.stack(project, "s")
    world.neighbour.published.clear()
    assert api.ask(verb, made.path, 202, json={"template": {}}) is None
    assert [message.node_id for message in world.neighbour.published] == [3]
    assert world.neighbour.patched == (verb == "PATCH")
    by_name = api.http.open(f"/v1{root(project)}/stacks/s", method=verb)
    assert (by_name.status_code, by_name.headers["Location"].endswith(made.path)) == (302, True)


def test_an_action_answers_200_with_null(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "s")
    world.neighbour.published.clear()
    assert api.ask("POST", f"{made.path}/actions", 200, json={"cancel_update": None}) is None
    assert [message.node_id for message in world.neighbour.published] == [4]


@pytest.mark.parametrize(
    ("content_type", "arrives"),
    [
        ("application/json", True),
        ("text/plain; charset=utf-8", True),
        ("", True),
        ("application/x-yaml", False),
    ],
)
def test_only_json_and_plain_text_are_bodies(
    world: World, project: str, content_type: str, arrives: bool
) -> None:
    """In modes whose credentials no browser adds; docs/security.md describes the other modes."""
    token = create_token(world.database, project, "tests")
    world.client(auth="token").http.post(
        f"/v1{root(project)}/validate?show_nested=true",
        data=b"{}",
        content_type=content_type,
        headers={"X-Auth-Token": token},
    )
    assert world.neighbour.bodies[-1] == (b"{}" if arrives else b"")


def test_a_large_body_arrives_as_a_file_and_a_larger_body_is_refused(world: World, project: str) -> None:
    api = world.client(inline_body_size=1_000, max_json_body_size=100_000)
    stacks = f"{root(project)}/stacks"
    for size in (1_000, 1_001, 100_000):
        api.ask("POST", stacks, 201, data=b"x" * size, content_type="application/json")
        assert len(world.neighbour.bodies[-1]) == size
        assert (world.neighbour.in_files[-1] is not None) == (size > 1_000)
    body = api.ask("POST", stacks, 400, data=b"x" * 100_001, content_type="application/json")
    assert body["error"]["type"] == "RequestLimitExceeded"
    assert body["error"]["message"] == (
        "Request limit exceeded: JSON body size (100001 bytes) exceeds maximum allowed size (100000 bytes)."
    )
    assert not any(path.exists() for path in world.neighbour.in_files if path is not None)


@pytest.mark.parametrize(
    ("method", "below"),
    [
        ("POST", "/actions"),
        ("POST", "/snapshots"),
        ("POST", "/resources/one/signal"),
        ("PATCH", "/resources/one"),
    ],
)
def test_routes_without_a_template_refuse_large_bodies(
    api: Client, world: World, project: str, method: str, below: str
) -> None:
    stack = world.stack(project, "s")
    world.resource(stack, "one")
    body, requests = b'{"a":"' + b"x" * (1 << 20) + b'"}', len(world.neighbour.bodies)
    message = api.message(
        method, stack.path + below, 400, data=body, headers={"Content-Type": "application/json"}
    )
    assert message == (
        f"Request limit exceeded: JSON body size ({len(body)} bytes) exceeds maximum allowed size "
        "(1048576 bytes)."
    )
    assert len(world.neighbour.bodies) == requests
