"""`orchestrator up` as people start it: its own process, spoken to over HTTP and signals."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from orchestrator.embedded.fork_server import Request
from orchestrator.embedded.forks import Fork, fork
from tests import template_cluster
from tests.fork_server import running_fork_server
from tests.patience import Patience
from tests.template_cluster import FAST_SETTINGS

COMMAND = (sys.executable, "-m", "orchestrator.cli.main")
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "resources": {
        "first": {"type": "OS::Heat::RandomString"},
        "second": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_resource": "first"}}},
    },
}


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment without settings of the calling user."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ORCHESTRATOR_")}
    return {**clean, **(extra or {})}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def free_ports(count: int) -> int:
    """Return the first of consecutive free ports, below those that clients are given."""
    while True:
        first = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError, OverflowError), contextlib.ExitStack() as probes:
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def eventually(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Return the value of `condition` when it becomes true."""
    patience = Patience(seconds)
    while not (result := condition()):
        assert patience.left(), "it never happened"
        time.sleep(0.05)
    return result


class Forked(Fork):
    """A fork with the further methods of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, output: int) -> None:
        """Watch the child `pid`, whose output is read from `output`."""
        super().__init__(pid)
        self.stdout = os.fdopen(output, "rb")

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[bytes, None]:
        """Return the rest of the output, after the end of the process."""
        end, chunks = time.monotonic() + timeout, []
        with self.stdout:
            while select.select([self.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                chunk = os.read(self.stdout.fileno(), 65536)
                if not chunk:
                    self.wait(max(0.0, end - time.monotonic()))
                    return b"".join(chunks), None
                chunks.append(chunk)
        raise subprocess.TimeoutExpired("up", timeout)


def forked_up(arguments: Sequence[str], env: Mapping[str, str]) -> Forked | None:
    """Start `orchestrator up` by way of the fork server of the tests, if that answers."""
    reader, writer = os.pipe()
    argv = (sys.executable, "-m", "tests.e2e.forked_up", *arguments)
    request = Request(argv, dict(env), str(Path.cwd()), 0, int(signal.SIGKILL))
    try:
        made = fork(running_fork_server(), request, writer)
    finally:
        os.close(writer)
    if made is None:
        os.close(reader)
        return None
    return Forked(made.pid, reader)


class Up:
    """A running `orchestrator up`.

    Unless a `command` is given, it is a fork with the imports done, and its new database a copy: the same
    program, which starts in a fifth of the time, but the figures of its processes are not added up.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        command: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        port: int | None = None,
        cwd: Path | None = None,
        workers: int = 1,
        options: Sequence[str] = (),
        **popen: Any,
    ) -> None:
        self.data_dir, self.port, self.output = data_dir, port or free_port(), ""
        self.url = f"http://127.0.0.1:{self.port}"
        arguments = ("up", "--port", str(self.port), "--data-dir", str(data_dir))
        arguments += ("--workers", str(workers), *options)
        self.process = (
            None if command or cwd or popen else self._forked(arguments, environment(env))
        ) or subprocess.Popen(
            [*(command or COMMAND), *arguments],
            env=environment(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **popen,
        )

    def _forked(self, arguments: Sequence[str], env: Mapping[str, str]) -> Forked | None:
        """Start a fork. Its own new database is a copy."""
        database = self.data_dir / "postgres"
        if "ORCHESTRATOR_DATABASE_URL" not in env and not database.exists():
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            template_cluster.copy_to(database.resolve(), FAST_SETTINGS)
        return forked_up(arguments, env)

    def wait_ready(self, seconds: float = 60.0, words: str = "orchestrator stack create") -> Up:
        """Return when it says that it is ready: when it has printed `words`."""
        patience = Patience(seconds)
        while words not in self.output:
            assert self.process.stdout is not None
            readable: list[Any] = []
            while not readable and (left := patience.left()):
                readable, _, _ = select.select([self.process.stdout], [], [], left)
            chunk = os.read(self.process.stdout.fileno(), 65536).decode() if readable else ""
            assert chunk, f"up ended or took too long: {self.output}"
            self.output += chunk
        return self

    def children(self) -> dict[int, str]:
        """Return its processes by pid: their command lines, theirs too."""
        parents, lines = {}, {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    line = (entry / "cmdline").read_bytes()  # unless it ends just now
                    pid = int(entry.name)
                    parents[pid], lines[pid] = int(parent), line.replace(b"\0", b" ").decode()
        family = {self.process.pid}
        while additional := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= additional
        return {pid: lines[pid] for pid in family - {self.process.pid}}

    def child(self, keywords: str) -> int:
        """Return the oldest process with `words` in its command line."""
        return min(pid for pid, line in self.children().items() if keywords in line)

    def create(self, name: str) -> None:
        """Ask for a stack."""
        body = {"stack_name": name, "template": TEMPLATE}
        httpx.post(f"{self.url}/v1/demo/stacks", json=body, timeout=20).raise_for_status()

    def status(self, name: str) -> str:
        """Return the status of the stack, or None while the API is unreachable."""
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.get(f"{self.url}/v1/demo/stacks/{name}", follow_redirects=True, timeout=5)
            if answer.is_success:
                status: str = answer.json()["stack"]["stack_status"]
                return status
        return ""

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to stop; return its exit status, its last words being in `output`."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=180)
        self.output += out.decode()
        return self.process.returncode
