"""OS::Neutron::Subnet: a range of addresses on a network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.networking.network import SUBNETS
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Fault, Property, Value
from orchestrator.resources.openstack.collection_type import (
    APART,
    UNORDERED,
    Field,
    or_empty,
    or_none,
    same_items,
)
from orchestrator.resources.openstack.neutron.base import TAGS, VALUE_SPECS, NeutronType, attributes, network
from orchestrator.resources.openstack.written_values import conflict, unspecified
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Replace, Resolve
from orchestrator.template.definition import ResourceDefinition

AUTO: Final = "auto"  # the gateway that Neutron chooses
MODES: Final = ("dhcpv6-stateful", "dhcpv6-stateless", "slaac")
_POOL: Final = Property(
    "map",
    "A range of addresses.",
    schema={
        "start": Property("string", "First address.", required=True, constraints=(Custom("ip_addr"),)),
        "end": Property("string", "Last address.", required=True, constraints=(Custom("ip_addr"),)),
    },
)
_ROUTE: Final = Property(
    "map",
    "A static route.",
    schema={
        "destination": Property(
            "string", "Destination network.", required=True, constraints=(Custom("net_cidr"),)
        ),
        "nexthop": Property("string", "Next hop.", required=True, constraints=(Custom("ip_addr"),)),
    },
)


class Subnet(NeutronType):
    """A range of addresses on a network, with a gateway and name servers."""

    name = "OS::Neutron::Subnet"
    support_version = "2013.1"
    collection = SUBNETS
    fields = {
        "network": "network_id",
        "network_id": APART,
        "subnetpool": "subnetpool_id",
        "segment": Field("segment_id", to_api=or_none, from_api=or_empty),
        "gateway_ip": Field(
            to_api=or_none,
            from_api=or_empty,
            satisfies=lambda desired, actual: desired in (AUTO, actual),
        ),
        "allocation_pools": Field(
            equal=same_items,
            satisfies=lambda desired, actual: not desired or same_items(desired, actual),
        ),
        "host_routes": UNORDERED,
    }
    properties = {
        "network_id": Property(
            "string", "Former name of `network`.", hidden=True, constraints=(Custom("neutron.network"),)
        ),
        "network": Property(
            "string", "Name or id of the network.", required=True, constraints=(Custom("neutron.network"),)
        ),
        "subnetpool": Property(
            "string",
            "Name or id of the pool that provides the addresses.",
            constraints=(Custom("neutron.subnetpool"),),
        ),
        "prefixlen": Property(
            "integer", "Length of the prefix of addresses from a pool.", constraints=(Range(min=0),)
        ),
        "cidr": Property("string", "Addresses of the subnet.", constraints=(Custom("net_cidr"),)),
        "value_specs": VALUE_SPECS,
        "name": Property("string", "Name of the subnet.", update_allowed=True),
        "ip_version": Property("integer", "Version of IP.", default=4, constraints=(AllowedValues((4, 6)),)),
        "dns_nameservers": Property("list", "Name servers.", default=[], update_allowed=True),
        "gateway_ip": Property(
            "string",
            "Address of the gateway: null for none, `auto` for the first address of the subnet.",
            update_allowed=True,
        ),
        "enable_dhcp": Property("boolean", "Whether DHCP is enabled.", default=True, update_allowed=True),
        "allocation_pools": Property(
            "list", "Ranges of addresses for ports.", update_allowed=True, schema=_POOL
        ),
        "tenant_id": Property("string", "Project that owns the subnet. Only administrators may set it."),
        "host_routes": Property("list", "Static routes of hosts.", update_allowed=True, schema=_ROUTE),
        "ipv6_ra_mode": Property(
            "string", "Mode of router advertisements.", constraints=(AllowedValues(MODES),)
        ),
        "ipv6_address_mode": Property(
            "string", "Mode of address assignment.", constraints=(AllowedValues(MODES),)
        ),
        "segment": Property(
            "string",
            "Name or id of the segment; a later change is only possible from no segment.",
            update_allowed=True,
            constraints=(Custom("neutron.segment"),),
        ),
        "tags": TAGS,
    }
    attributes = attributes(
        name="Name of the subnet.",
        network_id="Network of the subnet.",
        tenant_id="Project that owns the subnet.",
        allocation_pools="list: Ranges of addresses for ports.",
        gateway_ip="Address of the gateway.",
        host_routes="list: Static routes of hosts.",
        ip_version="Version of IP.",
        cidr="Addresses of the subnet.",
        dns_nameservers="list: Name servers.",
        enable_dhcp="Whether DHCP is enabled.",
    )
    translation = (
        Replace(("network",), source=("network_id",)),
        Resolve(("network",), "neutron.network"),
        Resolve(("subnetpool",), "neutron.subnetpool"),
        Resolve(("segment",), "neutron.segment"),
    )

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Reject combinations that Neutron does not know, with Heat's messages."""
        faults = list(super().validate(properties, stack_timeout_seconds))
        for alternative in ("subnetpool", "prefixlen"):
            if properties.get(alternative) and properties.get("cidr"):
                faults.append(conflict(alternative, "cidr"))
        modes = [properties.get(name) for name in ("ipv6_ra_mode", "ipv6_address_mode")]
        if properties.get("ip_version") == 4 and any(modes):
            message = "ipv6_ra_mode and ipv6_address_mode are not supported for ipv4."
            faults.append(Fault(message, alone=True))
        elif all(modes) and modes[0] != modes[1]:
            message = "When both ipv6_ra_mode and ipv6_address_mode are set, they must be equal."
            faults.append(Fault(message, alone=True))
        gateway = properties.get("gateway_ip")
        if gateway and gateway not in ("~", AUTO) and not _is_address(gateway):
            faults.append(Fault(f'Gateway IP address "{gateway}" is in invalid format.', alone=True))
        return faults

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """The addresses have to come from the template or from a pool."""
        return unspecified(name, resources, ("subnetpool", "cidr"))

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request; in a create, absent values are left to Neutron."""
        values = super().request_values(ctx, props, names)
        if values.get("gateway_ip") == AUTO:
            del values["gateway_ip"]
        if ctx.action == "CREATE" and values.get("segment_id") is None:
            values.pop("segment_id", None)
        return values

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the subnet.

        Raises:
            ProviderError: the subnet has a segment already, or Neutron is to choose another gateway.
        """
        if "gateway_ip" in changed and props.get("gateway_ip") == AUTO:
            message = (
                'The value "auto" for gateway_ip cannot be used to update an existing subnet. It is only '
                "supported during subnet creation. is not supported for resource."
            )
            raise ProviderError(message, "ResourceActionNotSupported")
        if "segment" in changed:
            current = (network(ctx).find(SUBNETS, physical_id) or {}).get("segment_id")
            if current == (props.get("segment") or None):
                changed = changed - {"segment"}
            elif current is not None:
                message = (
                    f"the subnet belongs to the segment {current} and cannot be moved to another segment"
                )
                raise ProviderError(message, "ResourceActionNotSupported")
        return super().update(ctx, physical_id, props, changed)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
