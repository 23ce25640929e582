"""A cloud for the tests of OpenStack's types.

`OPENSTACK_DIR` is the directory of a running control plane, with its `env.sh`. Without it, the tests use
the simulated cloud. `OPENSTACK_TEST_PREFIX` begins the names of all objects.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.simulated.cloud import SimulatedCloud
from tests.openstack.driver import Driver

DIRECTORY = os.environ.get("OPENSTACK_DIR", "")
PREFIX = os.environ.get("OPENSTACK_TEST_PREFIX", "sotest")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Accept warnings that openstacksdk causes in its own calls."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
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
    script = f". {shlex.quote(str(Path(DIRECTORY) / 'env.sh'))} && env -0"
    answer = subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True)
    pairs = (item.partition("=") for item in answer.stdout.split("\0"))
    return {name: value for name, _, value in pairs if name.startswith("OS_")}


def open_cloud(credentials: dict[str, str], username: str, project: str = "") -> Cloud:
    """Return the cloud as a user."""
    from keystoneauth1.identity.v3 import Password
    from keystoneauth1.session import Session

    def session() -> Any:
        return Session(
            Password(
                credentials["OS_AUTH_URL"],
                username=username,
                password=credentials["OS_PASSWORD"],
                project_name=project or credentials["OS_PROJECT_NAME"],
                user_domain_name="Default",
                project_domain_name="Default",
            )
        )

    return Cloud(session, credentials["OS_REGION_NAME"])


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
