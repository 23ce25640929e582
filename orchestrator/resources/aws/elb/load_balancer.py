"""AWS::ElasticLoadBalancing::LoadBalancer: a load balancer of Octavia.

Each listener has a pool of the instances. Octavia carries out one change at a time: the resource is compared
with the template, and the first difference is the next step, until none is left. The physical id is that of
the load balancer, the reference id the name of the resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from orchestrator.clients.openstack.networking.load_balancing import LOAD_BALANCERS
from orchestrator.clients.openstack.networking.network import NETWORKS, PORTS
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.aws.elb.parts import first_difference
from orchestrator.resources.aws.elb.properties import ATTRIBUTES, PROPERTIES
from orchestrator.resources.base import Context, Created, Fault, Observation, ResourceType, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.creation_marks import own_tags, tags, token_tag
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.octavia.base import POLL_SECONDS, PROVISIONING, load_balancing
from orchestrator.schema.translation import Resolve

CONFIGURE: Final = "configure"
INTERVAL: Final = "Interval must be larger than Timeout"
NO_SUBNET: Final = "Subnets is required: the project has no network, or several"


class LoadBalancer(ResourceType):
    """A load balancer for instances."""

    name = "AWS::ElasticLoadBalancing::LoadBalancer"
    service = "octavia"
    endpoint_type = "load-balancer"
    live_show = True
    needs_ready = frozenset({"Instances"})  # their addresses are looked up
    properties = PROPERTIES
    attributes = ATTRIBUTES
    translation = (
        Resolve(("Subnets",), "neutron.subnet"),
        Resolve(("SecurityGroups",), "neutron.security_group"),
    )

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """A check ends before the next one begins."""
        check = properties.get("HealthCheck") or {}
        interval, timeout = check.get("Interval"), check.get("Timeout")
        if isinstance(interval, int) and isinstance(timeout, int) and interval < timeout:
            return (Fault(INTERVAL, "HealthCheck"),)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the load balancer; its parts follow in steps."""
        values: JsonObject = {
            "name": ctx.physical_name,
            "vip_subnet_id": vip_subnet(ctx, props),
            "tags": tags(ctx.token, ()),
        }
        if props.get("SecurityGroups"):
            values["vip_sg_ids"] = props["SecurityGroups"]
        with temporary_conflicts():
            created = load_balancing(ctx).create(LOAD_BALANCERS, values)
        return Created(str(created["id"]))

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the load balancers with the token."""
        tag = token_tag(token)
        found = load_balancing(ctx).search(LOAD_BALANCERS, tags=tag)
        return [str(item["id"]) for item in found if tag in (item.get("tags") or ())]

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the load balancer; while it is created or updated, compare its parts with the template."""
        actual = load_balancing(ctx).observed_object(LOAD_BALANCERS, physical_id)
        status = "DELETED" if actual is None else str(actual.get("provisioning_status"))
        if actual is None or status == "DELETED":
            return Observation(exists=False)
        seen = Observation(exists=True, reference_id=ctx.name, attributes=attribute_values(actual))
        if status == "ERROR":
            return replace(seen, error=PROVISIONING.error.format(status), replaceable=True)
        if status != "ACTIVE" or ctx.action == "DELETE":
            return replace(seen, ready=False, retry_after=POLL_SECONDS, reason=f"its status is {status}")
        if ctx.action in ("CREATE", "UPDATE") and first_difference(ctx, physical_id) is not None:
            return replace(seen, step=CONFIGURE, retry_after=1.0)
        return seen

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Request the first difference."""
        change = first_difference(ctx, physical_id)
        if change is not None:
            with temporary_conflicts():
                change()
        return None

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the security groups; the instances follow in steps."""
        if "SecurityGroups" in changed:
            values = {"vip_sg_ids": props.get("SecurityGroups") or []}
            with temporary_conflicts():
                load_balancing(ctx).update(LOAD_BALANCERS, physical_id, values)
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the load balancer with its parts, all of which belong to this resource."""
        with temporary_conflicts():
            load_balancing(ctx).remove_with_parts(physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the load balancer as `show`."""
        actual = load_balancing(ctx).find(LOAD_BALANCERS, physical_id)
        return {} if actual is None else {"show": {**actual, "tags": own_tags(actual)}}


def attribute_values(actual: Mapping[str, Value]) -> JsonObject:
    """Return the attributes: the address in place of a name, and no values for the others, as in Heat."""
    return {**dict.fromkeys(ATTRIBUTES, ""), "DNSName": actual.get("vip_address")}


def vip_subnet(ctx: Context, props: Mapping[str, Value]) -> str:
    """Return the subnet of the address: the given subnet, the first instance's, or the only subnet.

    Raises:
        ProviderError: there are several networks, or none.
    """
    if props.get("Subnets"):
        return str(props["Subnets"][0])
    neutron = network(ctx)
    for instance in (props.get("Instances") or ())[:1]:
        for port in neutron.search(PORTS, device_id=instance, fields=("fixed_ips",)):
            for address in port["fixed_ips"]:
                return str(address["subnet_id"])
    internal: dict[str, Any] = {"router:external": False}
    found = [
        net for net in neutron.search(NETWORKS, project_id=ctx.project_id, **internal) if net.get("subnets")
    ]
    if len(found) != 1:
        raise ProviderError(NO_SUBNET, "Error")
    return str(found[0]["subnets"][0])
