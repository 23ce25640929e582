"""An installation on the simulated cloud, and the attackers of its project: a member and a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from orchestrator.clients.keystone.delegation import keystone_session
from qa.acceptance.installation import open_cloud
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.stacks.callers import Callers
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.scenarios.warm_database import Kept, keep

MALLORY: Final = "mallory"
READER: Final = "reading"


class Authority(Callers, CloudWorld):
    """Requests of several users to the same installation; admin calls first."""

    def __init__(self, url: str, cloud: SimulatedCloud, credentials: dict[str, str], **settings: Any) -> None:
        self.credentials = credentials
        super().__init__(url, cloud, open_cloud(credentials, "admin"), **settings)

    def shared_networks(self) -> list[str]:
        """Return the shared networks of the cloud, which only an administrator creates."""
        return [row["name"] for kind, row in self._rows() if kind == "neutron.network" and row.get("shared")]

    def roles_of(self, user: str) -> set[str]:
        """Return the roles of a new token."""
        session = open_cloud(self.credentials, user).session()
        return set(session.auth.get_access(session).role_names)


@pytest.fixture(scope="session")
def kept_authority(new_database: Callable[[], str]) -> Iterator[Kept]:
    """The database of all tests here."""
    made = keep(new_database())
    yield made
    made.close()


@pytest.fixture
def attacked(kept_authority: Kept, simulated_cloud: SimulatedCloud) -> Iterator[Authority]:
    """The installation. All roles of a token are delegated: only the rules under attack protect it."""
    keystone = simulated_cloud.keystone
    [project] = [row for row in keystone.projects.table if row["name"] == "demo"]
    users = []
    for name, role in ((MALLORY, "member"), (READER, "reader")):
        values = {"name": name, "password": simulated_cloud.password, "domain_id": "default"}
        users.append(keystone.users.create(values))
        granted = keystone.roles.named(role)
        keystone.assignments.grant(f"users/{users[-1]['id']}", f"projects/{project['id']}", granted["id"])
    credentials = {
        "OS_AUTH_URL": simulated_cloud.auth_url,
        "OS_PASSWORD": simulated_cloud.password,
        "OS_PROJECT_NAME": "demo",
        "OS_REGION_NAME": "RegionOne",
    }
    kept_authority.empty()
    keystone_session.cache_clear()
    made = Authority(kept_authority.url, simulated_cloud, credentials, trusts_delegated_roles="*")
    yield made
    simulated_cloud.faults.set({})
    made.close()
    for user in users:
        keystone.users.remove(user)
