"""A real server (API and workers as processes) for all tests of a session, and a project for each test."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from orchestrator.embedded.valkey import Valkey
from tests import constants
from tests.e2e.running import Up, environment
from tests.noisy.cloud import CloudProcess
from tests.noisy.project import Project
from tests.noisy.templates import PLACES, Place

# Pauses between attempts are short, so that each scenario takes seconds.
SETTINGS = constants.environment({"retry_max_seconds": 0.2})
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Installation:
    """The URL of the API, the cloud, and the database."""

    url: str
    cloud: CloudProcess
    database_url: str


@pytest.fixture(scope="session")
def installation(
    new_database: Callable[[], str],
    valkey_server: Valkey,
    broker_numbers: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    """The server of the session."""
    folder, database_url = tmp_path_factory.mktemp("noisy"), new_database()
    cloud = CloudProcess()
    servers = {
        "ORCHESTRATOR_DATABASE_URL": database_url,
        "ORCHESTRATOR_BROKER_URL": valkey_server.url(next(broker_numbers)),
    }
    up = Up(folder / "data", env=cloud.env(environment({**SETTINGS, **servers})), workers=1)
    log = threading.Thread(target=_drain, args=(up, folder / "up.log"), daemon=True)
    try:
        up.wait_ready(120)
        log.start()
        yield Installation(up.url, cloud, database_url)
    finally:
        up.process.terminate()
        up.process.wait(90)
        log.join(10)
        cloud.stop()


@pytest.fixture
def project(installation: Installation) -> Iterator[Project]:
    """A project of the test, with an empty cloud."""
    name = f"project{next(NUMBERS)}"
    with httpx.Client(
        base_url=f"{installation.url}/v1/{name}", timeout=60, follow_redirects=True, trust_env=False
    ) as client:
        made = Project(client, installation.cloud.tenant(name), installation.database_url)
        yield made
        made.abandon()


@pytest.fixture(params=PLACES, ids=lambda place: place.name)
def place(request: pytest.FixtureRequest) -> Place:
    """Each place of a server."""
    chosen: Place = request.param
    return chosen


def _drain(up: Up, path: Path) -> None:
    """Write the output of `up` to a file: a full pipe would block it."""
    assert up.process.stdout is not None
    with up.process.stdout, path.open("wb") as log:
        while chunk := up.process.stdout.read1():  # type: ignore[attr-defined]
            log.write(chunk)
            log.flush()
