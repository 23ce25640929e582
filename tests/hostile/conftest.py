"""An installation for all attacks of a session that need workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.embedded.valkey import Valkey
from tests.e2e.running import Up
from tests.hostile.minute import IDLE_SECONDS, Project, Times
from tests.hostile.tenant import Tenant

HANG = Path(__file__).parents[1] / "plugins" / "hang"  # a resource type that hangs its worker


@pytest.fixture(scope="session")
def up(
    new_database: Callable[[], str],
    valkey_server: Valkey,
    broker_numbers: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Up]:
    """The installation."""
    env = {
        "ORCHESTRATOR_DATABASE_URL": new_database(),
        "ORCHESTRATOR_BROKER_URL": valkey_server.url(next(broker_numbers)),
    }
    running = Up(tmp_path_factory.mktemp("hostile") / "data", env=env)
    running.wait_ready(120)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def token_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """An installation with its own servers and with tokens, for the attacks that take a minute."""
    env = {
        "ORCHESTRATOR_AUTH": "token",
        "PYTHONPATH": os.pathsep.join([str(HANG), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "ORCHESTRATOR_TEMPLATE_FETCH_ALLOW_PRIVATE": "true",
        "ORCHESTRATOR_WEBHOOK_ALLOW_PRIVATE": "true",
    }
    running = Up(tmp_path_factory.mktemp("minute"), env=env, workers=2)  # the default on two cores or less
    running.wait_ready(120)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def attacker(token_up: Up) -> Project:
    """A hostile project."""
    return Project(token_up, "attacker")


@pytest.fixture(scope="session")
def victim(token_up: Up) -> Project:
    """A project whose requests are measured."""
    return Project(token_up, "victim")


@pytest.fixture(scope="session")
def idle(victim: Project) -> Times:
    """The times without an attack."""
    victim.work(2.0)
    return victim.work(IDLE_SECONDS)


@pytest.fixture
def tenant(up: Up) -> Iterator[Tenant]:
    """A tenant of the installation, in a project without stacks."""
    tenant = Tenant(up.url)
    yield tenant
    tenant.close()
