"""The application as it is served: its own wiring, real operations, real servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from sqlalchemy import text

from api.app import create_app
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured
from orchestrator.security.encryption import new_key
from orchestrator.store.connections.database import Database
from tests.integration.api_world import Client
from tests.profiles import examples

TEMPLATE = """
heat_template_version: 2021-04-16
description: Two of them
parameters:
  size: {type: number, default: 8, constraints: [{range: {min: 4, max: 16}}]}
  key: {type: string, hidden: true, default: secret}
resources:
  one: {type: OS::Heat::RandomString, properties: {length: {get_param: size}}}
  two: {type: OS::Heat::Value, depends_on: one, properties: {value: fixed}}
outputs:
  it: {value: {get_attr: [two, value]}}
"""


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    """A fresh database."""
    made = Database(postgres_url)
    yield made
    made.engine.dispose()


@pytest.fixture
def served(database: Database, broker_url: str) -> Client:
    """A client of the application with the settings as shipped."""
    chosen = Settings(
        auth="none",
        broker_url=SecretStr(broker_url),
        encryption_keys=SecretStr(new_key()),
        max_json_body_size=1_000_000,
    )
    return Client(create_app(chosen, database).test_client(), "/v1")


def rows(database: Database) -> int:
    """Count the rows that a refused request must not leave behind."""
    with database.engine.connect() as connection:
        return connection.execute(
            text(
                "SELECT (SELECT count(*) FROM stack) + (SELECT count(*) FROM revision)"
                " + (SELECT count(*) FROM graph_node)"
            )
        ).scalar_one()


def test_a_stack_is_taken_on_shown_listed_and_deleted(served: Client, broker: redis.Redis) -> None:
    request = {"stack_name": "s", "template": TEMPLATE, "parameters": {"size": 5}, "timeout_mins": 10}
    made = served.ask("POST", "/p/stacks", 201, json=request)["stack"]
    assert broker.llen("bulk") == 1
    place = made["links"][0]["href"].removeprefix("http://localhost/v1")
    shown = served.get(place)["stack"]
    assert (shown["id"], shown["stack_status"]) == (made["id"], "CREATE_IN_PROGRESS")
    assert shown["parameters"]["size"] == "5"
    assert shown["parameters"]["key"] == "******"
    assert [output["output_key"] for output in shown["outputs"]] == ["it"]
    assert shown["stack_status_reason"] == "Stack CREATE started"
    assert served.names("/p/stacks") == ["s"]
    assert served.get(f"{place}/template")["resources"]["two"]["depends_on"] == "one"
    assert served.get(f"{place}/events")["events"][0]["physical_resource_id"] == made["id"]
    assert served.message("POST", "/p/stacks", 409, json=request) == "The Stack (s) already exists."
    assert served.ask("POST", "/other/stacks", 201, json=request)
    served.ask("DELETE", place, 204)
    assert served.get(place)["stack"]["stack_status"] == "DELETE_IN_PROGRESS"


def test_an_environment_file_that_gives_a_hidden_value_is_not_shown(served: Client) -> None:
    files = {"secret.yaml": "parameters: {key: S3CRET}", "open.yaml": "parameters: {size: 5}"}
    request = {"stack_name": "s", "template": TEMPLATE, "files": files, "environment_files": [*files]}
    place = served.ask("POST", "/p/stacks", 201, json=request)["stack"]["links"][0]["href"]
    place = place.removeprefix("http://localhost/v1")
    assert served.get(f"{place}/files") == {"open.yaml": files["open.yaml"]}
    assert served.get(f"{place}/environment")["parameters"] == {"key": "******", "size": 5}


def test_a_template_is_validated_without_a_trace(served: Client, database: Database) -> None:
    answer = served.ask("POST", "/p/validate", 200, json={"template": TEMPLATE})
    assert answer["Description"] == "Two of them"
    assert answer["Parameters"]["key"]["NoEcho"] == "true"
    assert rows(database) == 0


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("", "HTTPBadRequest", "No stack name specified"),
        ("[1]", "HTTPBadRequest", "No stack name specified"),
        (" {}", "HTTPBadRequest", "No stack name specified"),
        ("{", "HTTPBadRequest", None),
        ({"template": TEMPLATE}, "HTTPBadRequest", "No stack name specified"),
        ({"stack_name": "1s", "template": TEMPLATE}, "StackValidationFailed", None),
        ({"stack_name": "s"}, "HTTPBadRequest", "No template specified"),
        ({"stack_name": "s", "template": "a: ["}, "HTTPBadRequest", None),
        (
            {"stack_name": "s", "template": {"heat_template_version": "1999-01-01"}},
            "InvalidTemplateVersion",
            None,
        ),
        ({"stack_name": "s", "template": TEMPLATE, "parameters": {"zz": 1}}, "UnknownUserParameter", None),
        (
            {"stack_name": "s", "template": TEMPLATE, "parameters": {"size": 99}},
            "StackValidationFailed",
            None,
        ),
        ({"stack_name": "s", "template": TEMPLATE + "\0"}, None, None),
        ({"stack_name": "s\0", "template": TEMPLATE}, None, None),
        ({"stack_name": "s", "template": TEMPLATE.replace("fixed", '"\\0"')}, None, None),
        ({"stack_name": "s", "template": TEMPLATE.replace("fixed", '"\\ud800"')}, None, None),
        ({"stack_name": "s", "template": TEMPLATE, "parameters": {"key": "\0"}}, None, None),
        (
            {"stack_name": "s", "template": TEMPLATE, "environment": 'parameter_defaults: {zz: "\\0"}'},
            None,
            None,
        ),
        ({"stack_name": "s", "template": TEMPLATE, "files": {"f\0": "\0"}}, None, None),
        ({"stack_name": "s", "template": TEMPLATE, "tags": ["a"]}, None, None),
        ({"stack_name": "s", "template": TEMPLATE, "tags": "a\0"}, None, None),
        ({"stack_name": "s", "template": TEMPLATE, "timeout_mins": -1}, None, None),
        ({"stack_name": "s", "template": TEMPLATE, "timeout_mins": 10**18}, None, None),
        ({"stack_name": "s", "template": TEMPLATE, "disable_rollback": "perhaps"}, None, None),
    ],
)
def test_bad_input_is_refused_in_heats_words_and_leaves_nothing(
    served: Client, database: Database, body: Any, kind: str | None, message: str | None
) -> None:
    additional = (
        {"data": body, "content_type": "application/json"} if isinstance(body, str) else {"json": body}
    )
    refused = served.ask("POST", "/p/stacks", 400, **additional)
    assert refused["title"] == "Bad Request"
    assert kind in {None, refused["error"]["type"]}
    assert message in {None, refused["error"]["message"]}
    assert rows(database) == 0


def test_all_faults_come_at_once_with_their_places(served: Client) -> None:
    template = TEMPLATE.replace("depends_on: one", "depends_on: ono").replace(
        "get_attr: [two,", "get_attr: [too,"
    )
    body = served.ask("POST", "/p/stacks", 400, json={"stack_name": "s", "template": template})
    problems = body["error"]["errors"]
    assert len(problems) >= 2
    assert all(problem["line"] and problem["column"] and problem["path"] for problem in problems)
    assert "depends_on: ono" in problems[0]["excerpt"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
requests = st.fixed_dictionaries(
    {},
    optional={
        "stack_name": st.just("s") | json_values,
        "template": json_values
        | st.fixed_dictionaries(
            {"heat_template_version": st.just("2021-04-16")},
            optional={
                section: st.dictionaries(st.text(max_size=5), json_values, max_size=3) | json_values
                for section in ("parameters", "resources", "outputs", "parameter_groups", "description")
            },
        ),
        "parameters": json_values,
        "environment": json_values,
        "files": json_values,
        "tags": json_values,
        "timeout_mins": json_values,
        "disable_rollback": json_values,
    },
)


@settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(request=requests, path=st.sampled_from(["/p/stacks", "/p/validate"]))
def test_no_request_is_ever_an_internal_error(served: Client, request: dict[str, Any], path: str) -> None:
    response = served.http.post(f"/v1{path}", json=request)
    assert response.status_code in {200, 201, 400, 409}, (request, response.text)


@settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    body=st.binary(max_size=200)
    | st.text(max_size=50).map(lambda text: ("{" + text).encode("utf-8", "replace"))
)
def test_no_bytes_are_ever_an_internal_error(served: Client, body: bytes) -> None:
    answer = served.http.post("/v1/p/stacks", data=body, content_type="application/json")
    assert answer.status_code == 400


@settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(parts=["/"], query={})
@given(
    parts=st.lists(
        st.text(min_size=1, max_size=8) | st.sampled_from(["stacks", "events", "resources"]), max_size=6
    ),
    query=st.dictionaries(
        st.sampled_from(["limit", "marker", "sort_keys", "sort_dir", "id", "tags", "name", "timeout_mins"])
        | st.text(),
        st.text(max_size=10),
        max_size=3,
    ),
)
def test_no_path_is_ever_an_internal_error(served: Client, parts: list[str], query: dict[str, str]) -> None:
    response = served.http.get("/v1/" + "/".join(quote(part) for part in parts), query_string=query)
    # 300 is the list of versions: `/v1//` names no version
    assert response.status_code in {200, 300, 302, 400, 404}, (parts, query, response.text)


@pytest.mark.parametrize("path", ["/v1//stacks", "/v1.0//stacks/s", "/v1//"])
def test_an_empty_project_in_the_path_is_named(served: Client, path: str) -> None:
    response = served.http.get(path)
    assert response.status_code == 404
    assert response.json["error"]["message"] == "The project in the path is empty: /v1/<project>/…"


def test_an_unknown_query_parameter_of_our_own_endpoint_is_rejected(served: Client) -> None:
    response = served.http.get("/v1/p/webhooks?stat=dead&limit=1")
    assert response.status_code == 400
    assert response.json["error"]["message"] == (
        "Unknown query parameter: stat. Allowed: limit, marker, state."
    )


def test_it_refuses_to_serve_strangers_or_without_a_key(database: Database) -> None:
    with pytest.raises(Misconfigured, match="ORCHESTRATOR_AUTH is not set"):
        create_app(Settings(), database)
    with pytest.raises(Misconfigured, match="ORCHESTRATOR_AUTH"):
        create_app(Settings(host="0.0.0.0", auth="none"), database)
    with pytest.raises(Misconfigured, match="ORCHESTRATOR_ENCRYPTION_KEYS"):
        create_app(Settings(auth="none", encryption_keys=None), database)
    key = SecretStr(new_key())
    with pytest.raises(Misconfigured, match="ORCHESTRATOR_BROKER_URL"):
        create_app(Settings(auth="none", encryption_keys=key, broker_url=None), database)
    create_app(
        Settings(host="0.0.0.0", auth="token", encryption_keys=key), database, publish=lambda rings: None
    )
