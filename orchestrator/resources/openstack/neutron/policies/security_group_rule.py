"""OS::Neutron::SecurityGroupRule: a rule of a security group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import SECURITY_GROUP_RULES
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Property, Unique, Value
from orchestrator.resources.openstack.neutron.base import NeutronType
from orchestrator.resources.openstack.neutron.policies.security_rules import PROTOCOLS
from orchestrator.resources.openstack.property_rules import Exclusive, Refused
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve

_GROUP = (Custom("neutron.security_group"),)
_PORT = (Range(0, 65535),)
# Properties in which two rules of a group may not agree.
RULE: Final = (
    "direction",
    "ethertype",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_group",
    "remote_ip_prefix",
)


class SecurityGroupRule(NeutronType):
    """A rule of a security group, independent of the rules that the group's resource lists."""

    name = "OS::Neutron::SecurityGroupRule"
    support_version = "7.0.0"
    collection = SECURITY_GROUP_RULES
    unique = Unique((("security_group", *RULE),), "delete")
    fields = {"security_group": "security_group_id", "remote_group": "remote_group_id"}
    rules = (
        Exclusive("remote_group", "remote_ip_prefix"),
        Refused(
            "The minimum port number must be less than or equal to the maximum port number.",
            lambda p: (
                p.get("protocol") not in ("icmp", "icmpv6", "ipv6-icmp")
                and None not in (p.get("port_range_min"), p.get("port_range_max"))
                and p["port_range_max"] < p["port_range_min"]
            ),
        ),
    )
    properties = {
        "security_group": Property("string", "Name or id of the group.", required=True, constraints=_GROUP),
        "description": Property("string", "Description of the rule."),
        "direction": Property(
            "string",
            "Direction of the traffic, as seen from the port.",
            default="ingress",
            constraints=(AllowedValues(("ingress", "egress")),),
        ),
        "ethertype": Property(
            "string", "Version of IP.", default="IPv4", constraints=(AllowedValues(("IPv4", "IPv6")),)
        ),
        "port_range_min": Property("integer", "First port, or the type of ICMP.", constraints=_PORT),
        "port_range_max": Property("integer", "Last port, or the code of ICMP.", constraints=_PORT),
        "protocol": Property(
            "string",
            "Protocol, by name or number.",
            default="tcp",
            constraints=(AllowedValues(PROTOCOLS),),
        ),
        "remote_group": Property("string", "Name or id of the group of the peers.", constraints=_GROUP),
        "remote_ip_prefix": Property("string", "Addresses of the peers.", constraints=(Custom("net_cidr"),)),
    }
    translation = (
        Resolve(("security_group",), "neutron.security_group"),
        Resolve(("remote_group",), "neutron.security_group"),
    )

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request, as text."""
        values = super().request_values(ctx, props, names)
        return {name: str(value) for name, value in values.items() if value is not None and value != ""}
