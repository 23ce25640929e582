"""Everything at once on the simulated cloud: users update templates, a group scales, an administrator damages
objects, and workers are killed. At the end the cloud is as the last templates say, with nothing
twice and nothing leaked.

    COMBINED_SECONDS=600

The servers run as people start them.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import orjson
import pytest

from orchestrator.errors import ProviderError
from qa.acceptance.installation import Failed, Installation, installation
from tests import constants
from tests.openstack.observation import fleet

SECONDS: Final = float(os.environ.get("COMBINED_SECONDS", "600"))
UPDATE_SECONDS, SCALE_SECONDS, FAULT_SECONDS, KILL_SECONDS, ANSWER_SECONDS = 5.0, 9.0, 4.0, 12.0, 3.0
SERVERS: Final = 4  # of a stack
FLEETS: Final = ("s0", "s1")
GROUP: Final = "group"
SIZES: Final = (2, 6)  # of the group
END_SECONDS: Final = 900.0
WORKERS: Final = ("-n check", "-n provider")
SETTINGS: Final = constants.environment(
    {"observation_interval_seconds": 10, "observation_min_interval_seconds": 2}
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(7_200)]


class Users:
    """The last templates, and the changes of stacks and objects."""

    def __init__(self, on: Installation, dice: random.Random) -> None:
        self.on, self.dice = on, dice
        self.templates: dict[str, Any] = {name: fleet.fleet(SERVERS) for name in FLEETS}
        self.templates[GROUP] = fleet.scaled(3)
        self.done: dict[str, int] = {}
        self.refused: list[str] = []

    def request(self, name: str) -> dict[str, Any]:
        """Return the desired state of a stack as a request."""
        files = {fleet.MEMBER_FILE: orjson.dumps(fleet.member()).decode()} if name == GROUP else {}
        return {"stack_name": name, "template": self.templates[name], "files": files}

    def create(self) -> None:
        for name in self.templates:
            self.on.request("POST", "/stacks", json=self.request(name))
        for name in self.templates:
            assert self.on.wait(name, END_SECONDS) == "CREATE_COMPLETE"
        self.on.request("POST", "/observation_policies", json={"kind": "policy", "mode": "heal"})

    def put(self, name: str) -> None:
        stack = self.on.stack(name)
        assert stack is not None
        self.on.request("PUT", f"/stacks/{name}/{stack['id']}", json=self.request(name))

    def update(self) -> None:
        name = self.dice.choice(FLEETS)
        server = self.templates[name]["resources"][f"server{self.dice.randrange(SERVERS)}"]
        server["properties"]["metadata"] = {"role": f"role-{self.dice.randrange(1_000)}"}
        self.put(name)

    def scale(self) -> None:
        group = self.templates[GROUP]["resources"]["members"]
        group["properties"]["count"] = self.dice.randint(*SIZES)
        self.put(GROUP)

    def damage(self) -> None:
        """Delete, change or rename an object, as an administrator."""
        compute, network = self.on.administrator.compute, self.on.administrator.network
        servers = [item["id"] for item in compute.listed("/servers", "servers", {"all_tenants": "1"})]
        if not servers:
            return
        path = f"/servers/{self.dice.choice(servers)}"
        match self.dice.randrange(4):
            case 0:
                compute.delete(path)
            case 1:
                compute.post(f"{path}/metadata", {"metadata": {"role": "foreign"}})
            case 2:
                compute.put(path, {"server": {"name": "foreign"}})
            case _:
                ports = [port["id"] for port in network.listed("/ports", "ports") if port["device_id"]]
                network.put(f"/ports/{self.dice.choice(ports)}", {"port": {"name": "foreign"}})

    def kill(self) -> None:
        """End a worker."""
        mine = [pid for pid, line in self.on.up.children().items() if any(name in line for name in WORKERS)]
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(self.dice.choice(sorted(mine)), signal.SIGKILL)

    def approve(self) -> None:
        """Approve all repairs that would lose data."""
        for row in self.on.request("GET", "/repairs", params={"status": "pending"})["repairs"]:
            self.on.request("POST", f"/repairs/{row['id']}/approve", json={})

    @contextlib.contextmanager
    def repeating(self, act: Callable[[], None], seconds: float) -> Iterator[None]:
        """Act again and again in a thread."""
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(seconds * self.dice.uniform(0.5, 1.5)):
                try:
                    act()
                except (Failed, ProviderError, httpx.HTTPError) as error:
                    self.refused.append(f"{act.__name__}: {error}"[:300])
                else:
                    self.done[act.__name__] = self.done.get(act.__name__, 0) + 1

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(300.0)


@pytest.fixture
def users() -> Iterator[Users]:
    with installation(None, settings=SETTINGS, workers=2) as on:
        yield Users(on, random.Random(int(os.environ.get("COMBINED_SEED", "1"))))


def test_at_the_end_the_cloud_is_as_the_last_templates_say(users: Users) -> None:
    users.create()
    with contextlib.ExitStack() as acts:
        for act, seconds in {
            users.update: UPDATE_SECONDS,
            users.scale: SCALE_SECONDS,
            users.damage: FAULT_SECONDS,
            users.kill: KILL_SECONDS,
            users.approve: ANSWER_SECONDS,
        }.items():
            acts.enter_context(users.repeating(act, seconds))
        time.sleep(SECONDS)
    put_right(users)
    print(users.done, len(users.refused), users.refused[:5], sep="\n")
    verify(users)


def put_right(users: Users) -> None:
    """Wait until nothing differs. A person repeats failed updates, and converges stacks with faults that were
    given up.
    """
    until, converged_at = time.monotonic() + END_SECONDS, time.monotonic()
    while left := differences(users):
        assert time.monotonic() < until, left
        with contextlib.suppress(Failed):  # an operation is in progress
            users.approve()
            for name in users.templates:
                stack = users.on.stack(name) or {}
                if stack["stack_status"].endswith("FAILED"):
                    users.put(name)
                elif time.monotonic() - converged_at > 60.0:
                    place = f"/stacks/{name}/{stack['id']}/actions"
                    users.on.request("POST", place, json={"converge": {}})
        if time.monotonic() - converged_at > 60.0:
            converged_at = time.monotonic()
        time.sleep(3.0)


def differences(users: Users) -> list[str]:
    """Return the stacks in progress, or else the faults that a complete round has found.

    A repair of the last fault can begin during the round. The fault is in no answer from then on, so the
    stacks are read again after it.
    """
    if found := incomplete(users):
        return found
    began = users.on.request("GET", "/observations")["services"]
    rounds = {(row["service"], row["kind"]): row["observed_at"] for row in began}
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        answer = users.on.request("GET", "/observations")
        new = [rounds.get((row["service"], row["kind"])) != row["observed_at"] for row in answer["services"]]
        if all(new):
            faults = [f"{row['resource_name']} {row['verdict']}" for row in answer["observations"]]
            return faults or incomplete(users)
        time.sleep(1.0)
    return ["no rounds"]


def incomplete(users: Users) -> list[str]:
    """Return the stacks that are not complete."""
    found = []
    for name in users.templates:
        status = (users.on.stack(name) or {"stack_status": "missing"})["stack_status"]
        if not status.endswith("_COMPLETE"):
            found.append(f"{name} {status}")
    return found


def verify(users: Users) -> None:
    """Compare the cloud with resources and templates."""
    on, compute = users.on, users.on.administrator.compute
    resources = [row for name in users.templates for row in on.resources(name)]
    assert [row for row in resources if not row["resource_status"].endswith("COMPLETE")] == []
    servers = list(compute.listed("/servers/detail", "servers", {"all_tenants": "1"}))
    by_type: dict[str, list[str]] = {}
    for row in resources:
        by_type.setdefault(row["resource_type"], []).append(row["physical_resource_id"])
    assert sorted(server["id"] for server in servers) == sorted(by_type["OS::Nova::Server"])
    ports = [port["id"] for port in on.administrator.network.listed("/ports", "ports") if port["device_id"]]
    assert sorted(ports) == sorted(by_type["OS::Neutron::Port"])
    metadata = {server["id"]: server["metadata"] for server in servers}
    for name in FLEETS:
        ids = {row["resource_name"]: row["physical_resource_id"] for row in on.resources(name)}
        for number in range(SERVERS):
            wanted = users.templates[name]["resources"][f"server{number}"]["properties"]["metadata"]
            assert metadata[ids[f"server{number}"]] == wanted
    size = users.templates[GROUP]["resources"]["members"]["properties"]["count"]
    members = [row for row in on.resources(GROUP) if row["resource_type"] == "OS::Nova::Server"]
    assert len(members) == size
