"""OS::Neutron::RouterInterface: the connection of a router with a subnet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.clients.openstack.networking.network import PORTS
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Fault, Property, Unique, Value
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.neutron.relation import NeutronRelation
from orchestrator.resources.openstack.written_values import conflict, unspecified
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Replace, Resolve
from orchestrator.template.definition import ResourceDefinition

_ROUTER = (Custom("neutron.router"),)
_SUBNET = (Custom("neutron.subnet"),)
_PORT = (Custom("neutron.port"),)


class RouterInterface(NeutronRelation):
    """The connection of a router with a subnet, by its gateway address or by a port."""

    name = "OS::Neutron::RouterInterface"
    support_version = "2013.1"
    unique = Unique((("subnet",), ("port",)), "delete")
    properties = {
        "router": Property("string", "Name or id of the router.", required=True, constraints=_ROUTER),
        "router_id": Property("string", "Former name of `router`.", hidden=True, constraints=_ROUTER),
        "subnet_id": Property("string", "Former name of `subnet`.", hidden=True, constraints=_SUBNET),
        "subnet": Property(
            "string", "Name or id of the subnet; either `subnet` or `port`.", constraints=_SUBNET
        ),
        "port_id": Property("string", "Former name of `port`.", hidden=True, constraints=_PORT),
        "port": Property("string", "Name or id of the port; either `subnet` or `port`.", constraints=_PORT),
    }
    translation = (
        Replace(("port",), source=("port_id",)),
        Replace(("router",), source=("router_id",)),
        Replace(("subnet",), source=("subnet_id",)),
        Resolve(("port",), "neutron.port"),
        Resolve(("router",), "neutron.router"),
        Resolve(("subnet",), "neutron.subnet"),
    )

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """An interface belongs to a subnet or to a port."""
        both = properties.get("subnet") and properties.get("port")
        return (conflict("subnet", "port"),) if both else ()

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """A subnet or a port is required."""
        return unspecified(name, resources, ("subnet", "port"), "subnet_id", "port_id")

    def physical_id(self, props: Mapping[str, Value]) -> str:
        """Return the ids of the router and the subnet or port."""
        key = "subnet" if props.get("subnet") else "port"
        return f"{props['router']}:{key}_id={props.get(key)}"

    def connect(self, ctx: Context, props: Mapping[str, Value]) -> None:
        """Attach the subnet or port."""
        router_id, target = _parsed(self.physical_id(props))
        network(ctx).add_router_interface(router_id, target)

    def disconnect(self, ctx: Context, physical_id: str) -> None:
        """Detach the subnet or port; Neutron deletes the port."""
        router_id, target = _parsed(physical_id)
        network(ctx).remove_router_interface(router_id, target)

    def connection(self, ctx: Context, physical_id: str) -> JsonMapping | None:
        """Return `{}` if the router has a port on the subnet, or has the port."""
        router_id, target = _parsed(physical_id)
        neutron = network(ctx)
        if "port_id" in target:
            port = neutron.find(PORTS, target["port_id"])
            return {} if port is not None and port.get("device_id") == router_id else None
        fixed = f"subnet_id={target['subnet_id']}"
        ports = neutron.search(PORTS, device_id=router_id, fixed_ips=fixed, fields=("id", "device_owner"))
        return next(({} for port in ports if "interface" in str(port.get("device_owner"))), None)


def _parsed(physical_id: str) -> tuple[str, dict[str, str]]:
    """Return the router and the attached object of a physical id."""
    router_id, _, target = physical_id.partition(":")
    key, equals, value = target.partition("=")
    return router_id, {key: value} if equals else {"subnet_id": target}
