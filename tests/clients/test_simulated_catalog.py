"""The stock client with the variables that `orchestrator up --cloud simulated` prints: the catalog of the
simulated Keystone contains the orchestrator.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.embedded.simulated_cloud import PORTS
from tests.clients.stock import Driver, settings_of_nobody
from tests.e2e.running import Up, free_ports


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A server with a simulated cloud."""
    ports = ("--cloud", "simulated", "--cloud-port", str(free_ports(PORTS)))
    up = Up(tmp_path_factory.mktemp("cloud") / "data", options=ports)
    try:
        yield up.wait_ready(180, "OS_REGION_NAME=RegionOne")
    finally:
        up.stop()


@pytest.fixture(scope="module")
def printed(cloud: Up) -> dict[str, str]:
    """The variables that the server prints."""
    return dict(word.split("=", 1) for word in shlex.split(cloud.output) if word.startswith("OS_"))


def run(driver: Driver, variables: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [str(driver.place / "bin" / "openstack"), *arguments],
        env={**settings_of_nobody(driver.home), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout


def listed(driver: Driver, variables: dict[str, str], *arguments: str) -> list[Any]:
    rows: list[Any] = json.loads(run(driver, variables, *arguments, "-f", "json"))
    return rows


def test_the_client_finds_the_orchestrator_in_the_catalog(
    driver: Driver, printed: dict[str, str], template: Path
) -> None:
    run(driver, printed, "stack", "create", "-t", str(template), "--wait", "--poll", "1", "one")
    [stack] = listed(driver, printed, "stack", "list")
    assert (stack["Stack Name"], stack["Stack Status"]) == ("one", "CREATE_COMPLETE")


def test_the_catalog_has_both_interfaces_of_the_orchestrator(
    cloud: Up, driver: Driver, printed: dict[str, str]
) -> None:
    found = {row["Type"]: row for row in listed(driver, printed, "catalog", "list")}
    urls = {
        kind: {item["url"] for item in found[kind]["Endpoints"]}
        for kind in ("orchestration", "cloudformation")
    }
    assert urls["cloudformation"] == {f"{cloud.url}/v1"}
    [url] = urls["orchestration"]
    assert url.startswith(f"{cloud.url}/v1/")
    assert found["orchestration"]["Name"] == "heat"
