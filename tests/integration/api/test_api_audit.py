"""The audit log: a line for every change with caller, action, stack and result, without secrets."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from api.middleware import audit
from orchestrator.operations.outputs.outputs import Output
from orchestrator.security.tokens import create_token
from orchestrator.store.access import audit_records
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


def token(world: World, *roles: str, project: str = "audited") -> dict[str, str]:
    return {"X-Auth-Token": create_token(world.database, project, "ada", roles=roles)}


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


def records(world: World, project: str) -> list[audit_records.AuditRecord]:
    with world.database.connect() as db:
        return audit_records.list_recent(db, project, 100)[::-1]


@contextmanager
def unwritable(world: World) -> Iterator[None]:
    """Refuse every new audit record."""
    with world.database.connect() as db:
        db.execute("ALTER TABLE audit_record ADD CONSTRAINT refused CHECK (false) NOT VALID")
        try:
            yield
        finally:
            db.execute("ALTER TABLE audit_record DROP CONSTRAINT refused")


def test_reading_documents_that_may_contain_secrets_is_audited(
    api: Client, world: World, stack: Made, lines: list[dict[str, Any]]
) -> None:
    headers = token(world, "reader")
    for path in ("template", "environment", "files"):
        api.get(f"{stack.path}/{path}", headers=headers)
    api.get(f"{stack.path}/resources/none/metadata", 404, headers=headers)
    assert [(line["action"], line["status"], line["user"]) for line in lines] == [
        ("stacks:template", 200, "ada"),
        ("stacks:environment", 200, "ada"),
        ("stacks:files", 200, "ada"),
        ("resource:metadata", 404, "ada"),
    ]


def test_reading_an_output_is_audited_if_its_value_contains_a_secret(
    api: Client, world: World, stack: Made, lines: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = token(world, "reader")
    for secret in (False, True):
        output = Output("it", "", "sesame", secret=secret)
        monkeypatch.setattr(world.neighbour, "outputs", lambda *_, output=output: [output])
        reading = world.client(auth="token", audit_required=secret)
        reading.get(f"{stack.path}/outputs/it", headers=headers)
        reading.get(stack.path, headers=headers)
    assert [line["action"] for line in lines] == ["stacks:show_output", "stacks:show"]
    assert "sesame" not in str(lines)
    assert [record.action for record in records(world, "audited")] == ["stacks:show_output", "stacks:show"]


def test_with_required_audit_each_change_leaves_a_record(world: World) -> None:
    api, headers = world.client(auth="token", audit_required=True), token(world, "member", project="recorded")
    made = api.ask("POST", "/recorded/stacks", 201, headers=headers, json=STARTED)
    api.ask("POST", "/recorded/stacks", 201, headers=token(world, "admin", project="recorded"), json=STARTED)
    stack = world.stack("recorded", "kept")
    api.ask("DELETE", stack.path, 204, headers=headers)
    api.ask("DELETE", stack.path, 403, headers=token(world, "reader", project="recorded"))
    api.ask("DELETE", f"{stack.path}0", 404, headers=headers)
    api.get(f"{stack.path}/template", headers=headers)
    api.get(stack.path, headers=headers)
    found = records(world, "recorded")
    assert [(record.action, record.target, record.result) for record in found] == [
        ("stacks:create", f"made/{made['stack']['id']}", "201"),
        ("stacks:create", f"made/{made['stack']['id']}", "201"),
        ("stacks:delete", f"kept/{stack.uuid}", "204"),
        ("stacks:delete", f"kept/{stack.uuid}0", "404"),
        ("stacks:template", f"kept/{stack.uuid}", "200"),
    ]
    assert {(record.user_name, record.origin) for record in found} == {("ada", "127.0.0.1")}
    assert all((record.request_id or "").startswith("req-") for record in found)


def test_a_request_whose_required_record_cannot_be_written_has_no_effect(world: World) -> None:
    headers, stack = token(world, "member", project="closed"), world.stack("closed", "kept")
    required, usual = (world.client(auth="token", audit_required=value) for value in (True, False))
    signal = f"{stack.path}/resources/thing/signal"
    with unwritable(world):
        before = list(world.neighbour.projects)
        for method, path, body in (
            ("POST", "/closed/stacks", STARTED),
            ("PUT", stack.path, {}),
            ("POST", f"{stack.path}/actions", {"suspend": None}),
            ("POST", signal, {}),
            ("DELETE", stack.path, None),
            ("GET", f"{stack.path}/template", None),
        ):
            message = required.message(method, path, 503, headers=headers, json=body)
            assert message == "The audit record of this request cannot be written. Please try again later."
        assert world.neighbour.projects == before
        required.get(stack.path, headers=headers)
        usual.ask("POST", "/closed/stacks", 201, headers=headers, json=STARTED)
    required.ask("POST", "/closed/stacks", 201, headers=headers, json=STARTED)
