"""Objects of Neutron that several types of CloudFormation share.

Neutron has no VPCs: a VPC is a network, and its default router has the same name. A route table is a router
whose description names the VPC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator.clients.openstack.networking.network import NETWORKS, PORTS, ROUTERS, Network
from orchestrator.clients.openstack.object_collections import Collection
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.creation_marks import marked, unmarked
from orchestrator.resources.openstack.neutron.base import NeutronType, network

_ROUTE_TABLE: Final = "route table of VPC "
_FIELDS: Final = ("id", "description", "external_gateway_info")


def external_network_id(neutron: Network) -> str:
    """Return the external network.

    Raises:
        ProviderError: there are several, or none.
    """
    external: dict[str, Any] = {"router:external": True}
    found = list(neutron.search(NETWORKS, fields=("id",), **external))
    if len(found) != 1:
        raise ProviderError(f"Expected 1 external network, found {len(found)}", "Error")
    return str(found[0]["id"])


def router_of_vpc(neutron: Network, network_id: str) -> JsonObject | None:
    """Return the default router of a VPC, None without one.

    Raises:
        ProviderError: several routers have the name of the network.
    """
    vpc = neutron.find(NETWORKS, network_id)
    if vpc is None:
        return None
    routers = list(neutron.search(ROUTERS, name=vpc["name"]))
    if len(routers) > 1:
        raise ProviderError(f"Multiple routers found with name {vpc['name']}", "Error")
    return routers[0] if routers else None


def route_table_description(network_id: str) -> str:
    """Return the description of the router that is a route table of a VPC."""
    return _ROUTE_TABLE + network_id


def route_tables(neutron: Network, network_id: str) -> Iterator[JsonObject]:
    """Yield the routers that are route tables of a VPC."""
    for router in neutron.search(ROUTERS, fields=_FIELDS):
        if unmarked(router.get("description")) == route_table_description(network_id):
            yield router


def has_gateway(router: JsonObject) -> bool:
    """Return whether a router is connected with an external network."""
    return bool(router.get("external_gateway_info"))


def is_routed(neutron: Network, subnet_id: str) -> bool:
    """Return whether a subnet is connected with a router."""
    ports = neutron.search(PORTS, fixed_ips=f"subnet_id={subnet_id}", fields=("device_owner",))
    return any("router_interface" in str(port.get("device_owner")) for port in ports)


def ids_with_token(
    neutron: Network, collection: Collection, token: str, **filters: str
) -> Sequence[str] | None:
    """Return the objects whose descriptions end with the token, None without any."""
    found = neutron.search(collection, fields=("id", "description"), **filters)
    mark = marked("", token)
    return [one["id"] for one in found if str(one.get("description") or "").endswith(mark)] or None


class Ec2NetworkType(NeutronType):
    """An object of Neutron. Its description contains the request token."""

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the objects with the token."""
        return ids_with_token(network(ctx), self.collection, token, **self.search(ctx))

    def search(self, ctx: Context) -> dict[str, str]:
        """Return attributes that narrow the search for the object of a lost response."""
        return {"name": ctx.physical_name}

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> tuple[()]:
        """Accept all properties that the schema accepts."""
        return ()

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of the object."""
        raise NotImplementedError(self.name)

    def actual_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return nothing: most properties cannot be changed."""
        return {}
