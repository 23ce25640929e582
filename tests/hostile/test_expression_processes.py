"""An expression that escapes from `yaql` into its process finds no secret, and can do nothing but compute."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.process_control import LANDLOCK_CREATE_RULESET
from orchestrator.template.functions.yaql_function import VARIABLES, Evaluator

SECRETS = {
    "ORCHESTRATOR_ENCRYPTION_KEYS": "key-of-the-installation",
    "ORCHESTRATOR_ENCRYPTION_KEYS_FILE": "/path/of/the/keys",
    "ORCHESTRATOR_DATABASE_URL": "postgresql://user:password@host/db",
    "OS_PASSWORD": "password-of-a-user",
    "PGPASSWORD": "password-of-the-database",
}
ATTEMPTS = """
import os
from orchestrator.process_control import confine
confine()
def refused(attempt):
    try:
        attempt()
    except (OSError, RuntimeError):
        return
    raise SystemExit(f"not refused: {attempt}")
"""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a new process in /proc; its parent has secrets in the environment and an open file."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    evaluator = Evaluator(0)
    with Path("/etc/passwd").open():
        assert evaluator.evaluate("$.data.sum()", [1, 2]) == 3
    assert evaluator._process is not None
    yield Path("/proc", str(evaluator._process.pid))
    evaluator.close()


def test_its_environment_has_no_variable_of_the_server(process: Path) -> None:
    try:
        found = (process / "environ").read_bytes().decode()
    except PermissionError:  # another user than root
        return
    names = {entry.partition("=")[0] for entry in found.split("\0") if entry}
    assert names <= set(VARIABLES)
    assert not any(value in found for value in SECRETS.values())


def test_it_has_its_pipes_only_and_no_privileges_to_gain(process: Path) -> None:
    assert {entry.name for entry in (process / "fd").iterdir()} == {"0", "1", "2"}
    status = dict(
        line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line
    )
    assert status["NoNewPrivs"] == "1"
    limits = (process / "limits").read_text()
    for name in ("Max file size", "Max core file size", "Max processes"):
        [line] = [line for line in limits.splitlines() if line.startswith(name)]
        assert line.removeprefix(name).split()[:2] == ["0", "0"]


def attempted(code: str) -> subprocess.CompletedProcess[str]:
    """Run attempts in a confined process."""
    return subprocess.run(
        [sys.executable, "-c", ATTEMPTS + code], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_confined_process_writes_no_file(tmp_path: Path) -> None:
    file = tmp_path / "written"
    file.touch()
    done = attempted(f"refused(lambda: open({str(file)!r}, 'w').write('x'))")
    assert done.returncode in {0, -25}, done.stderr  # SIGXFSZ without Landlock
    assert file.read_text() == ""


def test_with_landlock_no_file_can_be_opened() -> None:
    if ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1) < 1:  # the version
        pytest.skip("the kernel has no Landlock")
    done = attempted("refused(lambda: open('/etc/passwd')); refused(lambda: os.listdir('/'))")
    assert done.returncode == 0, done.stderr


def test_the_parent_keeps_its_rights() -> None:
    assert resource.getrlimit(resource.RLIMIT_NPROC)[0] != 0
    assert Path("/etc/passwd").read_text()


def test_functions_that_read_files_late_still_work() -> None:
    evaluator = Evaluator(0)
    result = evaluator.evaluate("datetime('2021-02-03', '%Y-%m-%d').year", [])
    assert result == 2021
    assert evaluator.evaluate("datetime(2021, 2, 3).format('%Y %B')", []) == "2021 February"
    evaluator.close()
