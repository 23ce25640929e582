"""Keystone's types on a cloud."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.openstack.identity import GROUPS, USERS
from orchestrator.errors import ProviderConflict, ProviderError
from tests.openstack.driver import Driver

PASSWORD = "Some long passw0rd"


@pytest.fixture
def role(driver: Driver) -> str:
    return driver.create("OS::Keystone::Role")


def assigned(driver: Driver, subject: str, subject_id: str) -> set[tuple[str, str]]:
    """Return roles and scopes of a user or group."""
    found = driver.openstack.identity.role_assignments(subject, subject_id)
    return {(one.role, one.project or one.domain) for one in found}


@pytest.mark.parametrize(
    ("type_", "properties", "changes"),
    [
        ("OS::Keystone::Domain", {}, {"description": "text", "enabled": False}),
        (
            "OS::Keystone::Project",
            {"tags": ["b", "a"]},
            {"description": "text", "tags": ["c"], "enabled": False},
        ),
        ("OS::Keystone::Group", {}, {"description": "text"}),
        ("OS::Keystone::Role", {}, {}),
        ("OS::Keystone::User", {"password": PASSWORD}, {"email": "a@b.example", "enabled": False}),
        ("OS::Keystone::Region", {}, {"description": "text", "enabled": False}),
        ("OS::Keystone::Service", {"type": "sotest"}, {"type": "sotest2", "description": "text"}),
    ],
)
def test_an_object_is_created_found_changed_and_deleted(
    driver: Driver, type_: str, properties: dict[str, Any], changes: dict[str, Any]
) -> None:
    physical_id = driver.create(type_, properties)
    assert driver.find(physical_id) == [physical_id]
    assert driver.drift(physical_id) == {}
    if type_ != "OS::Keystone::Region":
        changes = {**changes, "name": driver.name()}
    driver.update(physical_id, **changes)
    assert driver.drift(physical_id) == {}
    shown = driver.attributes(physical_id, "show")["show"]
    assert {name: shown[name] for name in changes if name in shown} == changes
    removed = dict.fromkeys(changes) | ({"type": "sotest"} if "type" in changes else {})
    driver.update(physical_id, **removed)
    assert driver.drift(physical_id) == {}
    driver.delete(physical_id)


def test_an_endpoint_of_a_service_in_a_region(driver: Driver) -> None:
    region = driver.create("OS::Keystone::Region", {"id": f"{driver.name()} east"})
    service = driver.create("OS::Keystone::Service", {"type": "sotest"})
    assert "%20" in region
    endpoint = driver.create(
        "OS::Keystone::Endpoint",
        {"service": service, "region": region, "interface": "public", "url": "http://x.example/"},
    )
    assert driver.find(region) == [region]
    assert driver.find(endpoint) == [endpoint]
    driver.update(endpoint, interface="internal", url="http://y.example/", region=None, enabled=False)
    assert driver.drift(endpoint) == {}


def test_a_user_has_groups_and_roles(driver: Driver, role: str) -> None:
    project, groups = driver.create("OS::Keystone::Project"), []
    for _ in range(2):
        groups.append(driver.create("OS::Keystone::Group"))
    user = driver.create(
        "OS::Keystone::User",
        {
            "password": PASSWORD,
            "default_project": project,
            "groups": groups[:1],
            "roles": [{"role": role, "project": project}],
        },
    )
    identity = driver.openstack.identity
    assert identity.group_ids(user) == groups[:1]
    assert assigned(driver, "user", user) == {(role, project)}
    assert driver.drift(user) == {}
    driver.update(user, groups=groups[1:], roles=[{"role": role, "domain": "default"}], password="other")
    assert identity.group_ids(user) == groups[1:]
    assert assigned(driver, "user", user) == {(role, "default")}
    driver.update(user, groups=None, roles=None, default_project=None)
    assert identity.group_ids(user) == []
    assert assigned(driver, "user", user) == set()


@pytest.mark.parametrize("subject", ["user", "group"])
def test_roles_are_assigned_to_an_existing_subject(driver: Driver, role: str, subject: str) -> None:
    project = driver.create("OS::Keystone::Project")
    owners = [driver.create(f"OS::Keystone::{subject.title()}") for _ in range(2)]
    it = driver.create(
        f"OS::Keystone::{subject.title()}RoleAssignment",
        {subject: owners[0], "roles": [{"role": role, "project": project}]},
    )
    # The physical id of an assignment is its subject's: the driver knows the assignment by it.
    assert it == owners[0]
    assert assigned(driver, subject, owners[0]) == {(role, project)}
    it = driver.update(it, roles=[{"role": role, "domain": "default"}])
    assert assigned(driver, subject, it) == {(role, "default")}
    driver.delete(it)
    assert assigned(driver, subject, owners[0]) == set()
    driver.openstack.identity.remove(USERS, owners[0])
    driver.openstack.identity.remove(GROUPS, owners[0])


def test_a_name_in_use_is_a_conflict_with_keystones_message(driver: Driver) -> None:
    name = driver.name()
    driver.create("OS::Keystone::Group", {"name": name})
    other = driver.prepare("OS::Keystone::Group", {"name": name})
    with pytest.raises(
        ProviderConflict, match=r"Duplicate entry.*\(HTTP 409 from keystone\) \(Request-ID: req-"
    ):
        other.type.create(other.ctx, other.ctx.properties)
    assert not other.type.find(other.ctx, other.ctx.token)


def test_a_member_may_not_use_them(member: Driver) -> None:
    for name, properties in (("Project", {}), ("Role", {}), ("Service", {"type": "x"}), ("Region", {})):
        resource = member.prepare(f"OS::Keystone::{name}", properties)
        with pytest.raises(ProviderError, match="not authorized to perform the requested action") as refused:
            resource.type.create(resource.ctx, resource.ctx.properties)
        assert refused.value.kind == "Forbidden"


def test_a_vanished_object_is_absent(driver: Driver) -> None:
    user = driver.create("OS::Keystone::User")
    driver.openstack.identity.remove(USERS, user)
    assert not driver.observe(user).exists
    driver.delete(user)
