"""The audit log: a line for every change with caller, action, stack and result, without secrets."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from api.middleware import audit
from orchestrator.security.tokens import create_token
from tests.integration.api_world import Client, Made, World, world  # noqa: F401 - fixtures

STARTED = {"stack_name": "new", "parameters": {"password": "sesame"}}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Return the audit lines of the log."""
    noted: list[dict[str, Any]] = []

    class Log:
        def info(self, event: str, **options: Any) -> None:
            assert event == "audit"
            noted.append(options)

    monkeypatch.setattr(audit, "log", Log())
    return noted


@pytest.fixture(scope="module")
def stack(world: World) -> Made:
    return world.stack("audited", "kept")


@pytest.fixture(scope="module")
def api(world: World) -> Client:
    return world.client(auth="token")


def token(world: World, *roles: str) -> dict[str, str]:
    return {"X-Auth-Token": create_token(world.database, "audited", "ada", roles=roles)}


def test_the_audit_line_of_a_change_has_caller_operation_stack_and_result(
    api: Client, world: World, stack: Made, lines: list[dict[str, Any]]
) -> None:
    made = api.ask("POST", "/audited/stacks?x=sesame", 201, headers=token(world, "member"), json=STARTED)
    api.ask("POST", f"{stack.path}/actions", 200, headers=token(world, "member"), json={"suspend": None})
    assert lines[0] == {
        "action": "stacks:create",
        "stack": f"made/{made['stack']['id']}",
        "status": 201,
        "user": "ada",
        "user_id": None,
        "project": "audited",
        "roles": ["member"],
        "is_admin": False,
        "method": "POST",
        "path": "/v1/audited/stacks",
        "address": "127.0.0.1",
    }
    assert (lines[1]["action"], lines[1]["stack"]) == ("actions:suspend", f"kept/{stack.uuid}")
    assert "sesame" not in str(lines)


def test_refusals_are_logged_too(api: Client, world: World, stack: Made, lines: list[dict[str, Any]]) -> None:
    api.ask("DELETE", stack.path, 401)
    api.ask("DELETE", stack.path, 403, headers=token(world, "reader"))
    api.ask("POST", f"{stack.path}/actions", 400, headers=token(world, "member"), json={})
    api.ask("DELETE", f"{stack.path}0", 404, headers=token(world, "member"))
    assert [(line["action"], line["status"], line["user"]) for line in lines] == [
        ("stacks:delete", 401, None),
        ("stacks:delete", 403, "ada"),
        ("actions:action", 400, "ada"),
        ("stacks:delete", 404, "ada"),
    ]
    assert lines[0]["project"] == "audited"


def test_an_admin_is_distinguished_from_stack_users(
    api: Client, world: World, stack: Made, lines: list[dict[str, Any]]
) -> None:
    headers = {"X-Auth-Token": create_token(world.database, "admins", "root", roles=["admin"])}
    api.ask("DELETE", stack.path, 204, headers=headers)
    [line] = lines
    assert (line["user"], line["is_admin"], line["project"]) == ("root", True, "audited")


def test_looking_is_not_noted(api: Client, world: World, stack: Made, lines: list[dict[str, Any]]) -> None:
    headers = token(world, "member")
    for method, path in (
        ("GET", stack.path),
        ("GET", f"/audited/stacks/{stack.name}"),
        ("POST", "/audited/stacks/preview"),
        ("POST", "/audited/validate"),
        ("PUT", f"{stack.path}/preview"),
    ):
        api.http.open(f"/v1{path}", method=method, headers=headers, json=STARTED)
    assert lines == []


def test_a_forged_signed_url_is_logged_with_its_stack(
    api: Client, stack: Made, lines: list[dict[str, Any]]
) -> None:
    arn = f"arn:openstack:heat::audited:stacks/kept/{stack.uuid}/resources/thing"
    api.http.post(f"/v1/signal/{arn}?Signature=sesame&AWSAccessKeyId=x")
    [line] = lines
    assert (line["action"], line["stack"], line["status"]) == ("resource:signal", f"kept/{stack.uuid}", 403)
    assert "sesame" not in str(line)
