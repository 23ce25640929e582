"""The objects of a cloud, compared with an earlier moment."""

from __future__ import annotations

from typing import Final, NamedTuple

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.errors import ProviderError

NETWORK: Final = (
    *("networks", "subnets", "ports", "routers", "floatingips", "security-groups", "security-group-rules"),
    *("trunks", "subnetpools", "address-scopes", "rbac-policies", "segments"),
    *("metering/metering-labels", "metering/metering-label-rules", "qos/policies"),
)
IDENTITY: Final = ("users", "groups", "projects", "roles", "domains", "services", "endpoints", "regions")
LOAD_BALANCING: Final = ("loadbalancers", "listeners", "pools", "healthmonitors", "l7policies")
# Created for stacks and deleted a moment after them; or by services for themselves.
IGNORED_OWNERS: Final = frozenset({"network:dhcp"})


class Item(NamedTuple):
    """An object of a cloud."""

    collection: str
    id: str
    name: str


def inventory(openstack: OpenStack) -> frozenset[Item]:
    """Return all objects that an administrator sees."""
    return frozenset(
        (
            *_network(openstack),
            *_compute(openstack),
            *_block_storage(openstack),
            *_identity(openstack),
            *_load_balancing(openstack),
            *(
                Item("images", item["id"], item["name"])
                for item in openstack.image.listed("/images", "images")
            ),
        )
    )


def leaked(openstack: OpenStack, before: frozenset[Item]) -> list[Item]:
    """Return the objects that did not exist before."""
    return sorted(inventory(openstack) - before)


def key_pairs(openstack: OpenStack) -> frozenset[Item]:
    """Return the key pairs of a user: an administrator sees only its own."""
    pairs = (item["keypair"]["name"] for item in openstack.compute.get("/os-keypairs")["keypairs"])
    return frozenset(Item("keypairs", name, name) for name in pairs)


def _network(openstack: OpenStack) -> list[Item]:
    items = []
    for path in NETWORK:
        collection = path.rpartition("/")[2].replace("-", "_")
        for item in openstack.network.listed(f"/{path}", collection):
            if item.get("device_owner") not in IGNORED_OWNERS:
                items.append(Item(collection, item["id"], item.get("name") or ""))
    return items


def _compute(openstack: OpenStack) -> list[Item]:
    compute = openstack.compute
    items = [Item("servers", item["id"], item["name"]) for item in compute.listed("/servers", "servers")]
    items += key_pairs(openstack)
    items += [Item("flavors", item["id"], item["name"]) for item in compute.listed("/flavors", "flavors")]
    for path, key in (("/os-server-groups", "server_groups"), ("/os-aggregates", "aggregates")):
        items += [Item(key, str(item["id"]), item["name"]) for item in compute.get(path)[key]]
    return items


def _block_storage(openstack: OpenStack) -> list[Item]:
    storage = openstack.block_storage
    items = []
    for path, key in (("/volumes", "volumes"), ("/snapshots", "snapshots"), ("/types", "volume_types")):
        items += [Item(key, item["id"], item["name"] or "") for item in storage.listed(path, key)]
    items += [Item("qos_specs", item["id"], item["name"]) for item in storage.get("/qos-specs")["qos_specs"]]
    return items


def _load_balancing(openstack: OpenStack) -> list[Item]:
    """Return the objects of Octavia, none without it."""
    api = openstack.load_balancing
    try:
        return [
            Item(key, item["id"], item["name"])
            for key in LOAD_BALANCING
            for item in api.listed(f"/{key}", key)
        ]
    except ProviderError as error:
        if error.kind != "EndpointNotFound":
            raise
        return []


def _identity(openstack: OpenStack) -> list[Item]:
    identity = openstack.identity
    return [
        Item(key, item["id"], item.get("name") or "")
        for key in IDENTITY
        for item in identity.get(f"/{key}")[key]
    ]
