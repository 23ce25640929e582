"""An installation on the simulated cloud for the tests of stacks, without processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.session.session_transport import SessionTransport
from orchestrator.clients.openstack.transport import Answer, Request
from qa.acceptance.installation import open_cloud
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.conftest import DIRECTORY
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.requests import Requests
from tests.scenarios.warm_database import Kept, keep


@pytest.fixture(scope="session")
def kept_stacks(new_database: Callable[[], str]) -> Iterator[Kept]:
    """The database of all tests here."""
    made = keep(new_database())
    yield made
    made.close()


@pytest.fixture(scope="session")
def login(credentials: dict[str, str]) -> Cloud:
    """The cloud as an administrator of the project `demo`, whose token all requests use."""
    if DIRECTORY:
        pytest.skip("the control plane has not all services")
    return open_cloud(credentials, "admin")


@pytest.fixture
def world(kept_stacks: Kept, simulated_cloud: SimulatedCloud, login: Cloud) -> Iterator[CloudWorld]:
    """An installation whose stacks are on the simulated cloud."""
    kept_stacks.empty()
    made = CloudWorld(kept_stacks.url, simulated_cloud, login)
    yield made
    simulated_cloud.faults.set({})
    made.close()


@pytest.fixture
def member_world(
    kept_stacks: Kept, simulated_cloud: SimulatedCloud, credentials: dict[str, str], login: Cloud
) -> Iterator[CloudWorld]:
    """The same installation, as a member of the project `demo`."""
    kept_stacks.empty()
    made = CloudWorld(kept_stacks.url, simulated_cloud, open_cloud(credentials, "demo"))
    yield made
    simulated_cloud.faults.set({})
    made.close()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """The requests of the engine to the cloud, of which any can be the last of a worker."""
    made = Requests(SessionTransport.send)

    def send(transport: SessionTransport, request: Request, seconds: float) -> Answer:
        return made.send(transport, request, seconds)

    monkeypatch.setattr(SessionTransport, "send", send)
    return made
