"""OS::Neutron::FloatingIPAssociation: the association of a floating IP with a port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from orchestrator.clients.openstack.networking.network import FLOATING_IPS
from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.neutron.relation import NeutronRelation
from orchestrator.resources.openstack.written_values import interfaces_of_ports
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve
from orchestrator.template.definition import ResourceDefinition


class FloatingIPAssociation(NeutronRelation):
    """The association of a floating IP with a port. Its physical id is the floating IP's."""

    name = "OS::Neutron::FloatingIPAssociation"
    support_version = "2013.1"
    properties = {
        "floatingip_id": Property("string", "Id of the floating IP.", required=True, update_allowed=True),
        "port_id": Property(
            "string",
            "Name or id of the port.",
            required=True,
            update_allowed=True,
            constraints=(Custom("neutron.port"),),
        ),
        "fixed_ip_address": Property(
            "string",
            "Address of the port, if it has several.",
            update_allowed=True,
            constraints=(Custom("ip_addr"),),
        ),
    }
    translation = (Resolve(("port_id",), "neutron.port"),)

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """A router has to connect the port's subnet with the external network."""
        return interfaces_of_ports(definition, resources)

    def physical_id(self, props: Mapping[str, Value]) -> str:
        """Return the id of the floating IP."""
        return str(props["floatingip_id"])

    def connect(self, ctx: Context, props: Mapping[str, Value]) -> None:
        """Associate the floating IP."""
        values = {"port_id": props["port_id"]}
        if ctx.action != "CREATE" or props.get("fixed_ip_address"):
            values["fixed_ip_address"] = props.get("fixed_ip_address") or None
        network(ctx).update(FLOATING_IPS, props["floatingip_id"], values)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Associate the floating IP with another port, or another floating IP with the port."""
        with temporary_conflicts():
            if physical_id != self.physical_id(props):
                self._disassociate(ctx, physical_id)
            self.connect(ctx, props)
        return Created(self.physical_id(props))

    def disconnect(self, ctx: Context, physical_id: str) -> None:
        """End the association, unless the floating IP belongs to another port by now."""
        if self.connection(ctx, physical_id) is not None:
            self._disassociate(ctx, physical_id)

    def connection(self, ctx: Context, physical_id: str) -> JsonMapping | None:
        """Return the association; of a resource with unknown properties, any association."""
        actual = network(ctx).find(FLOATING_IPS, physical_id)
        port_id = None if actual is None else actual.get("port_id")
        if actual is None or not port_id:
            return None
        if port_id != ctx.properties.get("port_id", port_id):
            return None
        fixed = ctx.properties.get("fixed_ip_address")
        address = actual.get("fixed_ip_address") if fixed else fixed
        return {"floatingip_id": physical_id, "port_id": port_id, "fixed_ip_address": address}

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the association; the reason of an absence is the state of the floating IP."""
        observation = super().observe(ctx, physical_id)
        if observation.exists or ctx.action == "DELETE":
            return observation
        actual = network(ctx).find(FLOATING_IPS, physical_id)
        return observation if actual is None else replace(observation, reason=disassociated(actual))

    def _disassociate(self, ctx: Context, floating_ip_id: str) -> None:
        try:
            network(ctx).update(FLOATING_IPS, floating_ip_id, {"port_id": None})
        except ProviderNotFound:
            return


def disassociated(floating_ip: JsonMapping) -> str:
    """Return the state of a floating IP that is not associated as required."""
    address, port = floating_ip.get("floating_ip_address"), floating_ip.get("port_id")
    if not port:
        return f"The floating IP {address} is not associated with any port."
    return f"The floating IP {address} is associated with another port, {port}."
