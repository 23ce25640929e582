"""OS::Neutron::FloatingIP: an external address for a port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.clients.openstack.networking.network import FLOATING_IPS
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Property, Value
from orchestrator.resources.openstack.collection_type import APART, Field, or_empty
from orchestrator.resources.openstack.neutron.base import VALUE_SPECS, NeutronType, attributes
from orchestrator.resources.openstack.written_values import (
    interfaces_of_ports,
    may_equal,
    member,
    of_type,
    written,
)
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Replace, Resolve
from orchestrator.template.definition import ResourceDefinition

_ADDRESS = (Custom("ip_addr"),)
_NETWORK = (Custom("neutron.network"),)


class FloatingIP(NeutronType):
    """An address of an external network, associated with a port or not."""

    name = "OS::Neutron::FloatingIP"
    support_version = "2013.1"
    collection = FLOATING_IPS
    undone_in_place = True
    fields = {
        "floating_network": "floating_network_id",
        "floating_network_id": APART,
        "floating_subnet": "subnet_id",
        "port_id": Field(from_api=or_empty),
        "fixed_ip_address": Field(from_api=or_empty),
        "dns_name": Field(from_api=or_empty),
        "dns_domain": Field(from_api=or_empty),
    }
    properties = {
        "floating_network_id": Property(
            "string", "Former name of `floating_network`.", hidden=True, constraints=_NETWORK
        ),
        "floating_network": Property(
            "string", "Name or id of the external network.", required=True, constraints=_NETWORK
        ),
        "floating_subnet": Property(
            "string",
            "Name or id of the subnet that provides the address.",
            constraints=(Custom("neutron.subnet"),),
        ),
        "value_specs": Property("map", VALUE_SPECS.doc, default={}),
        "port_id": Property(
            "string",
            "Name or id of the port.",
            update_allowed=True,
            constraints=(Custom("neutron.port"),),
        ),
        "fixed_ip_address": Property(
            "string",
            "Address of the port, if it has several.",
            update_allowed=True,
            constraints=_ADDRESS,
        ),
        "floating_ip_address": Property(
            "string", "Required address. Only administrators may set it.", constraints=_ADDRESS
        ),
        "dns_name": Property(
            "string", "DNS name.", update_allowed=True, constraints=(Custom("rel_dns_name"),)
        ),
        "dns_domain": Property(
            "string", "DNS domain.", update_allowed=True, constraints=(Custom("dns_domain"),)
        ),
    }
    attributes = {
        **attributes(
            tenant_id="Project that owns the address.",
            floating_network_id="External network.",
            floating_ip_address="The address.",
        ),
        "router_id": Attribute("Router of the association.", "string", live=True),
        "fixed_ip_address": Attribute("Associated address of the port.", "string", live=True),
        "port_id": Attribute("Associated port.", "string", live=True),
    }
    translation = (
        Replace(("floating_network",), source=("floating_network_id",)),
        Resolve(("floating_network",), "neutron.network"),
        Resolve(("floating_subnet",), "neutron.subnet"),
        Resolve(("port_id",), "neutron.port"),
    )

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """An address of a port needs the port."""
        definition = resources.get(name)
        if definition is None or written(definition, "fixed_ip_address") is None:
            return ()
        if written(definition, "port_id") is not None:
            return ()
        return (Fault("fixed_ip_address cannot be specified without port_id.", alone=True),)

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """The external network has to be connected with the port's subnet, by a router."""
        external = written(definition, "floating_network", "floating_network_id")
        for gateway in of_type(resources, "OS::Neutron::RouterGateway"):
            if may_equal(external, written(gateway, "network", "network_id")):
                yield gateway.name
        for router in of_type(resources, "OS::Neutron::Router"):
            if may_equal(external, member(written(router, "external_gateway_info"), "network")):
                yield router.name
        yield from interfaces_of_ports(definition, resources)

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request; an update sets port and address together.

        Neutron does not change the DNS name of an existing address; as in Heat, its change has no effect.
        """
        names = set(names)
        if ctx.action == "CREATE":
            return {name: value for name, value in super().request_values(ctx, props, names).items() if value}
        if not names & {"port_id", "fixed_ip_address"}:
            return {}
        return {
            "port_id": props.get("port_id") or None,
            "fixed_ip_address": props.get("fixed_ip_address") or None,
        }
