"""The parts of AWS::ElasticLoadBalancing::LoadBalancer: the first that is not as in the template.

A listener is recognized by its port; its default pool and that pool's health monitor and members follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from orchestrator.clients.openstack.networking.load_balancing import (
    HEALTH_MONITORS,
    LISTENERS,
    LOAD_BALANCERS,
    MEMBERS,
    POOLS,
    LoadBalancing,
)
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.octavia.base import load_balancing

CHANGE = Callable[[], object]
MAX_THRESHOLD: Final = 10
REGISTERED: Final = "stack-orchestrator-instance:"  # tag of members that instances have added
KEPT: Final = ("address", "protocol_port", "weight", "monitor_port", "subnet_id", "admin_state_up", "tags")
_TARGET: Final = re.compile(r"(?P<protocol>[A-Za-z]+):(?P<port>\d+)(?P<path>/.*)?")


def first_difference(ctx: Context, balancer_id: str) -> CHANGE | None:
    """Return the request that brings a load balancer closer to the template, None if it is as desired."""
    octavia = load_balancing(ctx)
    balancer = octavia.find(LOAD_BALANCERS, balancer_id) or {}
    by_port = {item["protocol_port"]: item for item in _objects(octavia, balancer)}
    addresses = instance_addresses(ctx, ctx.properties.get("Instances") or ())
    for wanted in ctx.properties["Listeners"]:
        listener = by_port.get(wanted["LoadBalancerPort"])
        if listener is None:
            values = {
                "loadbalancer_id": balancer_id,
                "name": str(wanted["LoadBalancerPort"]),
                "protocol": wanted["Protocol"],
                "protocol_port": wanted["LoadBalancerPort"],
            }
            return partial(octavia.create, LISTENERS, values)
        if not listener.get("default_pool_id"):
            values = {
                "listener_id": listener["id"],
                "name": str(wanted["LoadBalancerPort"]),
                "protocol": wanted["Protocol"],
                "lb_algorithm": "ROUND_ROBIN",
            }
            return partial(octavia.create, POOLS, values)
        check = ctx.properties.get("HealthCheck")
        members = [member_of(address, wanted["InstancePort"], check) for address in addresses]
        change = _difference_of_pool(ctx, octavia, listener["default_pool_id"], members)
        if change is not None:
            return change
    return None


def _difference_of_pool(
    ctx: Context, octavia: LoadBalancing, pool_id: str, members: Sequence[JsonMapping]
) -> CHANGE | None:
    check = ctx.properties.get("HealthCheck")
    pool = octavia.find(POOLS, pool_id) or {}
    if check and not pool.get("healthmonitor_id"):
        return partial(octavia.create, HEALTH_MONITORS, {"pool_id": pool_id, **monitor(check)})
    items = list(octavia.search(MEMBERS, parent=pool_id))
    registered = {place(item): item for item in items if is_registered(item)}
    own = [member for member in members if place(member) not in registered]
    actual = {place(item) for item in items} - registered.keys()
    if actual != {place(member) for member in own}:
        kept = [
            {name: item[name] for name in KEPT if item.get(name) is not None} for item in registered.values()
        ]
        return partial(octavia.set_members, pool_id, [*own, *kept])
    return None


def member_of(address: str, port: int, check: JsonMapping | None) -> JsonObject:
    """Return a member of a pool; a health check of another port needs its number."""
    target = _TARGET.fullmatch(str(check["Target"])) if check else None
    monitored = target is not None and int(target["port"]) != port
    further = {"monitor_port": int(target["port"])} if target is not None and monitored else {}
    return {"address": address, "protocol_port": port, **further}


def place(member: JsonMapping) -> tuple[str, int]:
    """Return what distinguishes a member from the others of its pool."""
    return member["address"], int(member["protocol_port"])


def registration_tag(server_id: str) -> str:
    """Return the tag of members that an instance has added."""
    return f"{REGISTERED}{server_id}"


def is_registered(member: JsonMapping) -> bool:
    """Return whether an instance has added the member."""
    return any(tag.startswith(REGISTERED) for tag in member.get("tags") or ())


def _objects(octavia: LoadBalancing, balancer: JsonMapping) -> Iterator[JsonObject]:
    """Yield the listeners of a load balancer."""
    for item in balancer.get("listeners") or ():
        listener = octavia.find(LISTENERS, item["id"])
        if listener is not None:
            yield listener


def instance_addresses(ctx: Context, instances: Sequence[str]) -> list[str]:
    """Return the first fixed address of each instance; an instance that does not exist has none."""
    nova, found = openstack(ctx).compute, []
    for instance in instances:
        networks: Mapping[str, Sequence[JsonMapping]] = (nova.server(instance) or {}).get("addresses") or {}
        fixed = [
            str(address["addr"])
            for name in sorted(networks)
            for address in networks[name]
            if address.get("OS-EXT-IPS:type") != "floating"
        ]
        found += fixed[:1]
    return list(dict.fromkeys(found))


def monitor(check: Mapping[str, Value]) -> JsonObject:
    """Return the attributes of the health monitor for a health check."""
    target = _TARGET.fullmatch(str(check["Target"]))
    protocol = target["protocol"].upper() if target else "TCP"
    values: JsonObject = {
        "type": protocol if protocol in ("HTTP", "HTTPS") else "TCP",
        "delay": check["Interval"],
        "timeout": check["Timeout"],
        "max_retries": min(max(check["HealthyThreshold"], 1), MAX_THRESHOLD),
        "max_retries_down": min(max(check["UnhealthyThreshold"], 1), MAX_THRESHOLD),
    }
    if values["type"] != "TCP":
        values["url_path"] = (target["path"] if target else None) or "/"
    return values
