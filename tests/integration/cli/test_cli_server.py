"""The client commands against a real server: `orchestrator up` with tokens, its workers, its API."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.embedded.process import Child, running

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
ORCHESTRATOR = (sys.executable, "-m", "orchestrator.cli.main")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server that requires tokens; yields the environment of a caller with a token."""
    folder = tmp_path_factory.mktemp("up")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ORCHESTRATOR_")}
    data = ("--data-dir", str(folder / "data"))
    log = folder / "up.log"
    up = Child(
        name="up",
        argv=(*ORCHESTRATOR, "up", "--port", str(port), "--workers", "1", *data),
        env=clean | {"ORCHESTRATOR_AUTH": "token"},
        ready=lambda _pid: "Ready: " in log.read_text(),
        stop_seconds=60.0,
    )
    with running(up, log):
        token = subprocess.run(
            [*ORCHESTRATOR, "token", "create", "--project", "demo", *data],
            env=clean, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        yield clean | {"ORCHESTRATOR_URL": f"http://127.0.0.1:{port}", "ORCHESTRATOR_TOKEN": token}


@pytest.fixture
def run(server: dict[str, str]) -> Run:
    """Run a client command as the caller."""

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*ORCHESTRATOR, *arguments],
            env=server | env, cwd=EXAMPLES, check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    return run


def test_a_stack_is_made_with_environments_and_parameters_read_and_removed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("parameters: {owner: team-red, size: 8}\n")
    (tmp_path / "two.yaml").write_text("parameters: {size: 6}\n")
    environments = ("-e", str(tmp_path / "one.yaml"), "-e", str(tmp_path / "two.yaml"))
    made = run(
        "stack", "create", "-t", "parameters.yaml", *environments, "-P", "zones=east", "--wait", "given"
    )
    assert made.returncode == 0, made.stderr
    assert "CREATE_COMPLETE summary" in made.stdout
    summary = run("stack", "outputs", "given", "summary").stdout
    assert summary == "team-red wants 6 in east, at most 4 each (first)\n"
    assert "contact = ******" in run("stack", "show", "given").stdout
    listed = json.loads(run("stack", "list", "--json").stdout)["stacks"]
    assert [stack["stack_name"] for stack in listed] == ["given"]
    template = run("stack", "template", "given")
    assert "heat_template_version: '2018-08-31'" in template.stdout
    gone = run("stack", "delete", "given", "--wait", "--yes")
    assert (gone.returncode, gone.stdout.splitlines()[-1]) == (0, "Deleted: given.")
    assert run("stack", "show", "given").stderr == "Error: The Stack (given) could not be found.\n"
    assert "DELETE_COMPLETE given" in run("stack", "events", listed[0]["id"]).stdout


def test_a_stack_that_fails_ends_with_three_and_its_cause_and_can_be_looked_at(run: Run) -> None:
    made = run("stack", "create", "-t", "failing.yaml", "--wait", "--json", "failing")
    assert made.returncode == 3
    error = json.loads(made.stdout)["error"]
    assert error["stack_status"] == "CREATE_FAILED"
    assert [cause["resource_name"] for cause in error["causes"]] == ["broken"]
    assert "Test Resource failed broken" in error["causes"][0]["reason"]
    failed = run("stack", "resources", "failing", "--status", "FAILED").stdout.splitlines()
    assert [line.split()[0] for line in failed] == ["NAME", "broken"]
    assert run("stack", "events", "failing", "--follow").returncode == 3


def test_every_fault_of_a_template_is_shown_with_its_line(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    hello = (EXAMPLES / "hello.yaml").read_text()
    bad.write_text(hello.replace("    properties:", "    propertys:").replace("[password,", "[word,"))
    lines = bad.read_text().splitlines()
    invalid = [number for number, line in enumerate(lines, 1) if "propertys" in line or "[word" in line]
    for command in (("validate",), ("stack", "create", "refused")):
        refused = run(*command, "-t", str(bad))
        assert (refused.returncode, refused.stdout) == (1, "")
        for number in invalid:
            assert f"{bad}:{number}:" in refused.stderr
            assert f" {number} | {lines[number - 1]}" in refused.stderr
    assert "refused" not in run("stack", "list").stdout


def test_a_taken_name_is_reported_in_a_single_line(run: Run) -> None:
    assert run("stack", "create", "-t", "hello.yaml", "--wait", "taken").returncode == 0
    again = run("stack", "create", "-t", "hello.yaml", "taken")
    assert (again.returncode, again.stderr) == (1, "Error: The Stack (taken) already exists.\n")


def test_without_a_token_or_in_a_foreign_project_a_command_ends_with_five(run: Run) -> None:
    assert run("stack", "list", ORCHESTRATOR_TOKEN="guessed").returncode == 5
    assert run("stack", "list", ORCHESTRATOR_TOKEN="").returncode == 5
    foreign = run("stack", "list", "--project", "theirs")
    assert (foreign.returncode, foreign.stdout) == (5, "")
