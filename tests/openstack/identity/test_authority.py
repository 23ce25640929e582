"""The author of content and its trusts, at the simulated or a real Keystone."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from keystoneauth1.identity.v3 import ApplicationCredential, Password
from keystoneauth1.session import Session

from orchestrator.clients.keystone.delegation import keystone_session
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.networking.network import NETWORKS
from orchestrator.embedded.simulated_cloud import settings_of
from orchestrator.errors import Forbidden
from qa.acceptance.installation import open_cloud
from tests.openstack.conftest import DIRECTORY, PREFIX
from tests.openstack.stacks.callers import Callers

VALUE: Final[dict[str, Any]] = {"a": {"type": "OS::Heat::Value", "properties": {"value": 1}}}
SERVICE_USER: Final = "nova"  # of a real control plane
IDENTITY: Final[dict[str, Any]] = {
    "endpoint_filter": {"service_type": "identity", "interface": "public"},
    "raise_exc": False,
}
DELIVERIES: Final = 20  # until a network is made


def network(name: str = "plain", **properties: Any) -> dict[str, Any]:
    return {"net": {"type": "OS::Neutron::Net", "properties": {"name": f"{PREFIX}-{name}", **properties}}}


SHARED: Final = {**VALUE, **network("shared", shared=True)}


class Trusts(Callers):
    """An installation at a Keystone."""

    def __init__(self, url: str, credentials: dict[str, str], **settings: Any) -> None:
        self.credentials = credentials
        super().__init__(url, **settings)
        self.call_as("admin")

    def run(self, name: str = "s") -> str:
        """Deliver until the stack is at rest; return its state."""
        for _ in range(DELIVERIES):
            self.deliver_all()
            row = self.stack_row(name)
            if row.status != "IN_PROGRESS":
                break
        return row.state

    def shared(self) -> list[str]:
        """Return the shared networks of the tests."""
        neutron = OpenStack(open_cloud(self.credentials, "admin"), 60.0).network
        names = [network["name"] for network in neutron.search(NETWORKS, shared=True)]
        return [name for name in names if name.startswith(PREFIX)]


@pytest.fixture
def world(
    new_database: Callable[[], str], credentials: dict[str, str], request: pytest.FixtureRequest
) -> Iterator[Trusts]:
    """The installation; all roles of a token are delegated."""
    if DIRECTORY:
        settings = {
            "auth": "keystone",
            "keystone_auth_url": credentials["OS_AUTH_URL"],
            "keystone_username": SERVICE_USER,
            "keystone_password": credentials["OS_PASSWORD"],
        }
    else:
        cloud = request.getfixturevalue("simulated_cloud")
        settings = settings_of(cloud.keystone.port, cloud.password)
    keystone_session.cache_clear()
    made = Trusts(new_database(), credentials, **settings, trusts_delegated_roles="*")
    yield made
    made.call_as("admin")
    for row in made.rows("SELECT name FROM stack WHERE deleted_at IS NULL AND owner_id IS NULL"):
        made.delete(row.name)
    made.deliver_all()
    made.close()


def test_a_trust_has_the_roles_of_its_author(world: Trusts) -> None:
    world.call_as("demo")
    world.create("s", SHARED)
    assert world.run() == "CREATE_FAILED"
    world.call_as("admin")
    world.patch("s", timeout_mins=30)
    assert (world.run(), world.shared()) == ("UPDATE_FAILED", [])
    world.update("s", {**VALUE, **network()})
    assert world.run() == "UPDATE_COMPLETE"
    world.call_as("demo")
    world.roll_back("s", 1)
    assert (world.run(), world.shared()) == ("ROLLBACK_FAILED", [])
    world.call_as("admin")
    world.roll_back("s", 1)
    assert (world.run(), len(world.shared())) == ("ROLLBACK_COMPLETE", 1)


def test_keystone_lets_a_restricted_application_credential_delegate_nothing(world: Trusts) -> None:
    world.create("s", VALUE)
    assert world.run() == "CREATE_COMPLETE"
    world.call_with_credential("demo")
    with pytest.raises(Forbidden, match="does not allow your token to create a trust"):
        world.update("s", SHARED)
    world.call_with_credential("admin", "member")
    with pytest.raises(Forbidden):
        world.update("s", SHARED)
    world.call_with_credential("admin")  # all roles of the trust
    world.update("s", {**VALUE, "b": VALUE["a"]})
    assert (world.run(), world.shared()) == ("UPDATE_COMPLETE", [])


def test_a_colleague_deletes_and_checks_the_stack_of_a_removed_user(
    world: Trusts, credentials: dict[str, str]
) -> None:
    identity = OpenStack(open_cloud(credentials, "admin"), 60.0).identity
    name = f"{PREFIX}-{uuid.uuid4().hex[:8]}"
    user = identity.post(
        "/users", {"user": {"name": name, "password": credentials["OS_PASSWORD"], "domain_id": "default"}}
    )["user"]["id"]
    project = open_cloud(credentials, "admin").session().get_project_id()
    role = identity.get("/roles", {"name": "member"})["roles"][0]["id"]
    identity.put(f"/projects/{project}/users/{user}/roles/{role}")
    world.call_as(name)
    world.create("s", network())
    assert world.run() == "CREATE_COMPLETE"
    identity.delete(f"/users/{user}")
    keystone_session.cache_clear()
    world.engine = world.new_engine()
    world.call_as("demo")
    world.act("s", "check")
    assert world.run() == "CHECK_COMPLETE"
    world.update("s", {**network(), **VALUE})
    assert world.run() == "UPDATE_COMPLETE"
    world.delete("s")
    world.deliver_all()
    assert [row.action + row.status for row in world.rows("SELECT action, status FROM stack")] == [
        "DELETECOMPLETE"
    ]


def delegate(session: Any, user: str, trustee: str, project: str) -> tuple[int, int]:
    """Request a trust and an application credential for a user; return both statuses."""
    trust = {
        "trustor_user_id": user,
        "trustee_user_id": trustee,
        "project_id": project,
        "impersonation": True,
    }
    trust |= {"roles": [{"name": "member"}]}
    credential = {"name": uuid.uuid4().hex}
    asked: list[Any] = [
        session.post("/OS-TRUST/trusts", json={"trust": trust}, **IDENTITY),
        session.post(
            f"/users/{user}/application_credentials",
            json={"application_credential": credential},
            **IDENTITY,
        ),
    ]
    return asked[0].status_code, asked[1].status_code


@pytest.mark.parametrize(("unrestricted", "expected"), [(False, (403, 403)), (True, (403, 201))])
def test_application_credentials_delegate_no_trust(
    credentials: dict[str, str], unrestricted: bool, expected: tuple[int, int]
) -> None:
    owner = open_cloud(credentials, "demo").session()
    user, project = owner.get_user_id(), owner.get_project_id()
    given = {"name": uuid.uuid4().hex, "unrestricted": unrestricted}
    path = f"/users/{user}/application_credentials"
    made = owner.post(path, json={"application_credential": given}, **IDENTITY).json()[
        "application_credential"
    ]
    auth = ApplicationCredential(
        credentials["OS_AUTH_URL"],
        application_credential_id=made["id"],
        application_credential_secret=made["secret"],
    )
    trustee = open_cloud(credentials, "admin").session().get_user_id()
    assert delegate(Session(auth), user, trustee, project) == expected


@pytest.mark.parametrize(("permitted", "expected"), [(False, (403, 403)), (True, (201, 403))])
def test_a_trust_delegates_only_what_it_permits(
    credentials: dict[str, str], permitted: bool, expected: tuple[int, int]
) -> None:
    owner = open_cloud(credentials, "demo").session()
    user, project = owner.get_user_id(), owner.get_project_id()
    trustee = open_cloud(credentials, "admin").session().get_user_id()
    trust = {
        "trustor_user_id": user,
        "trustee_user_id": trustee,
        "project_id": project,
        "impersonation": True,
    }
    trust |= {"roles": [{"name": "member"}], "allow_redelegation": permitted}
    made = owner.post("/OS-TRUST/trusts", json={"trust": trust}, **IDENTITY).json()["trust"]
    auth = Password(
        credentials["OS_AUTH_URL"],
        username="admin",
        password=credentials["OS_PASSWORD"],
        user_domain_name="Default",
        trust_id=made["id"],
    )
    assert delegate(Session(auth), user, trustee, project) == expected
