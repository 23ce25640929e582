"""The kinds of objects that can be looked up, by the name of the constraint, with Heat's faults.

A plugin registers further look-ups under the entry point group `orchestrator.lookups`: a function of the
cloud's services and a value, which returns an id or raises LookupFault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from orchestrator.clients.openstack import identity
from orchestrator.clients.openstack.block_storage import QOS_SPECS, VOLUME_TYPES
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.compute import FLAVORS, KEY_PAIRS
from orchestrator.clients.openstack.finding import find_ids
from orchestrator.clients.openstack.networking import load_balancing as octavia
from orchestrator.clients.openstack.networking import network as neutron
from orchestrator.clients.openstack.object_collections import Collection
from orchestrator.clients.openstack.platform_services.dns import ZONES
from orchestrator.clients.openstack.platform_services.key_manager import CONTAINERS, SECRETS
from orchestrator.clients.openstack.platform_services.workflow import WORKFLOWS
from orchestrator.errors import Misconfigured
from orchestrator.schema.custom import LOOKUPS

LookUp = Callable[[OpenStack, str], str]
_DOMAIN: Final = re.compile(r"(?P<name>.*)\{(?P<domain>[^{}]*)\}")  # "name{domain}" of an object of keystone


class LookupFault(ValueError):
    """No object has this name or id, or several have the name; the message is Heat's."""


def look_up(cloud: OpenStack, kind: str, value: str) -> str:
    """Return the id of the object of a kind with a name or id.

    Raises:
        LookupFault: there is none, or it is ambiguous.
        ProviderError: the service did not answer, or refused.
        Misconfigured: a plugin's look-up cannot be loaded, or the kind is unknown.
    """
    return _of(kind)(cloud, value)


def can_look_up(kind: str) -> bool:
    """Return whether there is a look-up of this name."""
    return kind in _BUILT_IN or kind in _points()


def _of(kind: str) -> LookUp:
    point = _points().get(kind)
    if point is None:
        if kind not in _BUILT_IN:
            raise Misconfigured(f"there is no look-up {kind}")
        return _BUILT_IN[kind]
    try:
        found: LookUp = point.load()
    except Exception as error:
        raise Misconfigured(f"look-up {kind} cannot be loaded from {point.value}: {error}") from error
    return found


@cache
def _points() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=LOOKUPS)}


def _single(ids: Sequence[str], absent: str, ambiguous: str) -> str:
    if not ids:
        raise LookupFault(absent)
    if len(set(ids)) > 1:
        raise LookupFault(ambiguous)
    return ids[0]


def _named(service: str, entity: str, collection: Collection) -> LookUp:
    """Return the look-up of a collection of a service; `entity` is Heat's word for its objects."""

    def look_up_one(cloud: OpenStack, value: str) -> str:
        ids = find_ids(cloud, service, collection, value)
        absent = f"The {entity} ({value}) could not be found."
        return _single(ids, absent, f"Multiple physical resources were found with name ({value}).")

    return look_up_one


def _of_neutron(resource: str, collection: Collection) -> LookUp:
    def look_up_one(cloud: OpenStack, value: str) -> str:
        return _single(
            find_ids(cloud, "network", collection, value),
            f"Unable to find {resource} with name or id '{value}'",
            f"Multiple {resource} matches found for name '{value}', use an ID to be more specific.",
        )

    return look_up_one


def _of_keystone(entity: str, collection: Collection) -> LookUp:
    """Return the look-up of objects in domains: a value may name the domain, as ``name{domain}``."""

    def look_up_one(cloud: OpenStack, value: str) -> str:
        named = _DOMAIN.fullmatch(value)
        query = {}
        if named is not None:
            query["domain_id"] = _BUILT_IN["keystone.domain"](cloud, named["domain"])
        ids = find_ids(cloud, "identity", collection, value if named is None else named["name"], query)
        absent = f"The {entity} ({value}) could not be found."
        return _single(ids, absent, f"Multiple physical resources were found with name ({value}).")

    return look_up_one


def _floating_ip(cloud: OpenStack, value: str) -> str:
    found = cloud.network.search(neutron.FLOATING_IPS, floating_ip_address=value, fields=("id",))
    return _single(
        [str(item["id"]) for item in found],
        f"The floatingip ({value}) could not be found.",
        f"Multiple floatingip matches found for address '{value}', use an ID to be more specific.",
    )


def _image(cloud: OpenStack, value: str) -> str:
    given = {"name": value}
    return _single(
        find_ids(cloud, "image", Collection("/images", "", "images"), value),
        f"No image matching {given}.",
        f"No image unique match found for {given}.",
    )


def _service(cloud: OpenStack, value: str) -> str:
    return _single(
        find_ids(cloud, "identity", identity.SERVICES, value),
        f"The KeystoneService ({value}) could not be found.",
        f"Keystone has more than one service with same name {value}. Please use service id instead of name",
    )


def _host(cloud: OpenStack, value: str) -> str:
    """Return the name of a compute host; for administrators."""
    services = cloud.compute.listed("/os-services", "services", {"binary": "nova-compute"})
    hosts = [value for service in services if service.get("host") == value]
    return _single(hosts[:1], f"The Host ({value}) could not be found.", "")


def _keypair(cloud: OpenStack, value: str) -> str:
    """Return the name of a key pair, which is its id."""
    return _single(find_ids(cloud, "compute", KEY_PAIRS, value), f"The Key ({value}) could not be found.", "")


def _barbican(entity: str, collection: Collection) -> LookUp:
    """Return the look-up of an object of barbican by its URL or id."""

    def look_up_one(cloud: OpenStack, value: str) -> str:
        refs = [value] if cloud.key_manager.find(collection, value) else []
        return _single(refs, f"The {entity} ({value}) could not be found.", "")

    return look_up_one


def _workflow(cloud: OpenStack, value: str) -> str:
    """Return the name or id of a workflow: mistral accepts both."""
    found = [value] if cloud.workflow.find(WORKFLOWS, value) else []
    return _single(found, f"The Workflow ({value}) could not be found.", "")


def _plain(path: str, key: str) -> Collection:
    return Collection(f"/{path}", key, f"{key}s")


def _of_octavia(collection: Collection) -> LookUp:
    def look_up_one(cloud: OpenStack, value: str) -> str:
        ids = find_ids(cloud, "load_balancing", collection, value)
        return _single(ids, f"{value} not found", f"Multiple objects were found with name ({value}).")

    return look_up_one


_VOLUME_TYPES: Final = replace(VOLUME_TYPES, query={})
_FLAVORS: Final = replace(FLAVORS, listing="")
_NETWORKS: Final = _of_neutron("network", neutron.NETWORKS)

_BUILT_IN: Final[Mapping[str, LookUp]] = {
    "nova.flavor": _named("compute", "Flavor", _FLAVORS),
    "nova.host": _host,
    "nova.keypair": _keypair,
    "nova.network": _NETWORKS,
    "nova.server": _named("compute", "Server", _plain("servers", "server")),
    "glance.image": _image,
    "mistral.workflow": _workflow,
    "neutron.address_scope": _of_neutron("address_scope", neutron.ADDRESS_SCOPES),
    "neutron.floating_ip": _floating_ip,
    "neutron.network": _NETWORKS,
    "neutron.port": _of_neutron("port", neutron.PORTS),
    "neutron.qos_policy": _of_neutron("policy", neutron.QOS_POLICIES),
    "neutron.router": _of_neutron("router", neutron.ROUTERS),
    "neutron.security_group": _of_neutron("security_group", neutron.SECURITY_GROUPS),
    "neutron.segment": _of_neutron("segment", neutron.SEGMENTS),
    "neutron.subnet": _of_neutron("subnet", neutron.SUBNETS),
    "neutron.subnetpool": _of_neutron("subnetpool", neutron.SUBNET_POOLS),
    "barbican.container": _barbican("Container", CONTAINERS),
    "barbican.secret": _barbican("Secret", SECRETS),
    "octavia.availabilityzone": _of_octavia(octavia.ZONES),
    "octavia.availabilityzoneprofile": _of_octavia(octavia.ZONE_PROFILES),
    "octavia.flavor": _of_octavia(octavia.FLAVORS),
    "octavia.flavorprofile": _of_octavia(octavia.FLAVOR_PROFILES),
    "octavia.l7policy": _of_octavia(octavia.L7_POLICIES),
    "octavia.listener": _of_octavia(octavia.LISTENERS),
    "octavia.loadbalancer": _of_octavia(octavia.LOAD_BALANCERS),
    "octavia.pool": _of_octavia(octavia.POOLS),
    "cinder.backup": _named("block_storage", "Volume backup", _plain("backups", "backup")),
    "cinder.qos_specs": _named("block_storage", "QoSSpecs", QOS_SPECS),
    "cinder.snapshot": _named("block_storage", "VolumeSnapshot", _plain("snapshots", "snapshot")),
    "cinder.volume": _named("block_storage", "Volume", _plain("volumes", "volume")),
    "cinder.vtype": _named("block_storage", "VolumeType", _VOLUME_TYPES),
    "designate.zone": _named("dns", "Designate Zone", ZONES),
    "keystone.domain": _named("identity", "KeystoneDomain", identity.DOMAINS),
    "keystone.group": _of_keystone("KeystoneGroup", identity.GROUPS),
    "keystone.project": _of_keystone("KeystoneProject", identity.PROJECTS),
    "keystone.region": _named("identity", "KeystoneRegion", identity.REGIONS),
    "keystone.role": _of_keystone("KeystoneRole", identity.ROLES),
    "keystone.service": _service,
    "keystone.user": _of_keystone("KeystoneUser", identity.USERS),
}
