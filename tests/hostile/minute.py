"""A minute of an attack: the times of the requests of other projects, and the memory of each process."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from statistics import median, quantiles
from typing import Any, Final

from click.testing import CliRunner

from orchestrator.cli.main import main
from qa.bench.processes import forget_peak, peak_memory, sample_processes
from tests.e2e.running import Up, eventually
from tests.hostile.slow import HEALTH, head
from tests.integration.served_api import answer, status

SECONDS: Final = float(os.environ.get("HOSTILE_SECONDS", "60"))
IDLE_SECONDS: Final = SECONDS / 3
FLOOR_SECONDS: Final = 0.1  # below which three times the idle time is noise
RECOVERY_SECONDS: Final = 300.0
JSON: Final = "Content-Type: application/json"
# Maximum resident memory of a process in MB while attacked; docs/security.md, "Memory".
MEMORY_MB: Final = {"api": 1024, "worker": 512, "parsing": 1024, "yaql": 256, "postgres": 1024, "valkey": 512}
HANDLE: Final = {
    "heat_template_version": "2021-04-16",
    "resources": {"handle": {"type": "OS::Heat::WaitConditionHandle"}},
}
ACCEPTED: Final = "accepted"  # the request of a create
Times = dict[str, list[float]]


def template(resources: int) -> dict[str, Any]:
    """Return a template of independent resources."""
    named = {f"item_{number}": {"type": "OS::Heat::RandomString"} for number in range(resources)}
    return {"heat_template_version": "2021-04-16", "resources": named}


TEN: Final = template(10)


class Project:
    """A project that creates, lists, shows and signals."""

    def __init__(self, up: Up, name: str, credential: str = "") -> None:
        """Create a token, unless another credential is passed as a header."""
        self.up, self.port, self.name, self.number = up, up.port, name, 0
        self.token = "" if credential else _token(up, name)
        self.credential = credential or f"X-Auth-Token: {self.token}"
        self.waiting = ""  # path of a stack with a handle

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request with a JSON body."""
        name, _, value = self.credential.partition(": ")
        return {"Host": "localhost", name: value, "Content-Type": "application/json"}

    @property
    def stacks_path(self) -> str:
        """The path of the collection of stacks."""
        return f"/v1/{self.name}/stacks"

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Return the body of a successful response."""
        data = b"" if body is None else json.dumps(body).encode()
        return self.send(self.head(method, path, length=len(data)) + data)

    def head(self, method: str, path: str, length: int = 0) -> bytes:
        """Return the head of a request after which the server closes the connection."""
        headers = (self.credential, "Connection: close", *([JSON] if length else []))
        return head(method, path, "", *headers, length=length)

    def send(self, request: bytes) -> Any:
        """Return the body of a successful response."""
        answered = answer(self.port, request, seconds=90)
        assert status(answered) in {200, 201, 202, 204}, (request[:200], answered[:2000])
        body = answered.partition(b"\r\n\r\n")[2]
        return json.loads(body) if body.startswith((b"{", b"[")) else None

    def create(self, name: str, template: object, seconds: float = 120.0, times: Times | None = None) -> str:
        """Create a stack and await its end; return its path. `times` receives the time of the request."""
        body = {"stack_name": name, "template": template}
        with _timed({} if times is None else times, ACCEPTED):
            id_ = self.request("POST", self.stacks_path, body)["stack"]["id"]
        place = f"{self.stacks_path}/{name}/{id_}"
        shown = f"{place}?resolve_outputs=false"
        complete = "CREATE_COMPLETE"
        eventually(lambda: self.request("GET", shown)["stack"]["stack_status"] == complete, seconds)
        return place

    def stacks(self) -> list[dict[str, Any]]:
        """Return up to 1,000 stacks, as soon as the server accepts the request."""
        request = self.head("GET", f"{self.stacks_path}?limit=1000")
        answered = eventually(lambda: _accepted(self.port, request), RECOVERY_SECONDS)
        stacks: list[dict[str, Any]] = json.loads(answered.partition(b"\r\n\r\n")[2])["stacks"]
        return stacks

    def work(self, seconds: float, pause: float = 0.0, rounds: int = 5, resources: int = 10) -> Times:
        """Work for a while; return the seconds of each kind of request."""
        times: Times = {}
        end = time.monotonic() + seconds
        self.waiting = self.waiting or self.create("waiting", HANDLE)
        while time.monotonic() < end:
            self.number += 1
            with _timed(times, "create"):
                place = self.create(f"ten{self.number}", template(resources), times=times)
            for _ in range(rounds):
                with _timed(times, "list"):
                    self.request("GET", f"{self.stacks_path}?limit=20")
                with _timed(times, "show"):
                    self.request("GET", place)
                with _timed(times, "signal"):
                    self.request("POST", f"{self.waiting}/resources/handle/signal", {})
                for path in HEALTH:
                    with _timed(times, path):
                        self.send(head("GET", path))
                time.sleep(pause)
        return times

    def delete_stacks(self, keep: str = "") -> None:
        """Delete all stacks except one; return when they are deleted."""
        deadline = time.monotonic() + RECOVERY_SECONDS
        while remaining := [stack for stack in self.stacks() if stack["stack_name"] != keep]:
            for stack in remaining:
                if stack["stack_status"] != "DELETE_IN_PROGRESS":
                    path = f"{self.stacks_path}/{stack['stack_name']}/{stack['id']}"
                    answered = answer(self.port, self.head("DELETE", path), seconds=90)
                    assert status(answered) in {204, 404, 429}, answered
            assert time.monotonic() < deadline, f"{len(remaining)} stacks were not deleted: {remaining[0]}"
            time.sleep(0.2)


class Memory:
    """The peak memory of the processes of an installation during a block, in MB by role."""

    def __init__(self, up: Up) -> None:
        self.up = up
        self.peaks: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        for pid in self._roles():
            forget_peak(pid)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._sample()

    def require_bounded(self) -> None:
        """Check the bound of each role."""
        assert {"api", "worker"} <= self.peaks.keys(), self.peaks
        exceeded = {role: mb for role, mb in self.peaks.items() if mb > MEMORY_MB[role]}
        assert not exceeded, (exceeded, MEMORY_MB)

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self._sample()

    def _sample(self) -> None:
        for pid, role in self._roles().items():
            self.peaks[role] = max(self.peaks.get(role, 0.0), peak_memory(pid) or 0.0)

    def _roles(self) -> dict[int, str]:
        processes = sample_processes()
        servers = {
            pid for pid, process in processes.items() if "multiprocessing.forkserver" in process.command
        }
        roles = {}
        for pid, line in self.up.children().items():
            if pid in servers and pid in processes:
                roles[pid] = "parsing" if processes[pid].parent in servers else "api"
            else:
                roles.update((pid, role) for role, keyword in KEYWORDS.items() if keyword in line)
        return roles


KEYWORDS: Final = {  # in the command line of a role's processes; the last that matches
    "api": "gunicorn",
    "worker": "celery",
    "postgres": "postgres",
    "valkey": "valkey-server",
    "yaql": "yaql_process.py",
}


def queued(up: Up) -> int:
    """Return the number of messages in all queues."""
    metrics = answer(up.port, head("GET", "/metrics")).decode()
    lines = [line for line in metrics.splitlines() if line.startswith("orchestrator_queue_messages{")]
    assert lines, metrics[:2000]
    return sum(int(float(line.split()[-1])) for line in lines)


def require_kept(idle: Times, attacked: Times, after: Times) -> None:
    """Check that the times during an attack are within three times those without."""
    for kind, times in idle.items():
        if kind == ACCEPTED:  # a part of each create
            continue
        # other processes may slow the machine down: `after` shows it
        bound = 3 * max(p99(times), p99(after[kind]), FLOOR_SECONDS)
        assert p99(attacked[kind]) <= bound, (kind, sorted(attacked[kind])[-5:], bound, summary(attacked))
        assert median(after[kind]) <= 3 * max(p99(times), FLOOR_SECONDS), (kind, summary(after))
    for path in HEALTH:
        assert p99(attacked[path]) < 1, summary(attacked)


def require_recovered(attacker: Project) -> None:
    """Delete the stacks of the attacker, and check that its next stack works and the queues are empty."""
    begun = time.monotonic()
    attacker.delete_stacks()
    attacker.create(f"after{time.monotonic_ns()}", TEN)
    attacker.delete_stacks()
    eventually(lambda: queued(attacker.up) == 0, RECOVERY_SECONDS)
    print(f"recovered after {time.monotonic() - begun:.1f} s")


def attack_and_compare(
    attack: AbstractContextManager[object], attacker: Project, victim: Project, idle: Times
) -> None:
    """Work during an attack and after it, and check times, memory and recovery."""
    with Memory(victim.up) as memory:
        with attack:
            attacked = victim.work(SECONDS)
            print("idle", summary(idle))
            print("attacked", summary(attacked))
        require_recovered(attacker)
    after = victim.work(IDLE_SECONDS / 2)
    print("after", summary(after))
    print("peak memory in MB", {role: round(mb) for role, mb in memory.peaks.items()})
    require_kept(idle, attacked, after)
    memory.require_bounded()


def summary(times: Mapping[str, list[float]]) -> str:
    """Return count, median, p99 and maximum of each kind of request."""
    parts = [f"{kind} {len(of)}x {median(of):.3f}/{p99(of):.3f}/{max(of):.3f}" for kind, of in times.items()]
    return ", ".join(parts)


def p99(times: list[float]) -> float:
    return quantiles(times, n=100, method="inclusive")[98] if len(times) > 1 else times[0]


def basic(name: str, password: str) -> str:
    """Return the header of basic authentication."""
    return "Authorization: Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@contextmanager
def _timed(times: Times, kind: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    times.setdefault(kind, []).append(time.monotonic() - begun)


def _accepted(port: int, request: bytes) -> bytes:
    """Return a response; nothing if the server has too many requests."""
    answered = answer(port, request, seconds=90)
    assert status(answered) in {200, 429}, answered[:2000]
    return answered if status(answered) == 200 else b""


def _token(up: Up, project: str) -> str:
    command = ("token", "create", "--project", project, "--data-dir", str(up.data_dir))
    output = CliRunner().invoke(main, command, catch_exceptions=False).stdout
    return output.split()[-1].rpartition("=")[2]
