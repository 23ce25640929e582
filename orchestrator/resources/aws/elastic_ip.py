"""AWS::EC2::EIP: a floating IP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import FLOATING_IPS, PORTS, Network
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws.neutron_objects import Ec2NetworkType, external_network_id
from orchestrator.resources.base import Attribute, Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.schema.constraints import AllowedValues, Custom

ASSOCIATE: Final = "associate"


class ElasticIp(Ec2NetworkType):
    """An address of the external network. Its reference id is the address."""

    name = "AWS::EC2::EIP"
    endpoint_type = "compute"
    collection = FLOATING_IPS
    undone_in_place = True
    properties = {
        "Domain": Property(
            "string",
            "Has no effect.",
            constraints=(AllowedValues(("vpc",)),),
            deprecated="Every address belongs to the VPC.",
        ),
        "InstanceId": Property(
            "string",
            "Instance to associate with the address.",
            update_allowed=True,
            constraints=(Custom("nova.server"),),
        ),
    }
    attributes = {"AllocationId": Attribute("Id of the address.", type="string")}
    needs_ready = frozenset({"InstanceId"})  # the port of the instance is looked up

    def search(self, ctx: Context) -> dict[str, str]:
        """Search all addresses: they have no names."""
        return {}

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of the address."""
        return {"floating_network_id": external_network_id(network(ctx))}

    def attribute_values(self, actual: JsonMapping) -> JsonObject:
        """Return the id."""
        return {"AllocationId": actual["id"]}

    def observation(self, ctx: Context, actual: JsonObject) -> Observation:
        """Read the address and its instance."""
        if ctx.action == "DELETE":
            return super().observation(ctx, actual)
        wanted = ctx.properties.get("InstanceId") or ""
        instance = instance_of(network(ctx), actual) if wanted else ""
        step = ASSOCIATE if ctx.action in ("CREATE", "UPDATE") and wanted != instance else ""
        return Observation(
            exists=True,
            ready=not step,
            step=step,
            reference_id=actual["floating_ip_address"],
            attributes=self.attribute_values(actual),
            properties={"InstanceId": instance} if "InstanceId" in ctx.properties else {},
        )

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Associate the instance."""
        neutron = network(ctx)
        port = port_of_instance(neutron, props["InstanceId"])
        neutron.update(FLOATING_IPS, physical_id, association(port))
        return None

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Disassociate the former instance if there is no other; a new one is associated in a step."""
        if not props.get("InstanceId"):
            network(ctx).update(FLOATING_IPS, physical_id, {"port_id": None})
        return Created(physical_id)


def port_of_instance(neutron: Network, instance_id: str) -> JsonObject:
    """Return the first port of an instance.

    Raises:
        ProviderError: it has none.
    """
    port = next(iter(neutron.search(PORTS, device_id=instance_id)), None)
    if port is None:
        raise ProviderError(f"No network interface found for server {instance_id}.", "InterfaceNotFound")
    return port


def association(port: JsonMapping) -> JsonObject:
    """Return the attributes of a floating IP that is associated with the first IPv4 address of a port."""
    addresses = [one["ip_address"] for one in port.get("fixed_ips") or () if ":" not in one["ip_address"]]
    return {"port_id": port["id"], **({"fixed_ip_address": addresses[0]} if addresses else {})}


def instance_of(neutron: Network, floating_ip: JsonMapping) -> str:
    """Return the instance with which a floating IP is associated, "" without one."""
    port_id = floating_ip.get("port_id")
    port = neutron.find(PORTS, port_id) if port_id else None
    return str((port or {}).get("device_id") or "")
