"""OS::Octavia::PoolMember.

A pool has a single member with an address and a port. A replacement with both would be refused, so that the
address and port of the health monitor, which Octavia can change, are changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.clients.openstack.networking.load_balancing import MEMBERS
from orchestrator.resources.base import Change, Property, Unique, Value
from orchestrator.resources.openstack.creation_marks import TokenInTags
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, LoadBalancerPart
from orchestrator.resources.openstack.octavia.listener import PORT_NUMBER
from orchestrator.schema.constraints import Custom, Range
from orchestrator.schema.translation import Resolve

MONITOR: Final = frozenset({"monitor_address", "monitor_port"})


class PoolMember(LoadBalancerPart):
    """A server of a pool."""

    name = "OS::Octavia::PoolMember"
    collection = MEMBERS
    unique = Unique((("pool", "address", "protocol_port"),), "delete")
    parent_property = "pool"
    fields = {"subnet": "subnet_id"}
    mark = TokenInTags(("address", "protocol_port"))
    translation = (Resolve(("subnet",), "neutron.subnet"), Resolve(("pool",), "octavia.pool"))
    properties = {
        "pool": Property(
            "string", "Name or id of the pool.", required=True, constraints=(Custom("octavia.pool"),)
        ),
        "address": Property(
            "string", "Address of the server.", required=True, constraints=(Custom("ip_addr"),)
        ),
        "protocol_port": Property(
            "integer", "Port number of the server.", required=True, constraints=(PORT_NUMBER,)
        ),
        "monitor_address": Property(
            "string", "Address for the health monitor.", constraints=(Custom("ip_addr"),)
        ),
        "monitor_port": Property("integer", "Port for the health monitor.", constraints=(PORT_NUMBER,)),
        "weight": Property(
            "integer",
            "Share of the load in relation to the other members.",
            default=1,
            update_allowed=True,
            constraints=(Range(0, 256),),
        ),
        "admin_state_up": ADMIN_STATE_UP,
        "subnet": Property(
            "string",
            "Name or id of the subnet with the address. Default: that of the virtual address.",
            constraints=(Custom("neutron.subnet"),),
        ),
        "tags": Property(
            "list",
            "Tags of the member.",
            update_allowed=True,
            schema=Property("string", "A tag."),
        ),
    }

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Change the address and port of the health monitor in place."""
        step = super().change(before, after, changed - MONITOR)
        return "update" if step == "keep" and changed & MONITOR else step
