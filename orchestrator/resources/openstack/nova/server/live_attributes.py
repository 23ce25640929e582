"""Attributes of a server: those recorded with an observation, and those read on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.clients.openstack.networking.network import NETWORKS, PORTS, SUBNETS
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_marks import own_tags
from orchestrator.resources.openstack.nova.base import compute

Server = Mapping[str, Any]

INSTANCE_NAME: Final = "OS-EXT-SRV-ATTR:instance_name"  # shown to administrators only
MAC: Final = "OS-EXT-IPS-MAC:mac_addr"
CONSOLES: Final = {
    "novnc": ("vnc", "novnc"),
    "xvpvnc": ("vnc", "xvpvnc"),
    "spice-html5": ("spice", "spice-html5"),
    "rdp-html5": ("rdp", "rdp-html5"),
    "serial": ("serial", "serial"),
    "webmks": ("mks", "webmks"),
}


def recorded(server: Server) -> JsonObject:
    """Return the attributes that an observation records."""
    networks = addresses_by_network(server)
    return {
        "name": server.get("name"),
        "networks": networks,
        "first_address": next((texts[0] for texts in networks.values() if texts), ""),
        "instance_name": server.get(INSTANCE_NAME),
        "accessIPv4": server.get("accessIPv4"),
        "accessIPv6": server.get("accessIPv6"),
        "tags": own_tags(server),
    }


def addresses_by_network(server: Server) -> dict[str, list[str]]:
    """Return the addresses of each network as texts."""
    listed = server.get("addresses") or {}
    return {name: [address["addr"] for address in addresses] for name, addresses in listed.items()}


def addresses(ctx: Context, server: Server) -> JsonObject:
    """Return the addresses by name and by id of the network, each with its port, subnets and network."""
    neutron = openstack(ctx).network
    ports = list(neutron.search(PORTS, device_id=server["id"]))
    by_mac = {port["mac_address"]: port for port in ports}
    result: JsonObject = {}
    for name, listed in (server.get("addresses") or {}).items():
        for address in listed:
            port = by_mac.get(address.get(MAC)) or {}
            shown = {**address, "port": port.get("id"), "subnets": [], "network": {}}
            result.setdefault(name, []).append(shown)
            if port:
                shown["subnets"] = _subnets(neutron, port)
                shown["network"] = neutron.find(NETWORKS, port["network_id"]) or {}
                result.setdefault(port["network_id"], []).append(shown)
    return result


def _subnets(neutron: Any, port: Mapping[str, Any]) -> list[JsonObject]:
    ids = dict.fromkeys(fixed["subnet_id"] for fixed in port.get("fixed_ips") or ())
    return [subnet for subnet_id in ids if (subnet := neutron.find(SUBNETS, subnet_id)) is not None]


def console_urls(ctx: Context, server_id: str) -> JsonObject:
    """Return the URL of each type of console; the reason in its place if it is not available."""
    urls: JsonObject = {}
    for name, (protocol, kind) in CONSOLES.items():
        try:
            urls[name] = compute(ctx).console(server_id, protocol, kind).get("url")
        except ProviderError as error:
            urls[name] = f"Cannot get console url: {error}"
    return urls
