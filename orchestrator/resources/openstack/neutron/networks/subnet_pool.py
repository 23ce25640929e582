"""OS::Neutron::SubnetPool: a pool of addresses for subnets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.networking.network import SUBNET_POOLS
from orchestrator.resources.base import Fault, Property, Value
from orchestrator.resources.openstack.collection_type import UNORDERED, Field, or_none
from orchestrator.resources.openstack.neutron.base import TAGS, NeutronType
from orchestrator.schema.constraints import Custom, Length, Range
from orchestrator.schema.translation import Resolve

_LENGTH = (Range(min=0),)
_PREFIX_LENGTH: Final = Field(from_api=lambda value: value if value is None else int(value))


class SubnetPool(NeutronType):
    """A pool of addresses, from which subnets get theirs."""

    name = "OS::Neutron::SubnetPool"
    support_version = "6.0.0"
    collection = SUBNET_POOLS
    fields = {
        "address_scope": Field("address_scope_id", to_api=or_none),
        "prefixes": UNORDERED,
        "default_prefixlen": _PREFIX_LENGTH,
        "min_prefixlen": _PREFIX_LENGTH,
        "max_prefixlen": _PREFIX_LENGTH,
    }
    properties = {
        "name": Property("string", "Name of the pool.", update_allowed=True),
        "prefixes": Property(
            "list",
            "Addresses of the pool; an update can only add some.",
            required=True,
            update_allowed=True,
            constraints=(Length(min=1),),
            schema=Property("string", "A network.", constraints=(Custom("net_cidr"),)),
        ),
        "address_scope": Property(
            "string",
            "Name or id of the address scope.",
            update_allowed=True,
            constraints=(Custom("neutron.address_scope"),),
        ),
        "default_quota": Property(
            "integer", "Addresses that a project may use.", update_allowed=True, constraints=_LENGTH
        ),
        "default_prefixlen": Property(
            "integer", "Length of prefixes by default.", update_allowed=True, constraints=_LENGTH
        ),
        "min_prefixlen": Property(
            "integer", "Shortest length of prefixes.", update_allowed=True, constraints=_LENGTH
        ),
        "max_prefixlen": Property(
            "integer", "Longest length of prefixes.", update_allowed=True, constraints=_LENGTH
        ),
        "is_default": Property(
            "boolean", "Whether the pool is the default.", default=False, update_allowed=True
        ),
        "tenant_id": Property("string", "Project that owns the pool. Only administrators may set it."),
        "shared": Property("boolean", "Whether all projects may use the pool.", default=False),
        "tags": TAGS,
    }
    translation = (Resolve(("address_scope",), "neutron.address_scope"),)

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Lengths have to be in order, with Heat's messages."""
        faults = list(super().validate(properties, stack_timeout_seconds))
        pairs = (
            ("max_prefixlen", "min_prefixlen"),
            ("max_prefixlen", "default_prefixlen"),
            ("default_prefixlen", "min_prefixlen"),
        )
        for longer, shorter in pairs:
            low, high = properties.get(shorter), properties.get(longer)
            if low and high and low > high:
                first, second = (shorter, longer) if longer == "default_prefixlen" else (longer, shorter)
                bounds = f"{first}={properties[first]}, {second}={properties[second]}"
                faults.append(Fault(f"Illegal prefix bounds: {bounds}.", alone=True))
        return faults
