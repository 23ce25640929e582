"""`auth = basic`: names and passwords of an operator's file."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import main
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured
from orchestrator.security.authenticators import require_authenticator
from orchestrator.security.password_file import CHALLENGE
from tests.integration.api_world import Client, World, project, root, world  # noqa: F401 - fixtures


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}


@pytest.fixture(scope="module")
def hashed() -> str:
    """Return the output of `orchestrator hash-password`."""
    made = CliRunner().invoke(main, ["hash-password"], input="pässword: with colon\n")
    assert made.exit_code == 0
    return made.stdout.strip()


@pytest.fixture(scope="module")
def api(world: World, hashed: str, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A client of an application with two users."""
    path = tmp_path_factory.mktemp("users") / "users.yaml"
    path.write_text(
        f"users:\n  ada: {{password: '{hashed}', project: shop, roles: [member]}}\n"
        f"  grace: {{password: '{hashed}', project: office, roles: [reader]}}\n"
        f"  root: {{password: '{hashed}', project: office, roles: [admin]}}\n"
    )
    return world.client(auth="basic", users_file=path)


def test_a_name_and_a_password_open_the_users_project_in_their_roles(api: Client, world: World) -> None:
    stack = world.stack("shop", "till")
    ada, grace, root_ = (basic(name, "pässword: with colon") for name in ("ada", "grace", "root"))
    assert [item["stack_name"] for item in api.get("/shop/stacks", headers=ada)["stacks"]] == ["till"]
    api.get("/office/stacks", 403, headers=ada)
    api.get("/office/stacks", headers=grace)
    api.ask("POST", "/office/stacks", 403, headers=grace, json={})
    assert api.get(stack.path, headers=root_)["stack"]["stack_name"] == "till"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("ada", "wrong"),
        basic("ada", ""),
        basic("nobody", "pässword: with colon"),
        {"Authorization": "Basic"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic YWRh"},  # no colon
        {"Authorization": "Basic //////8="},  # no text
        {"Authorization": "Bearer x"},
        {"X-Auth-Token": "x"},
        basic("ada", "x" * 2_000),
    ],
)
def test_missing_credentials_are_401_with_the_expected_scheme(api: Client, headers: dict[str, str]) -> None:
    response = api.http.get("/v1/shop/stacks", headers=headers)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == CHALLENGE
    assert set(response.get_json()) == {"error"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it must be a map of `users`"),
        ("users: []", "it must be a map of `users`"),
        ("users: {ada: 3}", "ada: must be a map"),
        ("users: {ada: {password: open sesame, project: p}}", "ada: its password must be hashed"),
        ("users: {ada: {password: 'scrypt:1:1:1$a$b'}}", "ada: must have a project"),
        ("users: {ada: {password: 'scrypt:1:1:1$a$b', project: p, role: x}}", "ada: has no role; it may"),
        ("users: {ada: {password: 'scrypt:1:1:1$a$b', project: p, roles: x}}", "ada: its roles must be"),
        ("users: {'a:b': {password: 'scrypt:1:1:1$a$b', project: p}}", "a:b: a name is a text without"),
        ("users: {a: {project: p}, b: {}}", "\n  b: must have a project"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_starts(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "users.yaml"
    path.write_text(text)
    with pytest.raises(Misconfigured) as refused:
        require_authenticator(Settings(auth="basic", users_file=path))
    assert said in str(refused.value)
    assert "sesame" not in str(refused.value)


def test_missing_authentication_settings_are_reported_at_startup(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="ORCHESTRATOR_USERS_FILE"):
        require_authenticator(Settings(auth="basic"))
    with pytest.raises(Misconfigured, match="cannot be read"):
        require_authenticator(Settings(auth="basic", users_file=tmp_path / "none"))
    with pytest.raises(Misconfigured, match="set ORCHESTRATOR_KEYSTONE_AUTH_URL"):
        require_authenticator(Settings(auth="keystone"))
    with pytest.raises(Misconfigured, match="cannot be read"):
        require_authenticator(Settings(auth="none", policy_file=tmp_path / "none"))
