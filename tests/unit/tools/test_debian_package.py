"""`tools/debian_package.sh`, with replacements for apt-get and id."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "tools" / "debian_package.sh"
BASE = ("sh", "printf", "chmod", "rm")


class Machine:
    """A machine with few programs."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.calls, self.policy = folder / "bin", folder / "calls", folder / "policy"
        self.bin.mkdir()
        for name in BASE:
            found = next(Path(base, name) for base in ("/bin", "/usr/bin") if Path(base, name).exists())
            (self.bin / name).symlink_to(found)
        self.add("id", "echo 0")

    def add(self, name: str, content: str) -> None:
        """Add a program."""
        (self.bin / name).write_text(f"#!/bin/sh\n{content}\n")
        (self.bin / name).chmod(0o755)

    def run(self, **env: str) -> subprocess.CompletedProcess[str]:
        """Install a package that no machine has."""
        return subprocess.run(
            (str(self.bin / "sh"), str(SCRIPT), "absent-package", "absent-program"),
            env={"PATH": str(self.bin), "CALLS": str(self.calls), "POLICY": str(self.policy), **env},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


RECORD = 'echo "$1" >> "$CALLS"; test -x "$POLICY" || exit 7; '


def test_a_package_is_installed_by_root_and_its_service_is_not_started(machine: Machine) -> None:
    machine.add("apt-get", RECORD)
    ended = machine.run()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert machine.calls.read_text().split() == ["install"]
    assert not machine.policy.exists()


def test_package_lists_are_fetched_if_they_are_missing(machine: Machine) -> None:
    machine.add("apt-get", RECORD + 'test "$(wc -l < "$CALLS")" != 1')
    (machine.bin / "wc").symlink_to("/usr/bin/wc")
    assert machine.run().returncode == 0
    assert machine.calls.read_text().split() == ["install", "update", "install"]


def test_an_existing_program_is_sufficient(machine: Machine) -> None:
    machine.add("absent-program", "")
    machine.add("apt-get", RECORD)
    assert machine.run().returncode == 0
    assert not machine.calls.exists()


@pytest.mark.parametrize(
    ("programs", "reason"),
    [
        ({}, "this system has no apt-get"),
        ({"apt-get": "", "id": "echo 1000"}, "only root can install it: apt-get install absent-package"),
        ({"apt-get": "exit 100"}, "apt-get failed"),
    ],
)
def test_the_reason_is_printed_otherwise(machine: Machine, programs: dict[str, str], reason: str) -> None:
    for name, content in programs.items():
        machine.add(name, content)
    ended = machine.run()
    assert ended.returncode == 0
    assert ended.stderr == f"absent-package is not installed ({reason}): its tests are skipped\n"
    assert not machine.policy.exists()
