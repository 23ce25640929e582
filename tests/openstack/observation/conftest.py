"""An installation on its own cloud: the tests damage all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qa.acceptance.installation import open_cloud
from simulated_openstack.cloud import SimulatedCloud
from simulated_openstack.server import LoopThread
from tests.openstack.conftest import DIRECTORY
from tests.openstack.observation.observed_world import ObservedWorld
from tests.openstack.stacks.conftest import kept_stacks  # noqa: F401 - a fixture
from tests.scenarios.warm_database import Kept

USED: set[str] = set()  # addresses of earlier clouds, whose users are known to the sessions of this process


@pytest.fixture
def own_cloud() -> Iterator[SimulatedCloud]:
    """A simulated cloud of the test."""
    if DIRECTORY:
        pytest.skip("the tests damage the simulated cloud")
    thread = LoopThread()
    cloud = SimulatedCloud()
    thread.run(cloud.listen())
    while cloud.auth_url in USED:
        thread.run(cloud.close())
        cloud = SimulatedCloud()
        thread.run(cloud.listen())
    USED.add(cloud.auth_url)
    yield cloud
    thread.run(cloud.close())
    thread.stop()


@pytest.fixture
def observed(kept_stacks: Kept, own_cloud: SimulatedCloud) -> Iterator[ObservedWorld]:  # noqa: F811
    """An installation whose rounds and repairs are carried out by the test."""
    kept_stacks.empty()
    credentials = {
        "OS_AUTH_URL": own_cloud.auth_url,
        "OS_PASSWORD": own_cloud.password,
        "OS_PROJECT_NAME": "demo",
        "OS_REGION_NAME": "RegionOne",
    }
    made = ObservedWorld(kept_stacks.url, own_cloud, open_cloud(credentials, "admin"))
    yield made
    made.close()
