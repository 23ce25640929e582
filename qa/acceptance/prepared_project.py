"""A project with the objects that templates refer to: a network, images, flavors, a key pair and a server."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.clients.openstack.cloud import OpenStack
from qa.acceptance.installation import Failed, Installation, as_user
from qa.acceptance.parameters import IMAGE, PUBLIC_NETWORK

IMAGE_NAME: Final = re.compile(
    r"\b(?:[A-Z]+[0-9]+-(?:x86_64|i386)-[a-z-]+|[\w.-]+-(?:cfntools|cloudimg-amd64|cloudimg-i386))\b"
)
FLAVORS: Final = {"ds512M": 512, "m1.heat": 512, "m1.xlarge": 4096}
ROLES: Final = ("admin", "member", "heat_stack_owner")
MANY: Final = 1_000_000
SECONDS: Final = 900.0


@dataclass(frozen=True)
class Prepared:
    """The names of the objects; `on` acts in the project."""

    on: Installation
    prefix: str  # also the name of project, network, subnet, key pair and server
    server_id: str


@contextmanager
def prepared_project(on: Installation, templates: Path) -> Iterator[Prepared]:
    """Keep the project for a block; `templates` are the files that name images."""
    prefix = f"so-corpus-{uuid.uuid4().hex[:6]}"
    images, flavors = _images(on.administrator, templates), _flavors(on.administrator)
    try:
        with empty_project(on, prefix) as own, _network(own.openstack, prefix) as network:
            compute = own.openstack.compute
            key_pair = {"keypair": {"name": prefix, "type": "ssh"}}
            compute.post("/os-keypairs", key_pair, microversion="2.2")
            server_id = _server(own.openstack, prefix, network)
            try:
                yield Prepared(own, prefix, server_id)
            finally:
                compute.delete(f"/servers/{server_id}")
                compute.delete(f"/os-keypairs/{prefix}")
                _wait_until_deleted(own.openstack, server_id)
    finally:
        for flavor_id in flavors:
            on.administrator.compute.delete(f"/flavors/{flavor_id}")
        for image_id in images:
            on.administrator.image.delete(f"/images/{image_id}")


@contextmanager
def empty_project(on: Installation, name: str) -> Iterator[Installation]:
    """Keep a project for a block, and use the orchestrator in it."""
    identity = on.administrator.identity
    project = identity.post("/projects", {"project": {"name": name, "domain_id": "default"}})["project"]["id"]
    roles = {item["name"]: item["id"] for item in identity.get("/roles")["roles"]}
    user = identity.get("/users", {"name": "admin"})["users"][0]["id"]
    for role in ROLES:
        identity.put(f"/projects/{project}/users/{user}/roles/{roles[role]}")
    _widen_quotas(on.administrator, project)
    try:
        with as_user(on.up, on.credentials, "admin", name) as own:
            yield own
    finally:
        _delete_default_group(on.administrator, project)
        identity.delete(f"/projects/{project}")


def _widen_quotas(openstack: OpenStack, project: str) -> None:
    compute = {"instances": MANY, "cores": MANY, "ram": MANY}
    openstack.compute.put(f"/os-quota-sets/{project}", {"quota_set": compute})
    storage = {"volumes": 1_000, "gigabytes": MANY}
    openstack.block_storage.put(f"/os-quota-sets/{project}", {"quota_set": storage})


def _images(openstack: OpenStack, templates: Path) -> list[str]:
    """Create the images that the templates name; return their ids."""
    named = {
        found
        for path in templates.rglob("*")
        if path.suffix in {".yaml", ".template"}
        for found in IMAGE_NAME.findall(path.read_text())
    }
    present = {item["name"] for item in openstack.image.listed("/images", "images")}
    ids = []
    for name in sorted(named - present):
        body = {"name": name, "disk_format": "raw", "container_format": "bare", "visibility": "public"}
        image = openstack.image.post("/images", body)
        openstack.image.upload(f"/images/{image['id']}/file", b"not a disk")
        ids.append(str(image["id"]))
    return ids


def _flavors(openstack: OpenStack) -> list[str]:
    known = {item["name"] for item in openstack.compute.listed("/flavors", "flavors")}
    bodies = [{"name": name, "ram": ram, "vcpus": 1, "disk": 20} for name, ram in FLAVORS.items()]
    return [
        str(openstack.compute.post("/flavors", {"flavor": body})["flavor"]["id"])
        for body in bodies
        if body["name"] not in known
    ]


@contextmanager
def _network(openstack: OpenStack, name: str) -> Iterator[str]:
    """Keep a network with a route to the external network for a block."""
    network = openstack.network
    public = next(iter(network.listed("/networks", "networks", {"name": PUBLIC_NETWORK})))["id"]
    net = network.post("/networks", {"network": {"name": name}})["network"]["id"]
    body: dict[str, Any] = {"name": name, "network_id": net, "cidr": "10.98.0.0/20", "ip_version": 4}
    subnet = network.post("/subnets", {"subnet": body})["subnet"]["id"]
    gateway = {"name": name, "external_gateway_info": {"network_id": public}}
    router = network.post("/routers", {"router": gateway})["router"]["id"]
    network.put(f"/routers/{router}/add_router_interface", {"subnet_id": subnet})
    try:
        yield net
    finally:
        network.put(f"/routers/{router}/remove_router_interface", {"subnet_id": subnet})
        network.delete(f"/routers/{router}")
        network.delete(f"/networks/{net}")


def _server(openstack: OpenStack, name: str, network: str) -> str:
    image = next(item for item in openstack.image.listed("/images", "images") if item["name"] == IMAGE)
    flavor = next(
        item for item in openstack.compute.listed("/flavors", "flavors") if item["name"] == "m1.tiny"
    )
    body = {"name": name, "imageRef": image["id"], "flavorRef": flavor["id"], "networks": [{"uuid": network}]}
    server_id = str(openstack.compute.post("/servers", {"server": body})["server"]["id"])
    until = time.monotonic() + SECONDS
    while openstack.compute.get(f"/servers/{server_id}")["server"]["status"] != "ACTIVE":
        if time.monotonic() > until:
            raise Failed("a server does not become active")
        time.sleep(1.0)
    return server_id


def _wait_until_deleted(openstack: OpenStack, server_id: str) -> None:
    until = time.monotonic() + SECONDS
    while openstack.compute.find_one(f"/servers/{server_id}") is not None and time.monotonic() < until:
        time.sleep(1.0)


def _delete_default_group(openstack: OpenStack, project: str) -> None:
    query = {"project_id": project}
    for group in list(openstack.network.listed("/security-groups", "security_groups", query)):
        openstack.network.delete(f"/security-groups/{group['id']}")
