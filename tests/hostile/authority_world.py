"""An installation on the simulated cloud, and the attackers of its project: a member and a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.keystone.delegation import keystone_session
from orchestrator.operations.stacks.actions import roll_back
from orchestrator.security.keystone import caller_of
from orchestrator.simulated.cloud import SimulatedCloud
from tests.openstack.acceptance.installation import open_cloud
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.scenarios.warm_database import Kept, keep

MALLORY: Final = "mallory"
READER: Final = "reading"


class Authority(CloudWorld):
    """Requests of several users to the same installation; admin calls first."""

    def __init__(self, url: str, cloud: SimulatedCloud, credentials: dict[str, str], **settings: Any) -> None:
        self.credentials = credentials
        super().__init__(url, cloud, open_cloud(credentials, "admin"), **settings)

    def call_as(self, user: str) -> None:
        """Go on as a user of the project, with a token for a password."""
        self._go_on(open_cloud(self.credentials, user))

    def call_with_credential(self, user: str, *roles: str, unrestricted: bool = False) -> None:
        """Go on with a token of an application credential of a user, with these roles or all."""
        from keystoneauth1.identity.v3 import ApplicationCredential
        from keystoneauth1.session import Session

        owner = open_cloud(self.credentials, user).session()
        given: dict[str, Any] = {"name": f"pipeline {roles} {unrestricted}", "unrestricted": unrestricted}
        if roles:
            given["roles"] = [{"name": role} for role in roles]
        path = f"{self.credentials['OS_AUTH_URL']}/users/{owner.get_user_id()}/application_credentials"
        made = owner.post(path, json={"application_credential": given}).json()["application_credential"]
        auth = ApplicationCredential(
            self.credentials["OS_AUTH_URL"],
            application_credential_id=made["id"],
            application_credential_secret=made["secret"],
        )
        self._go_on(Cloud(lambda: Session(auth), "RegionOne"))

    def _go_on(self, login: Cloud) -> None:
        session = login.session()
        contents = session.auth.get_access(session)._data["token"]
        self.caller = caller_of(contents, session.get_token())
        self.context = replace(self.context, caller=self.caller)

    def roll_back(self, name: str, number: int) -> None:
        self.messages += roll_back(self.context, self.stack_row(name), number)

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
        keystone.delegations.forget_user(user["id"])
        keystone.users.table.remove(user["id"])
