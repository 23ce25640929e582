"""OS::Neutron::SubnetPool: a pool of addresses for subnets."""

from __future__ import annotations

from typing import Final

from orchestrator.clients.openstack.networking.network import SUBNET_POOLS
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.collection_type import UNORDERED, Field, or_none
from orchestrator.resources.openstack.neutron.base import TAGS, NeutronType
from orchestrator.resources.openstack.property_rules import Refused
from orchestrator.schema.constraints import Custom, Length, Range
from orchestrator.schema.translation import Resolve

_LENGTH = (Range(min=0),)
_PREFIX_LENGTH: Final = Field(from_api=lambda value: value if value is None else int(value))


def _in_order(longer: str, shorter: str) -> Refused:
    """Return the rule that a length is not less than another, with Heat's message."""
    first, second = (shorter, longer) if longer == "default_prefixlen" else (longer, shorter)
    bounds = f"{first}={{{first}}}, {second}={{{second}}}"
    message = f"Illegal prefix bounds: {bounds}."
    return Refused(message, lambda p: p.get(shorter) and p.get(longer) and p[shorter] > p[longer])


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
    rules = (
        _in_order("max_prefixlen", "min_prefixlen"),
        _in_order("max_prefixlen", "default_prefixlen"),
        _in_order("default_prefixlen", "min_prefixlen"),
    )
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
