"""AWS::EC2::EIPAssociation: a floating IP on an instance or a network interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, PORTS, Network
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.aws.elastic_ip import association, port_of_instance
from orchestrator.resources.aws.neutron_objects import has_gateway, router_of_vpc
from orchestrator.resources.base import (
    Change,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.neutron.routers.floating_ip_association import disassociated
from orchestrator.schema.constraints import Custom
from orchestrator.template.definition import ResourceDefinition

_ADDRESS = ("EIP", "AllocationId")
_TARGET = ("InstanceId", "NetworkInterfaceId")


class ElasticIpAssociation(ResourceType):
    """The association of an address. Its physical id is the property EIP or AllocationId."""

    name = "AWS::EC2::EIPAssociation"
    service = "neutron"
    endpoint_type = "compute"
    shares_objects = True
    undone_in_place = True
    needs_ready = frozenset({"InstanceId"})  # the port of the instance is looked up
    properties = {
        "InstanceId": Property(
            "string",
            "Instance that receives the address.",
            update_allowed=True,
            constraints=(Custom("nova.server"),),
        ),
        "EIP": Property("string", "The address.", update_allowed=True, constraints=(Custom("ip_addr"),)),
        "AllocationId": Property("string", "Id of the address.", update_allowed=True),
        "NetworkInterfaceId": Property(
            "string", "Network interface that receives the address.", update_allowed=True
        ),
    }

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require an address and a target, as written: values may not be known yet."""
        body = resources[name].body
        written = body.get("properties") or {}
        if not isinstance(written, Mapping):
            return ()
        given = {key for key in self.properties if written.get(key) not in (None, "")}
        if ("EIP" in given) == ("AllocationId" in given):
            return (Fault("Either 'EIP' or 'AllocationId' must be provided.", alone=True),)
        if "EIP" in given and "InstanceId" not in given:
            return (Fault("Must specify 'InstanceId' if you specify 'EIP'.", alone=True),)
        if not given.intersection(_TARGET):
            names = "InstanceId, NetworkInterfaceId"
            message = f"At least one of the following properties must be specified: {names}."
            return (Fault(message, alone=True),)
        return ()

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Replace the association when address and target change together."""
        if changed.intersection(_ADDRESS) and any(after.get(name) for name in changed.intersection(_TARGET)):
            return "replace"
        return super().change(before, after, changed)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Associate the address."""
        neutron = network(ctx)
        floating_ip, port = _floating_ip(neutron, props), _port(neutron, props)
        with temporary_conflicts():
            if not props.get("EIP"):
                _connect_vpc(neutron, floating_ip, port)
            neutron.update(FLOATING_IPS, floating_ip["id"], association(port))
        data = {"floating_ip": floating_ip["id"], "port": port["id"]}
        return Created(props.get("EIP") or floating_ip["id"], data)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: to associate the same port again has no effect."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the address. An association with another port belongs to another resource."""
        floating_ip = _stored_floating_ip(ctx)
        port_id = (floating_ip or {}).get("port_id")
        exists = bool(port_id) and port_id == ctx.data.get("port", port_id)
        reason = "" if exists or floating_ip is None else disassociated(floating_ip)
        return Observation(exists=exists, reference_id=ctx.physical_name, reason=reason)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Associate the address or the target in place of the former one."""
        former = ctx.data.get("floating_ip")
        if changed.intersection(_ADDRESS) and former and former != _floating_ip(network(ctx), props)["id"]:
            _disassociate(ctx)
        return self.create(ctx, props)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Disassociate the address."""
        _disassociate(ctx)


def _floating_ip(neutron: Network, props: Mapping[str, Value]) -> JsonObject:
    """Return the floating IP of the properties.

    Raises:
        ProviderError: it does not exist.
    """
    address, found = props.get("EIP"), None
    if address:
        found = next(iter(neutron.search(FLOATING_IPS, floating_ip_address=address)), None)
    elif props.get("AllocationId"):
        found = neutron.find(FLOATING_IPS, props["AllocationId"])
    if found is None:
        name = address or props.get("AllocationId")
        raise ProviderError(f"The FloatingIP ({name}) could not be found.", "EntityNotFound")
    return found


def _port(neutron: Network, props: Mapping[str, Value]) -> JsonObject:
    """Return the port of the properties; with an address as EIP, the instance's.

    Raises:
        ProviderError: it does not exist.
    """
    port_id = props.get("NetworkInterfaceId")
    if not port_id or props.get("EIP"):
        return port_of_instance(neutron, props.get("InstanceId") or "")
    port = neutron.find(PORTS, port_id)
    if port is None:
        raise ProviderError(f"The Port ({port_id}) could not be found.", "EntityNotFound")
    return port


def _connect_vpc(neutron: Network, floating_ip: Mapping[str, Any], port: Mapping[str, Any]) -> None:
    """Connect the default router of the port's VPC with the network of the address."""
    router = router_of_vpc(neutron, port["network_id"])
    if router is not None and not has_gateway(router):
        neutron.set_gateway(router["id"], {"network_id": floating_ip["floating_network_id"]})


def _stored_floating_ip(ctx: Context) -> JsonObject | None:
    neutron = network(ctx)
    if ctx.data.get("floating_ip"):
        return neutron.find(FLOATING_IPS, ctx.data["floating_ip"])
    try:
        return _floating_ip(neutron, ctx.properties)
    except ProviderError as error:
        if error.kind != "EntityNotFound":
            raise
        return None


def _disassociate(ctx: Context) -> None:
    """End the association, unless the address serves another port by now."""
    floating_ip = _stored_floating_ip(ctx)
    port_id = (floating_ip or {}).get("port_id")
    if floating_ip is not None and port_id and port_id == ctx.data.get("port", port_id):
        network(ctx).update(FLOATING_IPS, floating_ip["id"], {"port_id": None})
