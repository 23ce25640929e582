"""Work that never releases the interpreter lock: its process is replaced, and the work is quarantined."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.watchdog.watch import LIMIT_SECONDS
from tests import constants
from tests.e2e.running import Up, eventually
from tests.patience import took_at_most

PLUGIN = Path(__file__).parents[2] / "plugins" / "hang"
WAIT_SECONDS = 240.0
REPLACED_SECONDS = 20.0
NUMBERS = count(1)
SHARE = 3  # workers yield the processor to the processes of other tests


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate") / "open"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, gate: Path) -> Iterator[Up]:
    env = {
        "TEST_HANG_GATE": str(gate),
    }
    replaced = constants.environment(
        {
            "lease_seconds": 6,
            "observation_interval_seconds": 2,
            "observation_min_interval_seconds": 1,
            "observation_single_interval_seconds": 2,
        }
    )
    env = {**replaced, **env, "PYTHONPATH": os.pathsep.join([str(PLUGIN), replaced["PYTHONPATH"]])}
    made = Up(tmp_path_factory.mktemp("hangs") / "data", env=env).wait_ready(120)
    yield made
    made.stop()


class Tenant:
    """A tenant of the installation."""

    def __init__(self, up: Up, project: str) -> None:
        self.client = httpx.Client(
            base_url=f"{up.url}/v1/{project}", timeout=60.0, follow_redirects=True, trust_env=False
        )

    def get(self, path: str) -> dict[str, Any]:
        answer = self.client.get(path)
        answer.raise_for_status()
        body: dict[str, Any] = answer.json()
        return body

    def create(self, name: str, resources: dict[str, Any]) -> None:
        template = {"heat_template_version": "2021-04-16", "resources": resources}
        body = {"stack_name": name, "template": template}
        self.client.post("/stacks", json=body).raise_for_status()

    def stack(self, name: str) -> dict[str, Any]:
        stack: dict[str, Any] = self.get(f"/stacks/{name}?resolve_outputs=false")["stack"]
        return stack

    def status(self, name: str) -> str:
        status: str = self.stack(name)["stack_status"]
        return status

    def await_status(self, name: str, *statuses: str) -> None:
        eventually(lambda: self.status(name) in statuses, WAIT_SECONDS)


@pytest.fixture
def tenant(up: Up) -> Iterator[Callable[[str], Tenant]]:
    """Tenants in their own projects."""
    made: list[Tenant] = []

    def make(name: str) -> Tenant:
        made.append(Tenant(up, f"{name}{next(NUMBERS)}"))
        return made[-1]

    yield make
    for one in made:
        one.client.close()


def hanging(type_: str, where: str, how: str) -> dict[str, Any]:
    return {"type": type_, "properties": {"where": where, "how": how}}


def metric(up: Up, line: str) -> float:
    """Return the value of a metric; 0 without it."""
    with contextlib.suppress(httpx.HTTPError):
        text = httpx.get(f"{up.url}/metrics", timeout=30, trust_env=False).text
        found = [row.rpartition(" ")[2] for row in text.splitlines() if row.startswith(line + " ")]
        return float(found[0]) if found else 0.0
    return 0.0


def responds(up: Up) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{up.url}/healthcheck", timeout=30, trust_env=False).is_success
    return False


def silent_seconds(up: Up, name: str) -> list[float]:
    """Return how long the processes of a worker had no heartbeat until they were ended."""
    lines = (up.data_dir / "logs" / f"{name}.log").read_text().splitlines()
    reports = [json.loads(line) for line in lines if '"process_hung"' in line]
    return [report["seconds"] for report in reports]


def worker(up: Up, name: str) -> int | None:
    """Return the process of a worker."""
    found = [pid for pid, line in up.children().items() if f"-n {name}@" in line]
    return min(found, default=None)


@pytest.mark.parametrize(
    ("type_", "how", "process"),
    [
        ("Test::Hang", "spin", "check1"),
        pytest.param("Test::RemoteHang", "sleep", "provider1", marks=pytest.mark.long),
    ],
)
def test_a_hung_worker_is_replaced_and_its_resource_fails_by_name(
    up: Up, tenant: Callable[[str], Tenant], type_: str, how: str, process: str
) -> None:
    hostile, other = tenant("hostile"), tenant("other")
    before, began = worker(up, process), time.monotonic()
    quarantined = metric(up, 'orchestrator_quarantined_work{kind="node"}')
    hostile.create("poison", {"bad": hanging(type_, "create", how), "good": {"type": "OS::Heat::None"}})
    healthy = {f"r{number}": {"type": type_} for number in range(4)}
    for number in range(4):
        other.create(f"healthy{number}", healthy)
    eventually(lambda: worker(up, process) not in (before, None), WAIT_SECONDS)
    assert took_at_most(began, REPLACED_SECONDS * SHARE)
    assert all(seconds < LIMIT_SECONDS + 1 for seconds in silent_seconds(up, process))
    hostile.await_status("poison", "CREATE_FAILED")
    reason = hostile.stack("poison")["stack_status_reason"]
    assert "resources.bad" in reason
    assert "hung a worker 2 times" in reason
    assert ("fullmatch" if how == "spin" else "hang (hang/hang_type.py") in reason
    for number in range(4):
        other.await_status(f"healthy{number}", "CREATE_COMPLETE")
    assert metric(up, 'orchestrator_watchdog_ended_processes_total{process="worker"}') >= 2
    eventually(
        lambda: metric(up, 'orchestrator_quarantined_work{kind="node"}') == quarantined + 1, WAIT_SECONDS
    )
    assert "hung a worker" in str(hostile.get("/stacks/poison/why"))
    template = {
        "heat_template_version": "2021-04-16",
        "resources": {"bad": hanging(type_, "nowhere", how)},
    }
    path = hostile.stack("poison")["links"][0]["href"]
    hostile.client.put(path, json={"template": template}).raise_for_status()
    hostile.await_status("poison", "UPDATE_COMPLETE")


def test_a_hung_api_process_is_replaced(up: Up, tenant: Callable[[str], Tenant]) -> None:
    client, began = tenant("hostile"), time.monotonic()
    poison = {"bad": hanging("Test::Hang", "validate", "spin")}
    for hangs in (0, 1):
        with pytest.raises(httpx.RequestError):
            client.create("poison", poison)
        eventually(lambda: responds(up), 60)
        assert hangs or took_at_most(began, REPLACED_SECONDS)
    with pytest.raises(httpx.HTTPStatusError) as refused:
        client.create("poison", poison)
    answer = refused.value.response
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3600")
    assert "hung a process of the API 2 times" in answer.json()["error"]["message"]
    log = (up.data_dir / "logs" / "api.log").read_text()
    assert "process_hung" in log or "WORKER TIMEOUT" in log  # of gunicorn, on a machine that is very slow
    other = tenant("other")
    other.create("s", {"a": {"type": "OS::Heat::None"}})
    other.await_status("s", "CREATE_COMPLETE")


@pytest.mark.long
def test_a_resource_whose_observation_hangs_is_left_out_of_rounds(
    up: Up, tenant: Callable[[str], Tenant], gate: Path
) -> None:
    hostile, other = tenant("hostile"), tenant("other")
    hostile.create(
        "s", {"bad": hanging("Test::RemoteHang", "observe", "spin"), "good": {"type": "Test::RemoteHang"}}
    )
    hostile.await_status("s", "CREATE_COMPLETE")
    gate.touch()
    try:
        eventually(lambda: metric(up, 'orchestrator_quarantined_work{kind="observation"}') >= 1, WAIT_SECONDS)
        other.create("s", {"a": {"type": "Test::RemoteHang"}})
        other.await_status("s", "CREATE_COMPLETE")
        said = eventually(lambda: unknown(hostile), WAIT_SECONDS)
        assert "hung a worker 2 times" in said
    finally:
        gate.unlink()


def unknown(tenant: Tenant) -> str:
    """Return why the state of resource `bad` is unknown; "" if it is known."""
    found = tenant.get("/observations?verdict=UNKNOWN")["observations"]
    return str(found) if "hung" in str(found) else ""
