"""Processes that the fork server starts are like processes that were executed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.embedded.forks import Fork
from orchestrator.embedded.process import Child, Process
from tests.fork_server import running_fork_server

PROBE = """
import json, os, signal, sys
def shown(name):
    return open(f"/proc/self/{name}", "rb").read().replace(b"\\0", b" ").decode().strip()
facts = {
    "arguments": sys.argv[1:], "name": __name__, "folder": os.getcwd(), "path": sys.path[0],
    "environment": dict(os.environ), "parent": os.getppid(), "session": os.getsid(0) == os.getpid(),
    "niceness": os.nice(0), "command": shown("cmdline"),
    "descriptors": sorted(os.listdir("/proc/self/fd")), "input": os.readlink("/proc/self/fd/0"),
}
print(json.dumps(facts), flush=True)
if sys.argv[1:] == ["stay"]:
    signal.pause()
sys.exit(3)
"""
Starter = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Starter:
    """Start the probe by way of the fork server, or with another socket."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "probe_of_forks.py").write_text(PROBE)

    def start(*arguments: str, socket: Path | None = None, name: str = "probe", niceness: int = 0) -> Process:
        env = {
            "PYTHONPATH": str(tmp_path / "modules"),
            "GREETING": "hello",
            "PATH": os.environ["PATH"],
            "LC_ALL": "C",
        }
        child = Child(
            name=name,
            argv=(sys.executable, "-m", "probe_of_forks", *arguments),
            env=env,
            cwd=tmp_path,
            niceness=niceness,
            fork_server=socket or running_fork_server(),
        )
        log = tmp_path / f"{name}.log"
        child = replace(child, ready=lambda _pid: log.read_text().endswith("\n"))
        return Process(child, log)

    return start


def facts(process: Process) -> dict[str, object]:
    """Return what the probe has found."""
    found: dict[str, object] = json.loads(process.log.read_text())
    return found


def test_a_fork_is_like_an_executed_process(start: Starter, tmp_path: Path) -> None:
    fork = start("one", "two words", niceness=2)
    executed = start("one", "two words", niceness=2, socket=tmp_path / "absent", name="executed")
    for process in (fork, executed):
        assert process.wait(60)
        assert process.returncode == 3
    assert isinstance(fork._popen, Fork)
    assert not isinstance(executed._popen, Fork)
    found = facts(fork)
    assert found == facts(executed)
    assert found["parent"] == os.getpid()
    assert found["session"] is True
    assert found["command"] == f"{sys.executable} -m probe_of_forks one two words"


def test_a_killed_fork_is_reported_and_others_continue(start: Starter) -> None:
    first, second = start("stay", name="first"), start("stay", name="second")
    for process in (first, second):
        process.wait_ready()
    first.kill_group()
    assert first.wait(10)
    assert first.returncode == -signal.SIGKILL
    assert second.returncode is None
    second.stop()
    assert second.returncode == -signal.SIGTERM
    third = start()
    assert third.wait(60)
    assert third.returncode == 3


def test_processes_start_without_a_killed_fork_server(start: Starter, tmp_path: Path) -> None:
    dead = tmp_path / "dead.sock"
    program = f"import socket; socket.socket(socket.AF_UNIX).bind({str(dead)!r})"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert dead.is_socket()
    process = start(socket=dead)
    assert process.wait(60)
    assert process.returncode == 3


def test_a_different_process_gets_no_fork() -> None:
    program = f"""
import socket
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({str(running_fork_server())!r})
    print(connection.recv(1) == b"")
"""
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "True"
