"""OS::Neutron::FloatingIPPortForward: a port of a floating IP, forwarded to a port of an instance.

The stored data contain the id of the floating IP. Neutron accepts an external port once per protocol, so that
a port forwarding is found by its properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, PORT_FORWARDINGS
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.neutron.base import NeutronType, network
from orchestrator.resources.openstack.written_values import interfaces_of_ports
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve
from orchestrator.template.definition import ResourceDefinition

PROTOCOLS = ("tcp", "udp", "icmp", "icmp6", "sctp", "dccp")
_NUMBER = (Range(min=1, max=65535),)


class FloatingIPPortForward(NeutronType):
    """A port of a floating IP that is associated with no port, forwarded to a port of an instance."""

    name = "OS::Neutron::FloatingIPPortForward"
    support_version = "19.0.0"
    collection = PORT_FORWARDINGS
    undone_in_place = True
    mark = EqualValues(("external_port", "protocol"))
    parent_property = "floating_ip"
    in_use = frozenset({"update", "delete"})
    fields = {"internal_port": "internal_port_id", "internal_port_number": "internal_port"}
    properties = {
        "internal_ip_address": Property(
            "string",
            "Address of the internal port.",
            required=True,
            update_allowed=True,
            constraints=(Custom("ip_addr"),),
        ),
        "internal_port_number": Property(
            "integer", "Number of the internal port.", update_allowed=True, constraints=_NUMBER
        ),
        "external_port": Property(
            "integer", "Number of the external port.", required=True, update_allowed=True, constraints=_NUMBER
        ),
        "internal_port": Property(
            "string",
            "Name or id of the port of the instance.",
            required=True,
            update_allowed=True,
            constraints=(Custom("neutron.port"),),
        ),
        "protocol": Property(
            "string", "Protocol.", required=True, update_allowed=True, constraints=(AllowedValues(PROTOCOLS),)
        ),
        "floating_ip": Property("string", "Address or id of the floating IP.", required=True),
    }
    translation = (
        Resolve(("internal_port",), "neutron.port"),
        Resolve(("floating_ip",), "neutron.floating_ip"),
    )

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """A router has to connect the internal port with the external network."""
        return interfaces_of_ports(definition, resources)

    def parent(self, ctx: Context, props: Mapping[str, Value]) -> str:
        """Return the id of the floating IP, "" if it does not exist."""
        stored = ctx.data.get("floating_ip")
        return str(stored or _floating_ip_id(ctx, props))


def _floating_ip_id(ctx: Context, props: Mapping[str, Value]) -> str:
    """Return the id of the floating IP that a template names by address or id, "" without one."""
    given, neutron = str(props.get("floating_ip") or ""), network(ctx)
    if not given or neutron.find(FLOATING_IPS, given) is not None:
        return given
    found = list(neutron.search(FLOATING_IPS, floating_ip_address=given, fields=("id",)))
    return str(found[0]["id"]) if found else ""
