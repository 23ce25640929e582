"""The connection settings of commands: options, environment variables and profiles."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path

import pytest

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.profiles import endpoint
from tests.unit.cli.command_line import Run, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]  # fixtures


def test_no_valid_token_ends_with_five(
    stub: Stub, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    monkeypatch.setenv("ORCHESTRATOR_TOKEN_FILE", str(tmp_path / "token"))
    stub.refusal = (
        401,
        {"error": {"code": 401, "message": "The request you have made requires authentication."}},
    )
    result = run("stack", "list")
    assert result.exit_code == 5
    assert stub.requests[0][3]["X-Auth-Token"] == "from-a-file"
    assert "ORCHESTRATOR_TOKEN" in result.output


def test_a_name_and_a_password_of_the_environment_are_shown(
    stub: Stub, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("sésame\n")
    monkeypatch.setenv("ORCHESTRATOR_USERNAME", "ada")
    monkeypatch.setenv("ORCHESTRATOR_PASSWORD_FILE", str(tmp_path / "password"))
    run("stack", "list")
    shown = b64encode("ada:sésame".encode()).decode()
    assert stub.requests[0][3]["Authorization"] == f"Basic {shown}"


CONFIG = """
default = "lab"
[profiles.lab]
url = "http://lab.test:8004"
project = "blue"
token = "secret"
[profiles.prod]
url = "https://prod.test"
username = "ada"
password_file = "{folder}/password"
"""


@pytest.fixture
def config(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ORCHESTRATOR_URL")
    path = tmp_path / "config" / "orchestrator" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(CONFIG.replace("{folder}", str(tmp_path)))
    path.chmod(0o600)
    (tmp_path / "password").write_text("pass\n")
    return path


@pytest.mark.usefixtures("config")
def test_options_override_the_environment_which_overrides_the_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = endpoint()
    assert (result.url, result.project, result.token) == ("http://lab.test:8004", "blue", "secret")
    monkeypatch.setenv("ORCHESTRATOR_PROFILE", "prod")
    result = endpoint()
    assert (result.url, result.project, result.token, result.login) == (
        "https://prod.test", "demo", None, ("ada", "pass"),
    )  # fmt: skip
    monkeypatch.setenv("ORCHESTRATOR_PROJECT", "green")
    monkeypatch.setenv("ORCHESTRATOR_TOKEN", "other")
    result = endpoint(profile="lab")
    assert (result.url, result.project, result.token) == ("http://lab.test:8004", "green", "other")
    assert endpoint(project="red", profile="lab").project == "red"


def test_a_configuration_file_with_secrets_must_be_private(config: Path) -> None:
    config.chmod(0o644)
    with pytest.raises(Failure, match="contains secrets and is readable by other users"):
        endpoint()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[profiles.a]\nurll = 'x'", "unknown key urll in profile a"),
        ("[profiles.a]\nurl = 1", "url in profile a must be a string"),
        ("profile = 'a'", "unknown key profile"),
        ("x", "not valid TOML"),
    ],
)
def test_a_mistake_in_the_configuration_file_is_reported(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    with pytest.raises(Failure, match=message):
        endpoint()


@pytest.mark.usefixtures("config")
def test_an_unknown_profile_gets_a_suggestion(run: Run) -> None:
    result = run("stack", "list", "--profile", "prd")
    assert result.exit_code == 1
    assert "did you mean prod?" in result.output


def test_variables_of_openstack_clients_are_used_without_other_credentials(
    monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:9/v3")  # nothing listens there
    monkeypatch.setenv("OS_USERNAME", "demo")
    config.write_text("")
    with pytest.raises(Failure, match=r"no token from Keystone at http://127\.0\.0\.1:9/v3 \(OS_AUTH_URL\)"):
        endpoint()
    monkeypatch.setenv("ORCHESTRATOR_TOKEN", "own")
    assert endpoint().token == "own"


def test_a_server_with_keystone_asks_for_the_variables_of_openstack_clients(stub: Stub, run: Run) -> None:
    stub.refusal = (401, {"error": {"code": 401, "message": "The request requires authentication."}})
    stub.challenge = 'Keystone uri="http://keystone.test:5000/v3"'
    result = run("stack", "list")
    assert result.exit_code == 5
    assert "OS_AUTH_URL=http://keystone.test:5000/v3" in result.output
    assert "token create" not in result.output


def test_a_login_at_keystone_without_its_extra_says_how_to_install_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:9/v3")
    monkeypatch.setitem(sys.modules, "orchestrator.clients.keystone.environment_login", None)
    result = run("stack", "list")
    assert result.exit_code == 1
    assert "requires the extra openstack: pip install 'stack-orchestrator[openstack]'" in result.output
