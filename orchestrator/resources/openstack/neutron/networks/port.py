"""OS::Neutron::Port: an address on a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.clients.openstack.networking.network import NETWORKS, PORTS, SECURITY_GROUPS, SUBNETS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import (
    Attribute,
    Change,
    Context,
    Created,
    Observation,
    Property,
    Value,
)
from orchestrator.resources.openstack.abandoned_ports import remove_port
from orchestrator.resources.openstack.collection_type import APART, UNORDERED, Field, or_none, same_items
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_marks import released_addresses, with_addresses
from orchestrator.resources.openstack.neutron.base import (
    BUILT,
    TAGS,
    VALUE_SPECS,
    NeutronType,
    attributes,
    network,
)
from orchestrator.resources.openstack.property_rules import Exclusive
from orchestrator.resources.openstack.written_values import subnets_of, written
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.schema.translation import Replace, Resolve
from orchestrator.template.definition import ResourceDefinition

ALWAYS: Final = "REPLACE_ALWAYS"
GIVEN: Final = "given_addresses"  # in the data of the port
PROFILE: Final = "binding:profile"
VNIC_TYPES: Final = (
    "normal",
    "direct",
    "macvtap",
    "direct-physical",
    "baremetal",
    "virtio-forwarder",
    "smart-nic",
)
_ADDRESS: Final = Property(
    "map",
    "An address of the port.",
    schema={
        "subnet_id": Property(
            "string", "Former name of `subnet`.", hidden=True, constraints=(Custom("neutron.subnet"),)
        ),
        "subnet": Property(
            "string", "Name or id of the subnet of the address.", constraints=(Custom("neutron.subnet"),)
        ),
        "ip_address": Property("string", "The address.", constraints=(Custom("ip_addr"),)),
    },
)
_PAIR: Final = Property(
    "map",
    "An additional pair of addresses.",
    schema={
        "mac_address": Property(
            "string", "Hardware address; default: that of the port.", constraints=(Custom("mac_addr"),)
        ),
        "ip_address": Property(
            "string", "Address or network.", required=True, constraints=(Custom("ip_or_cidr"),)
        ),
    },
)
_PROPERTIES: Final = {
    "name": Property("string", "Name of the port.", update_allowed=True),
    "network_id": Property(
        "string", "Former name of `network`.", hidden=True, constraints=(Custom("neutron.network"),)
    ),
    "network": Property(
        "string",
        "Name or id of the network. A network without subnets gives no address.",
        required=True,
        constraints=(Custom("neutron.network"),),
    ),
    "device_id": Property(
        "string", "Id of the device that uses the port.", default="", update_allowed=True, theirs=True
    ),
    "device_owner": Property(
        "string", "Kind of the device that uses the port.", default="", update_allowed=True
    ),
    "fixed_ips": Property(
        "list",
        "Addresses of the port; without addresses, Neutron assigns some.",
        update_allowed=True,
        schema=_ADDRESS,
    ),
    "security_groups": Property(
        "list",
        "Names or ids of security groups: absent for the group `default`, `[]` for none.",
        update_allowed=True,
    ),
    "replacement_policy": Property(
        "string",
        "Whether each update replaces the port.",
        default="AUTO",
        hidden=True,
        update_allowed=True,
        constraints=(AllowedValues((ALWAYS, "AUTO")),),
    ),
    "dns_name": Property("string", "DNS name.", update_allowed=True, constraints=(Custom("dns_name"),)),
    "tags": TAGS,
    "value_specs": VALUE_SPECS,
    "admin_state_up": Property(
        "boolean", "Administrative state of the port.", default=True, update_allowed=True
    ),
    "mac_address": Property("string", "Hardware address.", constraints=(Custom("mac_addr"),)),
    "allowed_address_pairs": Property(
        "list", "Additional addresses that may use the port.", update_allowed=True, schema=_PAIR
    ),
    "binding:vnic_type": Property(
        "string",
        "Type of the virtual network interface.",
        default="normal",
        update_allowed=True,
        constraints=(AllowedValues(VNIC_TYPES),),
    ),
    "port_security_enabled": Property(
        "boolean", "Whether traffic is filtered, by security groups for example.", update_allowed=True
    ),
    "qos_policy": Property(
        "string",
        "Name or id of the QoS policy.",
        update_allowed=True,
        constraints=(Custom("neutron.qos_policy"),),
    ),
    "propagate_uplink_status": Property(
        "boolean", "Whether the port shows the status of the uplink.", update_allowed=True
    ),
    "no_fixed_ips": Property(
        "boolean", "Whether the port has no addresses.", default=False, update_allowed=True
    ),
}


def _matched(desired: Sequence[JsonMapping], actual: Sequence[JsonMapping]) -> bool:
    """Whether each desired map is part of another actual map, and none is left."""
    left = list(actual)
    for item in desired:
        given = {key: value for key, value in item.items() if value}
        match = next((other for other in left if given.items() <= other.items()), None)
        if match is None:
            return False
        left.remove(match)
    return not left


# Neutron and Nova add addresses, the hardware addresses of pairs, the device.
_FIELDS: Final[Mapping[str, str | Field]] = {
    "network": "network_id",
    "network_id": APART,
    "replacement_policy": APART,
    "qos_policy": Field("qos_policy_id", to_api=or_none),
    "fixed_ips": Field(
        from_api=lambda addresses: [
            {"subnet": address.get("subnet_id"), "ip_address": address.get("ip_address")}
            for address in addresses
        ],
        satisfies=lambda desired, actual: not desired or _matched(desired, actual),
        sent=False,
    ),
    "no_fixed_ips": Field(
        "fixed_ips",
        from_api=lambda addresses: not addresses,
        satisfies=lambda desired, actual: actual or not desired,
        sent=False,
    ),
    "security_groups": UNORDERED,
    "allowed_address_pairs": Field(
        to_api=lambda pairs: [{key: item for key, item in pair.items() if item} for pair in pairs or ()],
        equal=same_items,
        satisfies=_matched,
    ),
    "device_id": Field(satisfies=lambda desired, actual: desired in ("", actual)),
    "device_owner": Field(satisfies=lambda desired, actual: desired in ("", actual)),
    # Neutron ignores it unless it has a DNS domain.
    "dns_name": Field(satisfies=lambda desired, actual: actual in ("", desired)),
}


class Port(NeutronType):
    """A port of a network: the point where a server, a router or another device is attached."""

    name = "OS::Neutron::Port"
    support_version = "2013.1"
    collection = PORTS
    status = BUILT
    posts_tags = True
    fields = _FIELDS
    rules = (Exclusive("fixed_ips", "no_fixed_ips"),)
    properties = _PROPERTIES
    attributes = {
        **attributes(
            admin_state_up="Administrative state of the port.",
            fixed_ips="list: Addresses of the port.",
            mac_address="Hardware address.",
            name="Name of the port.",
            network_id="Network of the port.",
            security_groups="list: Security groups of the port.",
            tenant_id="Project that owns the port.",
            allowed_address_pairs="list: Additional addresses that may use the port.",
            port_security_enabled="boolean: Whether traffic is filtered.",
            qos_policy_id="QoS policy of the port.",
            propagate_uplink_status="boolean: Whether the port shows the status of the uplink.",
        ),
        "device_id": Attribute("Id of the device that uses the port.", "string", live=True),
        "device_owner": Attribute("Kind of the device that uses the port.", "string", live=True),
        "status": Attribute("Status of the port.", "string", live=True),
        "dns_assignment": Attribute("DNS names of the addresses.", "map", live=True),
        "subnets": Attribute("Subnets of the addresses.", "list", live=True),
        "network": Attribute("The network of the port.", "map", live=True),
    }
    early_attributes = frozenset(name for name, attribute in attributes.items() if not attribute.live)
    translation = (
        Replace(("network",), source=("network_id",)),
        Replace(("fixed_ips", "subnet"), sibling="subnet_id"),
        Resolve(("network",), "neutron.network"),
        Resolve(("fixed_ips", "subnet"), "neutron.subnet"),
        Resolve(("security_groups",), "neutron.security_group"),
        Resolve(("qos_policy",), "neutron.qos_policy"),
    )

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """Any subnet of the network may have to provide an address."""
        return subnets_of(written(definition, "network", "network_id"), resources)

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Replace the port in each update, if the template demands it."""
        step = super().change(before, after, changed)
        return "replace" if step == "update" and after.get("replacement_policy") == ALWAYS else step

    def chosen(self, ctx: Context) -> Mapping[str, Value]:
        """Return the generated name, and the addresses that Neutron gave to a port without demands."""
        given = _given(ctx, ctx.properties)
        return {**super().chosen(ctx), **({"fixed_ips": given} if given else {})}

    def actual_property(self, ctx: Context, name: str, actual: JsonMapping) -> Value:
        """Addresses from Neutron are reported when one of them is lost; further addresses are Neutron's."""
        if name == "fixed_ips" and not ctx.properties.get(name):
            left = {address.get("ip_address") for address in actual["fixed_ips"]}
            if all(address["ip_address"] in left for address in _given(ctx, ctx.properties)):
                return ctx.properties.get(name)
        return super().actual_property(ctx, name, actual)

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request; in a create, absent values are left to Neutron."""
        names = set(names)
        values = super().request_values(ctx, props, names)
        if ctx.action == "CREATE":
            for name, default in (("device_id", ""), ("device_owner", ""), ("binding:vnic_type", "normal")):
                if values.get(name) == default:
                    del values[name]
            values = {name: value for name, value in values.items() if value is not None}
        elif "security_groups" in names and "security_groups" not in props:
            values["security_groups"] = _default_groups(ctx)
        if names & {"fixed_ips", "no_fixed_ips"}:
            values |= _addresses({**props, "fixed_ips": props.get("fixed_ips") or _given(ctx, props)})
        return values

    def changed_specs(self, given: JsonMapping, current: JsonMapping) -> JsonObject:
        """Keep the members of the binding profile that Neutron and Nova maintain; null removes a member."""
        specs = super().changed_specs(given, current)
        if isinstance(specs.get(PROFILE), Mapping):
            merged = {**(current.get(PROFILE) or {}), **specs[PROFILE]}
            specs[PROFILE] = {key: value for key, value in merged.items() if value is not None}
        return specs

    # Verbs.

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the port; keep the addresses that Neutron gives to a port without demands."""
        created = super().create(ctx, props)
        seen = created.observation
        if seen is None or props.get("fixed_ips") or props.get("no_fixed_ips"):
            return created
        given = [
            {"subnet": address.get("subnet_id"), "ip_address": address["ip_address"]}
            for address in seen.attributes.get("fixed_ips") or ()
        ]
        return replace(created, data={**ctx.data, GIVEN: given}) if given else created

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the attributes; addresses that the template sets by now replace Neutron's."""
        updated = super().update(ctx, physical_id, props, changed)
        demanded = props.get("fixed_ips") or props.get("no_fixed_ips")
        return replace(updated, data={**ctx.data, GIVEN: []}) if demanded and ctx.data else updated

    def live_attribute(self, ctx: Context, name: str, actual: JsonObject) -> Value:
        """Return an attribute of the port, of its network or of its subnets."""
        neutron = network(ctx)
        if name == "network":
            return neutron.find(NETWORKS, actual["network_id"])
        if name == "subnets":
            return [neutron.find(SUBNETS, address["subnet_id"]) for address in actual["fixed_ips"]]
        return super().live_attribute(ctx, name, actual)

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Delete the port, also if nova has left it bound to a deleted server."""
        with temporary_conflicts():
            remove_port(openstack(ctx), physical_id)
        return Observation(exists=False)

    def release(self, ctx: Context, physical_id: str) -> None:
        """Give up the addresses; the description keeps them for `reclaim`."""
        neutron = network(ctx)
        actual = neutron.find(PORTS, physical_id)
        if actual is None or not actual["fixed_ips"]:
            return
        addresses = [address["ip_address"] for address in actual["fixed_ips"]]
        description = with_addresses(actual.get("description"), addresses)
        values = {"fixed_ips": [], "description": description}
        neutron.update(PORTS, physical_id, values, revision=actual.get("revision_number"))

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        """Take the addresses back; until the replacement is deleted, the request is repeated."""
        neutron = network(ctx)
        actual = neutron.find(PORTS, physical_id)
        addresses = released_addresses(actual.get("description")) if actual else []
        if actual is None or not addresses:
            return
        values = {
            "fixed_ips": [{"ip_address": address} for address in addresses],
            "description": with_addresses(actual["description"], ()),
        }
        with temporary_conflicts():
            neutron.update(PORTS, physical_id, values, revision=actual.get("revision_number"))


def _given(ctx: Context, props: Mapping[str, Value]) -> list[JsonMapping]:
    """Return the addresses that Neutron gave in the create, unless the properties demand others."""
    return [] if props.get("fixed_ips") or props.get("no_fixed_ips") else list(ctx.data.get(GIVEN) or ())


def _addresses(props: Mapping[str, Value]) -> JsonObject:
    """Return the addresses of a request: none of them if the template leaves them to Neutron."""
    if props.get("no_fixed_ips"):
        return {"fixed_ips": []}
    if not props.get("fixed_ips"):
        return {}
    addresses = [
        {
            {"subnet": "subnet_id"}.get(key, key): value
            for key, value in address.items()
            if value and key != "subnet_id"
        }
        for address in props["fixed_ips"]
    ]
    return {"fixed_ips": addresses}


def _default_groups(ctx: Context) -> list[str]:
    """Return the id of the project's default security group."""
    filters = {"project_id": ctx.project_id} if ctx.project_id else {}
    found = network(ctx).search(SECURITY_GROUPS, name="default", fields=("id",), **filters)
    return [group["id"] for group in found][:1]
