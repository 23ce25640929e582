"""OS::Neutron::SecurityGroupRule: a rule of a security group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.networking.network import SECURITY_GROUP_RULES
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Fault, Property, Unique, Value
from orchestrator.resources.openstack.neutron.base import NeutronType
from orchestrator.resources.openstack.neutron.policies.security_rules import PROTOCOLS
from orchestrator.resources.openstack.written_values import conflict
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

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Reject two kinds of peers, and ports in the wrong order."""
        faults = []
        if properties.get("remote_group") and properties.get("remote_ip_prefix"):
            faults.append(conflict("remote_group", "remote_ip_prefix"))
        first, last = properties.get("port_range_min"), properties.get("port_range_max")
        is_icmp = properties.get("protocol") in ("icmp", "icmpv6", "ipv6-icmp")
        if first is not None and last is not None and last < first and not is_icmp:
            message = "The minimum port number must be less than or equal to the maximum port number."
            faults.append(Fault(message, alone=True))
        return faults

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request, as text."""
        values = super().request_values(ctx, props, names)
        return {name: str(value) for name, value in values.items() if value is not None and value != ""}
