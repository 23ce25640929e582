"""OS::Neutron::FloatingIPPortForward: a port of a floating IP, forwarded to a port of an instance.

The stored data contain the id of the floating IP. Neutron accepts an external port once per protocol, so that
a port forwarding is found by its properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, PORT_FORWARDINGS
from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.neutron.base import NeutronType, network
from orchestrator.resources.openstack.neutron.written_values import interfaces_of_ports
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
    has_token = False
    separate = frozenset({"floating_ip"})
    api_names = {"internal_port": "internal_port_id", "internal_port_number": "internal_port"}
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
        """Return the id of the floating IP."""
        stored = ctx.data.get("floating_ip")
        return str(stored) if stored else _floating_ip_id(ctx, props)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the port forwarding."""
        floating_ip_id = _floating_ip_id(ctx, props)
        values = self.request_values(ctx, props, props)
        created = network(ctx).create(self.collection, values, parent=floating_ip_id)
        return Created(created["id"], {"floating_ip": floating_ip_id})

    def find(self, ctx: Context, token: str) -> Sequence[str]:
        """Return the id of the forwarding of this external port and protocol."""
        props = ctx.properties
        found = network(ctx).search(
            self.collection,
            parent=self.parent(ctx, props),
            external_port=props["external_port"],
            protocol=props["protocol"],
        )
        return [forwarding["id"] for forwarding in found]

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the port forwarding; it ends with its floating IP."""
        if not self._has_floating_ip(ctx):
            return Observation(exists=False)
        return super().observe(ctx, physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the port forwarding."""
        if self._has_floating_ip(ctx):
            super().delete(ctx, physical_id)

    def _has_floating_ip(self, ctx: Context) -> bool:
        """Whether the floating IP is known."""
        try:
            return bool(self.parent(ctx, ctx.properties))
        except ProviderError as error:
            if error.kind != "EntityNotFound":
                raise
            return False


def _floating_ip_id(ctx: Context, props: Mapping[str, Value]) -> str:
    """Return the id of the floating IP that a template names by address or id, "" without a name.

    Raises:
        ProviderError: it does not exist.
    """
    given, neutron = str(props.get("floating_ip") or ""), network(ctx)
    if not given or neutron.find(FLOATING_IPS, given) is not None:
        return given
    found = list(neutron.search(FLOATING_IPS, floating_ip_address=given, fields=("id",)))
    if not found:
        raise ProviderError(f"The floatingip ({given}) could not be found.", "EntityNotFound")
    return str(found[0]["id"])
