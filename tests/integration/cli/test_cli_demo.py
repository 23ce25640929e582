"""The demonstration: it ends with 0 and leaves nothing; stopped in the middle it leaves nothing either."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The demonstration, started, with its own temporary folder and an operator's settings around it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli.commands.demo"],
        cwd=ROOT,
        env=os.environ
        | {"TMPDIR": str(tmp_path), "ORCHESTRATOR_DATABASE_URL": "postgresql://192.0.2.1/not-this"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a Ctrl-C is for its whole group, and not for ours
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_the_demonstration_shows_the_main_job_and_leaves_nothing(
    demo: subprocess.Popen[str], tmp_path: Path
) -> None:
    reported, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, reported
    assert len(set(re.findall(r"CREATE_COMPLETE (\S+)$", reported, re.MULTILINE))) >= 30
    for text in (
        "$ orchestrator up --cloud simulated",
        "$ orchestrator stack create -t examples/three-tier.yaml --wait shop",
    ):
        assert text in reported
    assert reported.count("198.51.100.") >= 5  # two public addresses after the create, three after the update
    assert "Deleted: shop." in reported
    assert re.search(r"^Project \w+ has no stacks\.$", reported, re.MULTILINE)
    assert left(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_stopped_in_the_middle_it_leaves_nothing(
    demo: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    assert demo.stdout is not None
    assert any("CREATE_IN_PROGRESS shop" in line for line in demo.stdout)
    os.killpg(demo.pid, number) if number == signal.SIGINT else demo.send_signal(number)
    demo.communicate(timeout=180)
    assert demo.returncode == (130 if number == signal.SIGINT else 143)
    assert left(tmp_path) == []


@pytest.mark.long
def test_killed_outright_its_server_goes_too(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    assert demo.stdout is not None
    assert any(line.startswith("Ready: ") for line in demo.stdout)
    demo.kill()
    demo.wait()
    deadline = time.monotonic() + 60
    while processes(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert processes(tmp_path) == []


def left(folder: Path) -> list[str]:
    """Return the demonstration's processes and folders that are still there."""
    return processes(folder) + [str(path) for path in folder.glob("orchestrator-demo-*")]


def processes(folder: Path) -> list[str]:
    """Return the command lines of the processes that name the folder or work in it."""
    result = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = str((entry / "cwd").readlink())
        except OSError:  # the process has ended, or belongs to another user
            continue
        if command and (str(folder) in command or place.startswith(str(folder))):
            result.append(command)
    return result
