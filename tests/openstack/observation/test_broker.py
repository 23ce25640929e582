"""Notifications by a real broker: the time from a fault to the start of its repair, and a flood.

    BROKER_FAULTS=60 BROKER_FLOOD_SECONDS=60

The servers run as people start them, on the simulated cloud; RabbitMQ and the extra `notifications` are
needed. The figures are printed with the load of the machine.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from tests.openstack.acceptance.installation import Installation, installation
from tests.openstack.observation import fleet
from tests.openstack.observation.broker import Sender, broker, is_installed

FAULTS: Final = int(os.environ.get("BROKER_FAULTS", "60"))
FLOOD_SECONDS: Final = float(os.environ.get("BROKER_FLOOD_SECONDS", "60"))
FLOOD_RATE: Final = 1_000  # notifications per second
AT_ONCE: Final = 100
STACKS: Final = 10
SERVERS: Final = 6  # of a stack
P50, P99 = 1.0, 3.0  # seconds from the fault to the start of its repair
LATEST: Final = 60.0

pytest.importorskip("oslo_messaging")
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

    def __init__(self, on: Installation, url: str) -> None:
        self.on, self.nova = on, Sender(url, "nova")
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
            "ORCHESTRATOR_OBSERVATION_INTERVAL_SECONDS": "60",
        }
        with installation(None, settings=settings) as on:
            yield Fleet(on, url)


def shown(name: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    load = os.getloadavg()[0]
    return f"{name}: {len(ordered)} samples, p50 {p50:.3f} s, p99 {p99:.3f} s, load {load:.1f}"


def test_a_repair_starts_within_a_second_of_the_notification(servers: Fleet) -> None:
    seconds = [servers.damage(server) for server in servers.servers[5 : 5 + FAULTS]]
    print(shown("fault to start of repair", seconds))
    ordered = sorted(seconds)
    assert ordered[len(ordered) // 2] < P50, shown("", seconds)
    assert ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] < P99, shown("", seconds)


def test_a_flood_loses_no_fault_and_delays_nobody(servers: Fleet) -> None:
    quiet = [_request(servers) for _ in range(100)]
    ended, sent = threading.Event(), [0]
    flood = threading.Thread(target=_flood, args=(servers, ended, sent))
    flood.start()
    try:
        busy: list[float] = []
        faults = []
        until = time.monotonic() + FLOOD_SECONDS
        for server in servers.servers[:5]:
            faults.append(servers.damage(server))
            busy += [_request(servers) for _ in range(20)]
        while time.monotonic() < until:
            busy.append(_request(servers))
            time.sleep(0.2)
    finally:
        ended.set()
        flood.join()
    print(f"{sent[0]:,} notifications in {FLOOD_SECONDS:.0f} s")
    print(shown("request without a flood", quiet), shown("during the flood", busy), sep="\n")
    print(shown("fault to start of repair in the flood", faults))


def _request(servers: Fleet) -> float:
    began = time.monotonic()
    servers.on.request("GET", "/stacks")
    return time.monotonic() - began


def _flood(servers: Fleet, ended: threading.Event, sent: list[int]) -> None:
    """Send notifications at the rate, half of them about objects that do not exist."""
    began, known = time.monotonic(), [server.id for server in servers.servers]
    while not ended.is_set():
        due = int((time.monotonic() - began) * FLOOD_RATE)
        for number in range(sent[0], min(due, sent[0] + AT_ONCE)):
            id_ = known[number % len(known)] if number % 2 else str(uuid.uuid4())
            servers.nova.send("compute.instance.update", instance_id=id_, tenant_id=servers.project)
            sent[0] += 1
        time.sleep(0.001)
