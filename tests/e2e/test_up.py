"""A single command starts everything, reports it, restarts dead processes, and stops everything."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import constants
from tests.e2e.running import COMMAND, Up, environment, eventually, free_port
from tests.patience import took_at_most

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def up(start_up: Callable[..., Up], tmp_path_factory: pytest.TempPathFactory) -> Up:
    soon = constants.environment({"re_enqueue_seconds": 1.0})  # messages of a dead process are re-enqueued
    return start_up(tmp_path_factory.mktemp("up") / "data", command=COMMAND, env=soon).wait_ready()


def run(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], env=environment(env), capture_output=True, text=True, timeout=60, check=False
    )


def refused(*arguments: str | Path, **env: str) -> str:
    """Return the single line of a refused command."""
    done = run(*arguments, **env)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_it_reports_its_address_and_the_next_commands(up: Up) -> None:
    assert f"Ready: {up.url}" in up.output
    assert "orchestrator stack create" in up.output
    assert f"ORCHESTRATOR_URL={up.url}" in up.output
    assert httpx.get(f"{up.url}/healthcheck").status_code == 200
    running = " ".join(up.children().values())
    assert all(name in running for name in ("postgres", "valkey", "check1", "provider1", "gunicorn"))


def test_a_stack_becomes_complete(up: Up) -> None:
    up.create("complete")
    assert eventually(lambda: up.status("complete") == "CREATE_COMPLETE")


@pytest.mark.parametrize("victim", ["check1", "provider1", "gunicorn", "valkey-server", "postgres"])
def test_killed_processes_are_replaced_and_work_continues(up: Up, victim: str) -> None:
    pid = up.child(victim)
    os.kill(pid, signal.SIGKILL)
    begun = time.monotonic()
    eventually(lambda: any(victim in line and other > pid for other, line in up.children().items()))
    assert took_at_most(begun, 5)
    eventually(lambda: up.status("complete") == "CREATE_COMPLETE")
    up.create(f"after-{victim}")
    assert eventually(lambda: up.status(f"after-{victim}") == "CREATE_COMPLETE", 60)


def test_a_second_instance_in_the_same_folder_is_refused(up: Up) -> None:
    line = refused("up", "--port", str(free_port()), "--data-dir", up.data_dir)
    assert f"in use by process {up.process.pid}" in line
    assert "--data-dir" in line


def test_a_port_that_is_taken_is_refused(up: Up, tmp_path: Path) -> None:
    line = refused("up", "--port", str(up.port), "--data-dir", tmp_path / "other")
    assert f"cannot listen on 127.0.0.1 port {up.port}" in line
    assert "--port" in line


def test_listening_on_public_addresses_without_authentication_is_refused(tmp_path: Path) -> None:
    line = refused("up", "--host", "0.0.0.0", "--port", str(free_port()), "--data-dir", tmp_path / "data")
    assert "refusing to listen on 0.0.0.0 while ORCHESTRATOR_AUTH is none" in line
    assert not (tmp_path / "data").exists()


def test_a_setting_that_is_impossible_is_refused_by_its_name(tmp_path: Path) -> None:
    line = refused("up", "--data-dir", tmp_path / "data", ORCHESTRATOR_AUTH="maybe")
    assert "ORCHESTRATOR_AUTH" in line


def test_server_commands_work_while_a_server_is_running(up: Up) -> None:
    made = run("token", "create", "--project", "demo", "--name", "ci", "--data-dir", up.data_dir)
    assert made.returncode == 0, made
    listed = run("token", "list", "--data-dir", up.data_dir).stdout
    assert "ci" in listed
    assert made.stdout.strip() not in listed
    assert "nothing to do" in run("migrate", "--data-dir", up.data_dir).stdout


def test_after_a_kill_no_process_is_left_and_the_next_start_has_all_stacks(
    start_up: Callable[..., Up], tmp_path: Path
) -> None:
    soon = constants.environment({"lease_seconds": 3.0})  # leases of a killed process expire after this time
    first = start_up(tmp_path / "data", command=COMMAND, env=soon).wait_ready()
    first.create("kept")
    family = first.children()
    first.process.kill()
    first.process.wait()
    eventually(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() and _alive(pid) for pid in family), 15)
    second = start_up(tmp_path / "data", env=soon, port=first.port).wait_ready()
    assert eventually(lambda: second.status("kept") == "CREATE_COMPLETE", 60)
    family = second.children()
    assert second.stop(signal.SIGINT) == 0
    assert second.output.rstrip().endswith("Stopped.")
    assert not any(_alive(pid) for pid in family)


def test_two_run_side_by_side_in_folders_of_their_own(
    up: Up, start_up: Callable[..., Up], tmp_path: Path
) -> None:
    other = start_up(tmp_path / "data").wait_ready()
    other.create("elsewhere")
    assert eventually(lambda: other.status("elsewhere") == "CREATE_COMPLETE")
    assert up.status("elsewhere") == ""
    assert other.stop() == 0
    assert httpx.get(f"{up.url}/healthcheck").status_code == 200
    made = run("token", "create", "--project", "demo", "--data-dir", tmp_path / "data")
    assert made.stdout.startswith("orc_"), made  # the database ran for this command alone
    sealed = run("rotate-keys", "--data-dir", tmp_path / "data")
    assert "resource.sealed: 0 re-encrypted" in sealed.stdout


def test_servers_named_in_the_environment_are_used_and_none_are_started(
    start_up: Callable[..., Up], new_database: Callable[[], str], broker_url: str, tmp_path: Path
) -> None:
    servers = {"ORCHESTRATOR_DATABASE_URL": new_database(), "ORCHESTRATOR_BROKER_URL": broker_url}
    outside = start_up(tmp_path / "data", env=servers).wait_ready()
    outside.create("outside")
    assert eventually(lambda: outside.status("outside") == "CREATE_COMPLETE")
    assert not any("postgres" in line or "valkey-server" in line for line in outside.children().values())
    assert outside.stop() == 0
    assert not (tmp_path / "data" / "postgres").exists()
    assert not (tmp_path / "data" / "valkey").exists()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """A folder of the account nobody; pytest's own folders are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix="nobody-"))
    os.chown(folder, NOBODY["user"], NOBODY["group"])
    yield folder
    shutil.rmtree(folder)


NOBODY: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}


def interpreter_of_nobody(folder: Path) -> Path:
    """Return a copy of our Python, without packages, for the account nobody: ours may be in root's home."""
    base, home = Path(sys.base_prefix), folder / "python"
    library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
    # With the bytecode: otherwise each process compiles the library.
    unused = shutil.ignore_patterns(
        "site-packages", "dist-packages", "test", "*.opt-?.pyc", "config-*", "*.a"
    )
    shutil.copytree(base / library, home / library, ignore=unused)
    for shared in base.glob("lib/libpython*.so*"):
        shutil.copy(shared, home / "lib")
    (home / "bin").mkdir()
    return Path(shutil.copy(Path(sys.executable).resolve(), home / "bin" / "python3"))


@pytest.mark.skipif(os.geteuid() != 0, reason="every other test here runs as an ordinary user already")
def test_an_ordinary_user_can_run_it_too(start_up: Callable[..., Up], nobodys_folder: Path) -> None:
    python = interpreter_of_nobody(nobodys_folder)
    env = {
        "PYTHONHOME": str(python.parents[1]),
        "PYTHONPATH": os.pathsep.join(
            map(str, (TREE, *TREE.glob("packages/*/src"), Path(httpx.__file__).parents[1]))
        ),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(python.parents[1] / "lib"),
        "HOME": str(nobodys_folder),
    }
    probe = subprocess.run(
        [python, "-c", "import orchestrator, httpx"], env=env, cwd="/", check=False, **NOBODY
    )
    if probe.returncode:
        pytest.skip("the user nobody may not read the tree or the packages")
    command = (str(python), "-m", "orchestrator.cli.main")
    up = start_up(
        nobodys_folder / "data", command=command, env=env, cwd=nobodys_folder, **NOBODY
    ).wait_ready()
    up.create("ordinary")
    assert eventually(lambda: up.status("ordinary") == "CREATE_COMPLETE")
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in up.children()}
    assert owners == {NOBODY["user"]}
    assert up.stop() == 0
