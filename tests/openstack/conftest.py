"""A cloud for the tests of OpenStack's types.

`OPENSTACK_DIR` is the directory of a running control plane, with its `env.sh`. Without it, the tests use
the simulated cloud. `OPENSTACK_TEST_PREFIX` begins the names of all objects.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.networking.load_balancing import LOAD_BALANCERS
from orchestrator.errors import ProviderError
from qa.acceptance.installation import open_cloud, variables_of, wait_for_backends
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.driver import Driver

DIRECTORY = os.environ.get("OPENSTACK_DIR", "")
PREFIX = os.environ.get("OPENSTACK_TEST_PREFIX", "sotest")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Accept warnings that openstacksdk causes in its own calls."""
    folder = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker(pytest.mark.filterwarnings("ignore:The 'service_type' parameter"))


@pytest.fixture(scope="session")
def credentials(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the variables of the control plane."""
    if not DIRECTORY:
        simulated: SimulatedCloud = request.getfixturevalue("simulated_cloud")
        return {
            "OS_AUTH_URL": simulated.auth_url,
            "OS_PASSWORD": simulated.password,
            "OS_PROJECT_NAME": "demo",
            "OS_REGION_NAME": "RegionOne",
        }
    variables = variables_of(Path(DIRECTORY))
    wait_for_backends(variables)
    return variables


@pytest.fixture(scope="session")
def cloud(credentials: dict[str, str]) -> Cloud:
    """Return the cloud as an administrator of the project `demo`."""
    return open_cloud(credentials, "admin")


@pytest.fixture(scope="session")
def member_cloud(credentials: dict[str, str]) -> Cloud:
    """Return the cloud as a member of the project `demo`."""
    return open_cloud(credentials, "demo")


def _driver(cloud: Cloud) -> Iterator[Driver]:
    session = cloud.session()
    driver = Driver(cloud, PREFIX, session.get_project_id() or "")
    yield driver
    driver.clean_up()


@pytest.fixture
def driver(cloud: Cloud) -> Iterator[Driver]:
    """Return a driver as an administrator; it deletes the remains of the test."""
    yield from _driver(cloud)


@pytest.fixture
def member(member_cloud: Cloud) -> Iterator[Driver]:
    """Return a driver as a member."""
    yield from _driver(member_cloud)


@pytest.fixture
def octavia(driver: Driver) -> None:
    """Skip the test on a cloud without Octavia."""
    try:
        list(driver.openstack.load_balancing.search(LOAD_BALANCERS, name="none"))
    except ProviderError as error:
        if error.kind != "EndpointNotFound":
            raise
        pytest.skip("the cloud has no Octavia")
