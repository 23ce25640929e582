"""Projects of the simulated cloud, each with a user and large quotas."""

from __future__ import annotations

from typing import Final

from simulated_openstack.cloud import SimulatedCloud
from simulated_openstack.keystone.entities import DEFAULT_DOMAIN

MANY: Final = 1_000_000
NETWORK: Final = ("network", "subnet", "port", "security_group", "security_group_rule")
COMPUTE: Final = ("instances", "cores", "ram")
STORAGE: Final = ("volumes", "gigabytes")


def add_project(cloud: SimulatedCloud, name: str) -> None:
    """Create a project, with a user of the same name who may create stacks."""
    keystone = cloud.keystone
    project = keystone.projects.create({"name": name})["id"]
    values = {"name": name, "password": cloud.password, "domain_id": DEFAULT_DOMAIN}
    user = keystone.users.create({**values, "default_project_id": project})["id"]
    for role in ("member", "heat_stack_owner"):
        found = keystone.roles.named(role)
        assert found is not None
        keystone.assignments.grant(f"users/{user}", f"projects/{project}", found["id"])
    widen(cloud, project)


def widen(cloud: SimulatedCloud, project: str) -> None:
    """Give a project large quotas."""
    cloud.neutron.quotas.set(project, dict.fromkeys(NETWORK, MANY))
    cloud.nova.quotas.set(project, dict.fromkeys(COMPUTE, MANY * 100))
    cloud.cinder.quotas.set(project, dict.fromkeys(STORAGE, MANY))
