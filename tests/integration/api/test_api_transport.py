"""Steps of every request before and after its view (docs/internals/rest-api.md §1, §2)."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import re
from urllib.parse import quote

import pytest
from sqlalchemy import update

from orchestrator.errors import Diagnostic, InvalidTemplate, Misconfigured, StackExists
from orchestrator.security.tokens import create_token, find_token, list_tokens, revoke_token
from orchestrator.store.connections.database import Database
from orchestrator.store.tables.access import ApiToken
from tests.integration.api_world import Client, World, api, project, root, world  # noqa: F401 - fixtures

EXPLANATION = (
    "The server could not comply with the request since it is either malformed or otherwise incorrect."
)


def test_the_root_lists_the_versions_as_multiple_choices(world: World) -> None:
    bare = world.client(base="")
    for path in ("/", "/versions", "/v2/p/stacks"):
        [version] = bare.get(path, 300)["versions"]
        assert version["id"] == "v1.0"
        assert version["links"] == [{"rel": "self", "href": "http://localhost/v1/"}]


def test_the_path_of_a_project_shows_its_version_to_anonymous_callers(world: World, project: str) -> None:
    api = world.client(auth="token")
    for prefix in ("/v1", "/v1.0"):
        reported = api.http.get(f"{prefix}/{quote(project)}")
        assert (reported.status_code, reported.json["version"]["id"]) == (200, "v1.0")
        assert reported.json["version"]["links"] == [{"rel": "self", "href": f"http://localhost{prefix}/"}]


def test_a_path_without_a_version_or_with_nothing_behind_it_is_not_found(world: World, project: str) -> None:
    bare = world.client(base="")
    for path in (
        "/v1",
        "/v1/",
        f"{root(project)}/stacks",
        "/v1/healthcheck",
        f"/v1{root(project)}/stacks/",
        "/nowhere",
    ):
        body = bare.get(path, 404)
        assert body["error"]["type"] == "HTTPNotFound"
        assert body["explanation"] == "The resource could not be found."


def test_an_accept_header_stands_for_the_version(world: World, project: str) -> None:
    accept = {"Accept": "application/vnd.openstack.orchestration-v1.0"}
    assert world.client(base="").get(f"{root(project)}/stacks", headers=accept) == {"stacks": []}


def test_links_echo_the_prefix_the_caller_used(world: World, project: str) -> None:
    made = world.stack(project, "s")
    for prefix in ("/v1", "/v1.0"):
        shown = world.client(base=prefix).get(made.path)["stack"]
        assert shown["links"] == [{"rel": "self", "href": f"http://localhost{prefix}{made.path}"}]


def test_forwarded_headers_count_only_behind_a_proxy(world: World, project: str) -> None:
    made = world.stack(project, "s")
    headers = {
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "cloud.example",
        "X-Forwarded-Prefix": "/heat",
    }
    shown = world.client().get(made.path, headers=headers)["stack"]
    assert shown["links"][0]["href"] == f"http://localhost/v1{made.path}"
    behind = {"trusted_proxies": 1, "allowed_hosts": "cloud.example"}
    shown = world.client(**behind).get(made.path, headers=headers)["stack"]
    assert shown["links"][0]["href"] == f"https://cloud.example/heat/v1{made.path}"
    shown = world.client(**behind, trusted_proxy_addresses="192.0.2.0/24").get(made.path, headers=headers)
    assert shown["stack"]["links"][0]["href"] == f"http://localhost/v1{made.path}"


def test_the_health_check_needs_no_token(world: World) -> None:
    response = world.client(base="", auth="token").http.get("/healthcheck")
    assert (response.status_code, response.text) == (200, "OK")


def test_every_answer_carries_a_request_id_of_its_own(api: Client, project: str) -> None:
    ids = {
        api.http.get(f"/v1{path}").headers["x-openstack-request-id"]
        for path in (f"{root(project)}/stacks", "/x", "/")
    }
    assert len(ids) == 3
    assert all(re.fullmatch(r"req-[0-9a-f-]{36}", item) for item in ids)


def test_options_lists_the_allowed_methods(api: Client, project: str) -> None:
    response = api.http.options(f"/v1{root(project)}/stacks")
    assert response.status_code == 204
    assert response.headers["Allow"] == "GET,POST"
    assert response.data == b""
    assert api.http.options("/v1/p/q/r/s/t/u/v/w").status_code == 404


def test_the_wrong_method_is_405_with_the_allowed_methods(api: Client, project: str) -> None:
    response = api.http.put(f"/v1{root(project)}/stacks")
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET,POST"
    assert response.json["error"]["type"] == "HTTPMethodNotAllowed"


def test_head_is_not_an_implicit_get(api: Client, world: World, project: str) -> None:
    for path in (f"{root(project)}/stacks", world.stack(project, "s").path):
        assert api.http.head(f"/v1{path}").status_code == 405


@pytest.mark.parametrize(
    "name", ["show_deleted", "show_nested", "show_hidden", "global_tenant", "with_count", "with_progress"]
)
def test_a_boolean_is_true_or_false(api: Client, project: str, name: str) -> None:
    stacks = f"{root(project)}/stacks"
    for invalid in ("1", "yes", "maybe"):
        text = api.message("GET", f"{stacks}?{name}={invalid}", 400)
        assert text == f'Unrecognized value "{invalid}" for "{name}", acceptable values are: true, false.'
    for fine in ("", "FALSE", "False"):
        api.get(f"{stacks}?{name}={fine}")


def test_a_quota_is_a_nonnegative_integer(api: Client, project: str) -> None:
    stacks = f"{root(project)}/stacks"
    assert api.message("GET", f"{stacks}?limit=ten", 400) == "Only integer is acceptable by 'limit'."
    assert api.message("GET", f"{stacks}?limit=-1", 400) == (
        "Value '-1' is invalid for 'limit' which only accepts non-negative integer."
    )
    api.get(f"{stacks}?limit=")
    api.get(f"{stacks}?limit={'9' * 40}")


def test_unrepresentable_text_is_refused(api: Client, project: str) -> None:
    assert api.get(f"{root(project)}/stacks/a%00b", 404)["code"] == 404
    assert api.get(f"{root(project)}/stacks?name=a%00b", 400)["code"] == 400


def test_an_error_has_heats_shape(api: Client, world: World, project: str) -> None:
    world.neighbour.error = StackExists("s")
    body = api.ask("POST", f"{root(project)}/stacks", 409, json={})
    assert body["title"] == "Conflict"
    assert body["explanation"] == "There was a conflict when trying to complete your request."
    assert body["error"]["type"] == "StackExists"
    assert body["error"]["message"] == "The Stack (s) already exists."
    assert [problem["code"] for problem in body["error"]["errors"]] == ["stack-exists"]
    world.neighbour.error = None


def test_all_faults_of_a_template_are_listed(api: Client, world: World, project: str) -> None:
    world.neighbour.error = InvalidTemplate(
        [
            Diagnostic(
                "unknown-property",
                "Unknown Property x",
                "resources.a.properties.x",
                3,
                7,
                hint="did you mean y?",
            ),
            Diagnostic("unknown-type", "no such type", "resources.b"),
        ]
    )
    body = api.ask("POST", f"{root(project)}/stacks", 400, json={})
    assert (body["explanation"], body["error"]["type"]) == (EXPLANATION, "StackValidationFailed")
    assert body["error"]["message"] == "Unknown Property x"
    first, second = body["error"]["errors"]
    assert (first["code"], first["path"], first["line"], first["column"], first["hint"]) == (
        "unknown-property",
        "resources.a.properties.x",
        3,
        7,
        "did you mean y?",
    )
    assert (second["message"], second["line"]) == ("no such type", None)
    assert api.ask("POST", f"{root(project)}/validate", 400, json={})["error"]["type"] == "HTTPBadRequest"
    world.neighbour.error = None


@pytest.mark.parametrize("error", [KeyError("secret"), Misconfigured("secret key")])
def test_an_unexpected_error_says_nothing_but_an_id_that_is_logged(
    api: Client, world: World, project: str, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    world.neighbour.error = error
    body = api.ask("POST", f"{root(project)}/stacks", 500, json={})
    world.neighbour.error = None
    assert body["explanation"].startswith("The server has either erred")
    assert "message" not in body["error"]
    assert "secret" not in str(body)
    logged = capsys.readouterr()
    assert body["error"]["id"] in logged.out + logged.err


def test_a_database_out_of_reach_is_503(world: World, project: str) -> None:
    near = world.database
    world.database = Database("postgresql://127.0.0.1:1/nothing")
    try:
        body = world.client().get(f"{root(project)}/stacks", 503)
    finally:
        world.database = near
    assert body["title"] == "Service Unavailable"


def test_without_a_valid_token_nothing_is_sent(world: World, project: str) -> None:
    api = world.client(auth="token")
    gone = create_token(
        world.database, project, "old", expires_at=dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    )
    for headers in (
        {},
        {"X-Auth-Token": "wrong"},
        {"X-Auth-Token": gone},
        {"X-Auth-Token": "\udcff".encode("utf-8", "surrogateescape").decode("latin-1")},
    ):
        for path in (f"{root(project)}/stacks", "/no/such/path"):
            response = api.http.get(f"/v1{path}", headers=headers)
            assert response.status_code == 401
            assert "WWW-Authenticate" in response.headers
            assert response.json == {
                "error": {
                    "code": 401,
                    "title": "Unauthorized",
                    "message": "The request you have made requires authentication.",
                }
            }


def test_a_token_opens_its_own_project_only_until_it_is_revoked(world: World, project: str) -> None:
    api = world.client(auth="token")
    headers = {"X-Auth-Token": create_token(world.database, project, "mine")}
    assert api.get(f"{root(project)}/stacks", headers=headers) == {"stacks": []}
    assert api.message("GET", f"{root(world.project())}/stacks", 403, headers=headers) == (
        "Access was denied to this resource."
    )
    [token] = list_tokens(world.database, project)
    assert revoke_token(world.database, token.id)
    assert not revoke_token(world.database, token.id)
    api.get(f"{root(project)}/stacks", 401, headers=headers)


def test_a_token_is_not_taken_for_an_option_and_is_found_in_leaked_texts(world: World, project: str) -> None:
    assert {create_token(world.database, project)[:4] for _ in range(70)} == {"orc_"}


def test_a_tokens_text_is_stored_nowhere(world: World, project: str) -> None:
    text = create_token(world.database, project, "mine")
    with world.database.engine.connect() as connection:
        row = connection.execute(ApiToken.__table__.select().where(ApiToken.project_id == project)).one()
    assert text not in repr(row)
    result = find_token(world.database, text)
    assert result is not None
    assert (result.project_id, result.name) == (project, "mine")
    with world.database.engine.begin() as connection:
        past = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
        connection.execute(update(ApiToken).where(ApiToken.id == result.id).values(expires_at=past))
    assert find_token(world.database, text) is None
