"""AWS::EC2::NetworkInterface: a port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.clients.openstack.networking.network import PORTS, SECURITY_GROUPS, SUBNETS
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws.neutron_objects import Ec2NetworkType
from orchestrator.resources.aws.tags import UNUSED_TAGS
from orchestrator.resources.base import Attribute, Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.neutron.base import BUILT, network
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class NetworkInterface(Ec2NetworkType):
    """A network interface on a subnet. A replacement may have the same address."""

    name = "AWS::EC2::NetworkInterface"
    collection = PORTS
    lists = PORTS.plural
    status = BUILT
    properties = {
        "Description": Property("string", "Description of the interface."),
        "GroupSet": Property(
            "list",
            "Security groups; an empty list for none. Default: the project's default group.",
            update_allowed=True,
        ),
        "PrivateIpAddress": Property("string", "Address of the interface."),
        "SourceDestCheck": Property("boolean", "Not implemented.", implemented=False),
        "SubnetId": Property(
            "string", "Subnet of the interface.", required=True, constraints=(Custom("neutron.subnet"),)
        ),
        "Tags": UNUSED_TAGS,
    }
    attributes = {"PrivateIpAddress": Attribute("First address of the interface.", type="string")}
    translation = (
        Resolve(("SubnetId",), "neutron.subnet"),
        Resolve(("GroupSet",), "neutron.security_group"),
    )

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of the port."""
        subnet = network(ctx).find(SUBNETS, props["SubnetId"])
        if subnet is None:
            raise ProviderError(f"The Subnet ({props['SubnetId']}) could not be found.", "EntityNotFound")
        address = {"ip_address": props["PrivateIpAddress"]} if props.get("PrivateIpAddress") else {}
        values: JsonObject = {
            "name": ctx.physical_name,
            "description": props.get("Description") or "",
            "admin_state_up": True,
            "network_id": subnet["network_id"],
            "fixed_ips": [{"subnet_id": subnet["id"], **address}],
        }
        if props.get("GroupSet") is not None:
            values["security_groups"] = props["GroupSet"]
        return values

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the security groups."""
        neutron, groups = network(ctx), props.get("GroupSet")
        if groups is None:
            default = neutron.search(
                SECURITY_GROUPS, name="default", project_id=ctx.project_id, fields=("id",)
            )
            groups = [group["id"] for group in default]
        neutron.update(PORTS, physical_id, {"security_groups": groups})
        return Created(physical_id)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the port; during a release, whether its address is free."""
        if ctx.action != "RELEASE":
            return super().observe(ctx, physical_id)
        port = network(ctx).find(PORTS, physical_id)
        if port is None:
            return Observation(exists=False)
        return Observation(exists=True, released=not (_keeps_address(ctx) and port.get("fixed_ips")))

    def attribute_values(self, actual: JsonMapping) -> JsonObject:
        """Return the first address."""
        addresses = actual.get("fixed_ips") or ()
        return {"PrivateIpAddress": addresses[0]["ip_address"] if addresses else None}

    def actual_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the security groups; their order has no meaning."""
        given, groups = ctx.properties.get("GroupSet"), actual.get("security_groups") or []
        if given is None:
            return {}
        return {"GroupSet": given if set(given) == set(groups) else groups}

    def release(self, ctx: Context, physical_id: str) -> None:
        """Give up the address that the template sets, for a replacement."""
        if _keeps_address(ctx) and network(ctx).find(PORTS, physical_id) is not None:
            network(ctx).update(PORTS, physical_id, {"fixed_ips": []})

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        """Take back the address."""
        if _keeps_address(ctx):
            address = {
                "subnet_id": ctx.properties["SubnetId"],
                "ip_address": ctx.properties["PrivateIpAddress"],
            }
            network(ctx).update(PORTS, physical_id, {"fixed_ips": [address]})


def _keeps_address(ctx: Context) -> bool:
    return bool(ctx.properties.get("PrivateIpAddress"))
