"""The stock clients: their own environment, made once a machine, and a process of it that runs them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache"
REQUIREMENTS = HERE / "requirements.txt"


def environment() -> Path:
    """Return the folder of the clients' environment, made when there is none of these requirements."""
    requests = REQUIREMENTS.read_bytes() + sys.version.encode()
    place = CACHE / f"clients-{hashlib.sha256(requests).hexdigest()[:12]}"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "clients.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            uv = (sys.executable, "-m", "uv", "--quiet")
            _done(*uv, "venv", "--python", sys.executable, str(place))
            python = str(place / "bin" / "python")
            _done(*uv, "pip", "install", "--python", python, "--require-hashes", "-r", str(REQUIREMENTS))
            (place / "complete").touch()
    return place


def _done(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def settings_of_nobody(home: Path) -> dict[str, str]:
    """Return the environment without clouds and credentials of the calling user."""
    mine = ("OS_", "ORCHESTRATOR_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "COLUMNS": "200"}


@dataclass(frozen=True)
class Answer:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str
    result: Any = None

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Driver:
    """The process that runs the commands in sequence."""

    def __init__(self, place: Path, home: Path) -> None:
        """Start it; it reads its first command when it is through with loading."""
        self.place, self.home = place, home
        self.process = subprocess.Popen(
            [str(place / "bin" / "python"), str(HERE / "inside" / "driver.py")],
            env=settings_of_nobody(home),
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, what: str, arguments: Any) -> Answer:
        """Run a command to its end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"run": what, "arguments": arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the driver ended with {self.process.wait()}"
        return Answer(**json.loads(line))

    def stop(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(20) == 0
        if self.process.stdout is not None:
            self.process.stdout.close()


@dataclass(frozen=True)
class Openstack:
    """The `openstack` command of a user in a project; `refused` returns the error of a refused command."""

    driver: Driver
    url: str  # of the server
    project: str
    who: tuple[str, ...] = ("none",)  # the way of signing in, and its options

    @property
    def endpoint(self) -> str:
        return f"{self.url}/v1/{self.project}"

    def __call__(self, command: str, *arguments: str | Path) -> str:
        """Run a command that succeeds; return its output."""
        answer = self._run(command, arguments)
        assert answer.status == 0, answer
        return answer.out

    def json(self, command: str, *arguments: str | Path) -> Any:
        """Run a command that succeeds; return its output as JSON."""
        answer = self._run(command, ("-f", "json", *arguments))
        assert answer.status == 0, answer
        return answer.json

    def refused(self, command: str, *arguments: str | Path) -> str:
        """Run a command that fails; return everything that it prints."""
        answer = self._run(command, arguments)
        assert answer.status == 1, answer
        assert "Traceback" not in answer.err
        return answer.out + answer.err

    def _run(self, command: str, arguments: Sequence[str | Path]) -> Answer:
        who = ["--os-auth-type", *self.who, "--os-endpoint", self.endpoint]
        return self.driver.run("openstack", [*who, *command.split(), *map(str, arguments)])
