"""Notifications by a real broker: the time from a fault to the start of its repair, and a flood.

    BROKER_FAULTS=30 BROKER_FLOOD_SECONDS=60

The servers run as people start them, on the simulated cloud; RabbitMQ is needed. The figures are printed with
the load of the machine.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from qa.acceptance.installation import Installation, installation
from tests.openstack.observation import fleet, flood
from tests.openstack.observation.broker import Sender, broker, is_installed

FAULTS: Final = int(os.environ.get("BROKER_FAULTS", "30"))
FLOOD_SECONDS: Final = float(os.environ.get("BROKER_FLOOD_SECONDS", "60"))
FLOOD_RATE: Final = 1_000  # notifications per second
FLOOD_FAULTS: Final = 15
MAX_DELAY: Final = 1.1  # of requests, by the processing of a flood
STACKS: Final = 10
SERVERS: Final = 6  # of a stack
P50, P99 = 1.0, 3.0  # seconds from the fault to the start of its repair
LATEST: Final = 60.0
ROLES: Final = {  # of processes, by a part of their command lines
    "provider worker": "-n provider",
    "check worker": "-n check",
    "api": "gunicorn",
    "database": "postgres",
    "simulated cloud": "simulated",
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(not is_installed(), reason="RabbitMQ is not installed"),
]


class Server(NamedTuple):
    """A server of a stack."""

    stack: str
    name: str
    id: str


class Fleet:
    """Healthy servers under the policy `heal`, and the services' notifications."""

    def __init__(self, on: Installation, url: str, nova: Sender) -> None:
        self.on, self.url, self.nova = on, url, nova
        self.project = on.cloud.session().get_project_id()
        for number in range(STACKS):
            on.request("POST", "/stacks", json={"stack_name": f"s{number}", "template": fleet.fleet(SERVERS)})
        for number in range(STACKS):
            assert on.wait(f"s{number}", 600.0) == "CREATE_COMPLETE"
        on.request("POST", "/observation_policies", json={"kind": "policy", "mode": "heal"})
        listed = {f"s{number}": on.resources(f"s{number}") for number in range(STACKS)}
        # Stacks take turns, so that a repair seldom waits for another one of its stack.
        self.servers = [
            Server(stack, row["resource_name"], row["physical_resource_id"])
            for number in range(SERVERS)
            for stack, rows in listed.items()
            for row in rows
            if row["resource_name"] == f"server{number}"
        ]
        self._await_rounds()

    def _await_rounds(self) -> None:
        until = time.monotonic() + 300.0
        while True:
            found = self.on.request("GET", "/observations")["services"]
            nova = [row for row in found if row["service"] == "nova" and row["objects"]]
            if nova and nova[0]["objects"] >= STACKS * SERVERS:
                return
            assert time.monotonic() < until, f"nova is not observed: {found}"
            time.sleep(1.0)

    def spent(self) -> dict[str, float]:
        """Return the processor time of the installation's processes so far, by role."""
        spent: dict[str, float] = defaultdict(float)
        for pid, line in self.on.up.children().items():
            role = next((name for name, words in ROLES.items() if words in line), "others")
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                spent[role] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return spent

    def damage(self, server: Server) -> float:
        """Change the metadata of a server outside; return the seconds until its repair starts."""
        self.on.administrator.compute.post(f"/servers/{server.id}/metadata", {"metadata": {"role": "db"}})
        began = time.monotonic()
        self.nova.send("compute.instance.update", instance_id=server.id, tenant_id=self.project)
        while time.monotonic() - began < LATEST:
            found = self.on.request("GET", "/repairs", params={"stack": server.stack})["repairs"]
            if any(row["resource_name"] == server.name and row["started_at"] for row in found):
                return time.monotonic() - began
            time.sleep(0.02)
        raise AssertionError(f"{server} was not repaired: {found}")


@pytest.fixture(scope="module")
def servers() -> Iterator[Fleet]:
    with broker() as url:
        settings = {
            "ORCHESTRATOR_NOTIFICATIONS_URL": url,
        }
        with (
            installation(None, settings=settings) as on,
            contextlib.closing(Sender(url, "nova")) as nova,
        ):
            yield Fleet(on, url, nova)


def shown(name: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    load = os.getloadavg()[0]
    return f"{name}: {len(ordered)} samples, p50 {p50:.3f} s, p99 {p99:.3f} s, load {load:.1f}"


def test_a_repair_starts_within_a_second_of_the_notification(servers: Fleet) -> None:
    seconds = [servers.damage(server) for server in servers.servers[-FAULTS:]]
    print(shown("fault to start of repair", seconds))
    ordered = sorted(seconds)
    assert ordered[len(ordered) // 2] < P50, shown("", seconds)
    assert ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] < P99, shown("", seconds)


def test_a_flood_loses_no_fault_and_delays_nobody(servers: Fleet) -> None:
    """The delay of requests comes from the processing: it is compared with the same sending to a topic that
    nobody receives.
    """
    quiet = [_request(servers) for _ in range(100)]
    alone = _during(servers, "elsewhere", servers.servers[:FLOOD_FAULTS])
    flooded = _during(servers, "notifications", servers.servers[FLOOD_FAULTS : 2 * FLOOD_FAULTS])
    print(shown("request without a sender", quiet))
    for name, load in {"a sender to nobody": alone, "the flood": flooded}.items():
        print(f"{name}: {load.sent:,} notifications in {FLOOD_SECONDS:.0f} s")
        print(shown(f"request beside {name}", load.requests))
        print(shown(f"fault to start of repair beside {name}", load.faults))
        print(", ".join(f"{role} {seconds:.2f} s" for role, seconds in sorted(load.spent.items())))
    assert flooded.sent >= 0.95 * FLOOD_RATE * FLOOD_SECONDS, "the sender is too slow"
    assert sorted(flooded.faults)[FLOOD_FAULTS // 2] < P50
    assert max(flooded.faults) < P99
    assert statistics.median(flooded.requests) < MAX_DELAY * statistics.median(alone.requests)


class Load(NamedTuple):
    """Measurements while notifications were sent."""

    sent: int
    requests: list[float]  # seconds
    faults: list[float]
    spent: dict[str, float]  # seconds of processor time, by process


def _during(servers: Fleet, topic: str, damaged: list[Server]) -> Load:
    """Send notifications of a topic; measure requests and the repairs of some servers meanwhile."""
    sender = flood.start(
        url=servers.url,
        topic=topic,
        project=servers.project,
        known=[server.id for server in servers.servers],
        rate=FLOOD_RATE,
        seconds=FLOOD_SECONDS,
    )
    until = time.monotonic() + FLOOD_SECONDS
    requests: list[float] = []
    faults, before = [], servers.spent()
    for server in damaged:
        faults.append(servers.damage(server))
        requests += [_request(servers) for _ in range(10)]
    while time.monotonic() < until:
        requests.append(_request(servers))
        time.sleep(0.1)
    output, _ = sender.communicate(timeout=60)
    spent = {role: seconds - before.get(role, 0.0) for role, seconds in servers.spent().items()}
    return Load(int(output), requests, faults, spent)


def _request(servers: Fleet) -> float:
    began = time.monotonic()
    servers.on.request("GET", "/stacks")
    return time.monotonic() - began
