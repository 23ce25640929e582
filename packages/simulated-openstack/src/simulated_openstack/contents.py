"""The first objects of a new cloud: those of the real control plane that it imitates."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from simulated_openstack.cinder.service import Cinder
from simulated_openstack.glance.service import Glance
from simulated_openstack.http import Request
from simulated_openstack.json_types import JsonObject
from simulated_openstack.keystone.entities import DEFAULT_DOMAIN
from simulated_openstack.keystone.service import Keystone
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.nova.service import Nova
from simulated_openstack.service import NOBODY, Call, Service, new_id

PASSWORD_BYTES: Final = 16
REGION: Final = "RegionOne"
ROLES: Final = (*("admin", "manager", "member", "reader", "service", "heat_stack_owner", "heat_stack_user"),)
SERVICES: Final = (  # name, type, path of the endpoint
    ("keystone", "identity", "/v3"),
    ("glance", "image", ""),
    ("nova", "compute", "/v2.1"),
    ("neutron", "network", ""),
    ("cinder", "block-storage", "/v3"),
    ("octavia", "load-balancer", ""),
    ("aodh", "alarming", ""),
    ("barbican", "key-manager", ""),
    ("designate", "dns", ""),
    ("mistral", "workflowv2", "/v2"),
    ("swift", "object-store", "/v1/AUTH_$(project_id)s"),
)
STACK_SERVICES: Final = (  # at the orchestration URL: name, type, path of the endpoint
    ("heat", "orchestration", "/v1/$(project_id)s"),
    ("heat-cfn", "cloudformation", "/v1"),
)
INTERFACES: Final = ("admin", "internal", "public")
QUOTAS: Final = {
    "network": 500,
    "subnet": 500,
    "port": 2_000,
    "router": 200,
    "floatingip": 200,
    "security_group": 500,
    "security_group_rule": 2_000,
    "trunk": 200,
}
FLAVORS: Final = (  # name, MiB of memory, GiB of disk, cores
    ("m1.nano", 64, 1, 1),
    ("m1.tiny", 512, 1, 1),
    ("m1.small", 2_048, 20, 1),
    ("m1.medium", 4_096, 40, 2),
    ("m1.large", 8_192, 80, 4),
)
STACK_DOMAIN: Final = "heat"
ACCOUNTS: Final = frozenset({"admin", "demo", "heat", "heat_domain_admin"})  # the first users
# A plain member of the project also has a password that scripts know for every simulated cloud. It is of no
# use to web pages: these reach no service (`http.page_refusal`).
SHARED_PASSWORDS: Final = {"demo": "simulated"}


@dataclass
class Contents:
    """The services with first objects, and the values of those."""

    keystone: Keystone
    glance: Glance
    nova: Nova
    neutron: Neutron
    cinder: Cinder
    services: Mapping[str, Service]  # all, by name
    password: str  # of the first users
    orchestration_url: str  # "": without an orchestration service


def new_password() -> str:
    """Return a random password of letters and digits."""
    return secrets.token_hex(PASSWORD_BYTES)


def ensure_contents(cloud: Contents) -> None:
    """Make the first objects, and let the catalog name the present ports."""
    keystone = cloud.keystone
    if keystone.domains.table.get(DEFAULT_DOMAIN) is None:
        _users(cloud)
        keystone.regions.create({"id": REGION})
        _networks(cloud)
        _images(cloud)
        for name, ram, disk, vcpus in FLAVORS:
            cloud.nova.flavors.create({"name": name, "ram": ram, "disk": disk, "vcpus": vcpus})
        cloud.cinder.types.create({"name": "__DEFAULT__", "description": "Default Volume Type"})
        cloud.cinder.types.create({"name": "fake", "extra_specs": {"volume_backend_name": "fake"}})
    _set_passwords(cloud)
    for name, kind, path in SERVICES:
        _set_endpoints(cloud, name, kind, cloud.services[name].base + path)
    if cloud.orchestration_url:
        for name, kind, path in STACK_SERVICES:
            _set_endpoints(cloud, name, kind, cloud.orchestration_url + path)


def _set_endpoints(cloud: Contents, name: str, kind: str, url: str) -> None:
    """Let the endpoints of a service have the present URL."""
    keystone = cloud.keystone
    own = keystone.services.named(name) or _service(cloud, name, kind)
    for endpoint in keystone.endpoints.table.where("service_id", own["id"]):
        endpoint["url"] = url
        keystone.endpoints.table.save(endpoint)


def _service(cloud: Contents, name: str, kind: str) -> JsonObject:
    """Add a service to the catalog: all of them in a new cloud, later versions add further ones."""
    service: JsonObject = cloud.keystone.services.create(
        {"name": name, "type": kind, "description": "simulated"}
    )
    for interface in INTERFACES:
        values = {"service_id": service["id"], "interface": interface, "region_id": REGION, "url": ""}
        cloud.keystone.endpoints.create(values)
    return service


def _users(cloud: Contents) -> None:
    keystone = cloud.keystone
    keystone.domains.table.save(
        {
            **keystone.domains.defaults,
            "id": DEFAULT_DOMAIN,
            "name": "Default",
            "description": "The default domain",
        }
    )
    roles = {}
    for name in ROLES:
        options = {} if name.startswith("heat") else {"immutable": True}
        roles[name] = keystone.roles.create({"name": name, "options": options})["id"]
    projects = {name: keystone.projects.create({"name": name})["id"] for name in ("admin", "service", "demo")}
    domain = keystone.domains.create({"name": STACK_DOMAIN, "description": "Users of stacks"})["id"]
    accounts = (
        ("admin", DEFAULT_DOMAIN, "demo"),
        ("demo", DEFAULT_DOMAIN, "demo"),
        ("heat", DEFAULT_DOMAIN, "service"),
        ("heat_domain_admin", domain, ""),
    )
    users = {}
    for name, home, project in accounts:
        default = {"default_project_id": projects[project]} if project else {}
        values = {"name": name, "password": cloud.password, "domain_id": home, **default}
        users[name] = keystone.users.create(values)["id"]
    grants = (
        ("admin", f"projects/{projects['demo']}", ("admin", "member", "heat_stack_owner")),
        ("admin", f"projects/{projects['admin']}", ("admin",)),
        ("admin", "system", ("admin",)),
        ("demo", f"projects/{projects['demo']}", ("member", "heat_stack_owner")),
        ("heat", f"projects/{projects['service']}", ("service", "admin")),
        ("heat_domain_admin", f"domains/{domain}", ("admin",)),
    )
    for user, target, names in grants:
        for name in names:
            keystone.assignments.grant(f"users/{users[user]}", target, roles[name])
    cloud.neutron.quotas.set(projects["demo"], dict(QUOTAS))
    compute = {
        "instances": 1_000,
        "cores": 100_000,
        "ram": 20_000_000,
        "key_pairs": 500,
        "server_groups": 200,
    }
    cloud.nova.quotas.set(projects["demo"], compute)
    cloud.cinder.quotas.set(projects["demo"], {"volumes": 1_000, "snapshots": 1_000, "gigabytes": 100_000})


def _set_passwords(cloud: Contents) -> None:
    """Let the first users have the present password, also in a cloud of an earlier installation."""
    users = cloud.keystone.users
    for user in list(users.table):
        passwords = {"password": cloud.password, "shared_password": SHARED_PASSWORDS.get(user["name"])}
        if user["name"] in ACCOUNTS and not passwords.items() <= user.items():
            users.table.save({**user, **passwords})


def _networks(cloud: Contents) -> None:
    """An external and a private network, of the project `demo`."""
    external = {
        "name": "public",
        "router:external": True,
        "provider:network_type": "flat",
        "provider:physical_network": "ext",
    }
    _network(cloud, external, {"cidr": "198.51.100.0/24", "enable_dhcp": False})
    _network(cloud, {"name": "private"}, {"cidr": "10.10.0.0/20"})


def _network(cloud: Contents, network: JsonObject, subnet: JsonObject) -> None:
    call = administrator(cloud)
    neutron = cloud.neutron
    row = neutron.networks.create(call, neutron.networks.checked(call, network, new=True))
    values = {"name": f"{network['name']}-subnet", "network_id": row["id"], "ip_version": 4, **subnet}
    neutron.subnets.create(call, neutron.subnets.checked(call, values, new=True))


def administrator(cloud: Contents) -> Call:
    """Return a call of an administrator in the project `demo`."""
    project = cloud.keystone.projects.named("demo")
    caller = replace(NOBODY, project_id=project["id"] if project else new_id(), roles=frozenset({"admin"}))
    return Call(Request("POST", "/"), caller, "")


def _images(cloud: Contents) -> None:
    """Two public images."""
    project = cloud.keystone.projects.named("demo")
    for name in ("cirros", "fedora"):
        values = {"name": name, "disk_format": "qcow2", "container_format": "bare", "visibility": "public"}
        extra = {
            "owner_specified.openstack.object": f"images/{name}",
            "owner_specified.openstack.md5": "",
            "owner_specified.openstack.sha256": "",
        }
        row = cloud.glance.images.create(project["id"] if project else "", {**values, **extra})
        cloud.glance.images.fill(row, b"not really a disk" * 8)
