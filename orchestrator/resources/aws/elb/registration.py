"""The registration of an instance with load balancers, as Heat's scaling groups do it.

A group gives its members the load balancers that it names. Each member adds itself to their pools, and leaves
them after its deletion. The members of a pool that instances have added carry a tag; the load balancer leaves
these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from orchestrator.clients.openstack.networking.load_balancing import (
    LISTENERS,
    LOAD_BALANCERS,
    MEMBERS,
    LoadBalancing,
)
from orchestrator.json_types import JsonMapping
from orchestrator.resources.aws.elb.parts import (
    instance_addresses,
    is_registered,
    member_of,
    place,
    registration_tag,
)
from orchestrator.resources.base import Context
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.octavia.base import load_balancing

REGISTER: Final = "register"
DEREGISTER: Final = "deregister"


def next_registration(ctx: Context, server_id: str) -> Callable[[], object] | None:
    """Return the request that adds the instance to a pool, None if it is in all of them."""
    octavia, tag = load_balancing(ctx), registration_tag(server_id)
    for given in ctx.properties.get("LoadBalancers") or ():
        addresses = instance_addresses(ctx, [server_id])
        for listener, pool_id in _pools(octavia, given):
            members = list(octavia.search(MEMBERS, parent=pool_id))
            for address in addresses:
                wanted = member_of(address, listener["InstancePort"], given.get("HealthCheck"))
                found = next((one for one in members if place(one) == place(wanted)), None)
                if found is None:
                    return partial(octavia.create, MEMBERS, {**wanted, "tags": [tag]}, parent=pool_id)
                if is_registered(found) and tag not in found["tags"]:  # of an instance that had the address
                    values = {"tags": [tag]}
                    return partial(octavia.update, MEMBERS, found["id"], values, parent=pool_id)
    return None


def next_removal(ctx: Context, server_id: str) -> Callable[[], object] | None:
    """Return the request that removes the instance from a pool, None if it is in none."""
    octavia, tag = load_balancing(ctx), registration_tag(server_id)
    for given in ctx.properties.get("LoadBalancers") or ():
        for _, pool_id in _pools(octavia, given):
            for member in octavia.search(MEMBERS, parent=pool_id):
                if (
                    tag in (member.get("tags") or ())
                    and member.get("provisioning_status") != "PENDING_DELETE"
                ):
                    return partial(octavia.remove, MEMBERS, member["id"], parent=pool_id)
    return None


def carry_out(ctx: Context, server_id: str, step: str) -> None:
    """Carry out the next request of a step; while the load balancer is being changed, it is repeated."""
    change = (next_registration if step == REGISTER else next_removal)(ctx, server_id)
    if change is not None:
        with temporary_conflicts():
            change()


def _pools(octavia: LoadBalancing, given: JsonMapping) -> Iterator[tuple[JsonMapping, str]]:
    """Yield the listeners of a template with the ids of their pools. An absent load balancer has none."""
    found = octavia.find(LOAD_BALANCERS, str(given["Id"])) or {}
    listeners: Sequence[JsonMapping] = [
        listener
        for item in found.get("listeners") or ()
        if (listener := octavia.find(LISTENERS, item["id"])) is not None
    ]
    pools = {listener["protocol_port"]: listener.get("default_pool_id") for listener in listeners}
    for wanted in given.get("Listeners") or ():
        pool_id = pools.get(int(wanted["LoadBalancerPort"]))
        if pool_id:
            yield wanted, str(pool_id)
