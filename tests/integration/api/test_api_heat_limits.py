"""Heat's own limits, `limits = heat`: each refused with Heat's status and words
(docs/internals/rest-api.md §17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from api.app import create_app
from orchestrator.config import Settings
from orchestrator.security.encryption import new_key
from orchestrator.store.connections.database import Database
from tests.integration.api_world import Client

BASE = {"heat_template_version": "2021-04-16"}
PROJECT = "/p"


@pytest.fixture(scope="module")
def database(new_database: Callable[[], str]) -> Iterator[Database]:
    """A database shared by the tests of this module."""
    made = Database(new_database())
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def heats(database: Database) -> Client:
    """A client of an installation with Heat's limits."""
    chosen = Settings(auth="none", encryption_keys=SecretStr(new_key()), limits="heat")
    return Client(create_app(chosen, database, lambda _: None).test_client(), "/v1")


def many(count: int) -> dict[str, Any]:
    return {**BASE, "resources": {f"r{number}": {"type": "OS::Heat::None"} for number in range(count)}}


def refused(client: Client, body: dict[str, Any], path: str = "/stacks") -> tuple[str, str]:
    """Return type and message of a 400."""
    data = orjson.dumps({"stack_name": "s", **body})
    error = client.ask("POST", PROJECT + path, 400, data=data, content_type="application/json")["error"]
    return error["type"], error["message"]


@pytest.mark.parametrize("path", ["/stacks", "/validate", "/stacks/preview"])
def test_a_template_has_half_a_mebibyte(heats: Client, path: str) -> None:
    template = orjson.dumps(BASE).decode() + " " * 524_288
    size = len(template)
    assert refused(heats, {"template": template}, path) == (
        "RequestLimitExceeded",
        f"Request limit exceeded: Template size ({size} bytes) exceeds maximum allowed size (524288 bytes).",
    )
    heats.ask("POST", f"{PROJECT}/validate", 200, json={"template": template[:524_288]})


def test_a_nested_template_has_half_a_mebibyte_too(heats: Client) -> None:
    template = {**BASE, "resources": {"a": {"type": "a.yaml"}}}
    files = {"a.yaml": orjson.dumps(BASE).decode() + " " * 524_288}
    kind, message = refused(heats, {"template": template, "files": files})
    assert kind == "RequestLimitExceeded"
    assert message.endswith("exceeds maximum allowed size (524288 bytes).")


def test_a_request_has_a_mebibyte(heats: Client) -> None:
    body = {"template": BASE, "padding": " " * 1_048_576}
    size = len(orjson.dumps({"stack_name": "s", **body}))
    assert refused(heats, body) == (
        "RequestLimitExceeded",
        f"Request limit exceeded: JSON body size ({size} bytes) exceeds maximum allowed size "
        "(1048576 bytes).",
    )


def test_a_stack_has_a_thousand_resources(heats: Client) -> None:
    expected = ("RequestLimitExceeded", "Request limit exceeded: Maximum resources per stack exceeded.")
    assert refused(heats, {"template": many(1_001)}) == expected
    inner = {"a.yaml": orjson.dumps(many(999)).decode()}
    tree = {**BASE, "resources": {"a": {"type": "a.yaml"}, "b": {"type": "OS::Heat::None"}}}
    assert refused(heats, {"template": tree, "files": inner}) == expected
    heats.ask("POST", f"{PROJECT}/stacks/preview", 200, json={"stack_name": "s", "template": many(1_000)})


def test_stacks_are_nested_five_deep(heats: Client) -> None:
    files = {
        f"{level}.yaml": orjson.dumps({**BASE, "resources": {"r": {"type": f"{level + 1}.yaml"}}}).decode()
        for level in range(1, 6)
    }
    files["6.yaml"] = orjson.dumps(BASE).decode()
    template = {**BASE, "resources": {"r": {"type": "1.yaml"}}}
    _, message = refused(heats, {"template": template, "files": files})
    assert "Recursion depth exceeds 5." in message
    files["5.yaml"] = orjson.dumps(BASE).decode()
    body = {"stack_name": "s", "template": template, "files": files}
    heats.ask("POST", f"{PROJECT}/stacks/preview", 200, json=body)


def test_a_project_has_512_stacks(heats: Client, database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO stack (id, root_id, uuid, project_id, name, action, status, status_reason)"
                " SELECT n, n, gen_random_uuid(), 'full', 's' || n, 'CREATE', 'COMPLETE', ''"
                " FROM generate_series(1000000, 1000511) AS n"
            )
        )
    message = (
        "Request limit exceeded: You have reached the maximum stacks per tenant, 512. "
        "Please delete some stacks."
    )
    body = {"stack_name": "more", "template": BASE}
    for path in ("/full/stacks", "/full/stacks/preview"):
        assert heats.message("POST", path, 400, json=body) == message
    heats.ask("POST", f"{PROJECT}/stacks/preview", 200, json=body)
