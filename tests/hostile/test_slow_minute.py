"""A minute of each slow attack on a complete server: the requests of another project keep their speed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from statistics import median, quantiles
from typing import Any, Final

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import main
from tests.e2e.running import Up, eventually
from tests.hostile.slow import HEALTH, SlowClients, create, head, slow_server
from tests.integration.served_api import answer, status

pytestmark = pytest.mark.long

SECONDS: Final = float(os.environ.get("HOSTILE_SECONDS", "60"))
IDLE_SECONDS: Final = SECONDS / 3
FLOOR_SECONDS: Final = 0.1  # below which three times the idle time is noise
JSON: Final = "Content-Type: application/json"
FORM: Final = "Content-Type: application/x-www-form-urlencoded"
TEN: Final = {
    "heat_template_version": "2021-04-16",
    "resources": {f"item_{number}": {"type": "OS::Heat::RandomString"} for number in range(10)},
}
HANDLE: Final = {
    "heat_template_version": "2021-04-16",
    "resources": {"handle": {"type": "OS::Heat::WaitConditionHandle"}},
}
Times = dict[str, list[float]]


class Tenant:
    """A project that creates, lists, shows and signals."""

    def __init__(self, up: Up, name: str) -> None:
        self.port, self.name, self.number = up.port, name, 0
        command = ("token", "create", "--project", name, "--data-dir", str(up.data_dir))
        output = CliRunner().invoke(main, command, catch_exceptions=False).stdout
        self.token = output.split()[-1].rpartition("=")[2]
        self.waiting = self.create("waiting", HANDLE)

    def send(self, request: bytes) -> Any:
        """Return the body of a successful response."""
        answered = answer(self.port, request, seconds=90)
        assert status(answered) in {200, 201}, answered
        body = answered.partition(b"\r\n\r\n")[2]
        return json.loads(body) if body.startswith((b"{", b"[")) else None

    def create(self, name: str, template: object) -> str:
        """Create a stack and await its end; return its path."""
        request = create(self.token, self.name, {"stack_name": name, "template": template})
        place = f"/v1/{self.name}/stacks/{name}/{self.send(request)['stack']['id']}"
        shown = head("GET", place, self.token)
        eventually(lambda: self.send(shown)["stack"]["stack_status"] == "CREATE_COMPLETE", 60)
        return place

    def work(self, seconds: float) -> Times:
        """Work for a while; return the seconds of each kind of request."""
        times: Times = {}
        end = time.monotonic() + seconds
        signal = head("POST", f"{self.waiting}/resources/handle/signal", self.token, JSON, length=2) + b"{}"
        while time.monotonic() < end:
            self.number += 1
            with _timed(times, "create"):
                place = self.create(f"ten{self.number}", TEN)
            for _ in range(5):
                for kind, request in {
                    "list": head("GET", f"/v1/{self.name}/stacks?limit=20", self.token),
                    "show": head("GET", place, self.token),
                    "signal": signal,
                    **{path: head("GET", path) for path in HEALTH},
                }.items():
                    with _timed(times, kind):
                        self.send(request)
        return times


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    env = {
        "ORCHESTRATOR_AUTH": "token",
        "ORCHESTRATOR_TEMPLATE_FETCH_ALLOW_PRIVATE": "true",
        "ORCHESTRATOR_WEBHOOK_ALLOW_PRIVATE": "true",
    }
    made = Up(tmp_path_factory.mktemp("slow"), env=env)
    made.wait_ready(120)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def attacker(up: Up) -> Tenant:
    return Tenant(up, "attacker")


@pytest.fixture(scope="module")
def victim(up: Up) -> Tenant:
    return Tenant(up, "victim")


@pytest.fixture(scope="module")
def idle(victim: Tenant) -> Times:
    """The times without an attack."""
    victim.work(2.0)
    return victim.work(IDLE_SECONDS)


def unsigned_queries(attacker: Tenant) -> AbstractContextManager[object]:
    request = head("POST", "/v1/", "", FORM, length=900_000) + b"Action=ListStacks"
    return SlowClients(attacker.port, request)


def large_bodies(attacker: Tenant) -> AbstractContextManager[object]:
    request = head("POST", "/v1/attacker/stacks", attacker.token, JSON, length=200_000_000) + b"{"
    return SlowClients(attacker.port, request)


@contextmanager
def template_servers(attacker: Tenant) -> Iterator[None]:
    with slow_server() as slow:
        request = create(attacker.token, "attacker", {"stack_name": "s", "template_url": slow.url})
        with SlowClients(attacker.port, request, drips=False):
            yield


@contextmanager
def idle_connections(attacker: Tenant) -> Iterator[None]:
    with ExitStack() as held:
        for _ in range(1_200):  # more than a process of the API has
            with contextlib.suppress(OSError):
                address = ("127.0.0.1", attacker.port)
                held.enter_context(socket.create_connection(address, timeout=20))
        yield


@contextmanager
def webhook_receivers(attacker: Tenant) -> Iterator[None]:
    with slow_server() as slow:
        for _ in range(50):
            body = json.dumps({"url": slow.url}).encode()
            place = "/v1/attacker/webhooks"
            attacker.send(head("POST", place, attacker.token, JSON, length=len(body)) + body)
        attacker.create(f"ring{time.monotonic_ns()}", TEN)
        eventually(lambda: slow.connections >= 4, 30)
        yield


@pytest.mark.parametrize(
    "attack", [unsigned_queries, large_bodies, template_servers, idle_connections, webhook_receivers]
)
def test_another_project_keeps_its_speed(
    attack: Callable[[Tenant], AbstractContextManager[object]], attacker: Tenant, victim: Tenant, idle: Times
) -> None:
    with attack(attacker):
        attacked = victim.work(SECONDS)
    after = victim.work(IDLE_SECONDS / 2)
    for kind, times in idle.items():  # other processes may slow the machine down: `after` shows it
        bound = 3 * max(_p99(times), _p99(after[kind]), FLOOR_SECONDS)
        assert _p99(attacked[kind]) <= bound, (kind, sorted(attacked[kind])[-5:], bound)
        assert median(after[kind]) <= 3 * max(_p99(times), FLOOR_SECONDS)
    for path in HEALTH:
        assert _p99(attacked[path]) < 1


@contextmanager
def _timed(times: Times, kind: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    times.setdefault(kind, []).append(time.monotonic() - begun)


def _p99(times: list[float]) -> float:
    return quantiles(times, n=100, method="inclusive")[98] if len(times) > 1 else times[0]
