"""AWS::EC2::SecurityGroup: a security group of Neutron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws.mapped_type import MappedType
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.openstack.neutron.policies.security_group import SecurityGroup
from orchestrator.schema.translation import Resolve

DIRECTIONS: Final = {"SecurityGroupIngress": "ingress", "SecurityGroupEgress": "egress"}
ANY_PROTOCOL: Final = "-1"

_RULE: Final = Property(
    "map",
    "A rule.",
    schema={
        "CidrIp": Property("string", "Addresses of the peers."),
        "FromPort": Property("string", "First port, or the type of ICMP; -1 for all."),
        "ToPort": Property("string", "Last port, or the code of ICMP; -1 for all."),
        "IpProtocol": Property("string", "Protocol, by name or number; -1 for all."),
        "SourceSecurityGroupId": Property("string", "Id of the security group of the peers."),
        "SourceSecurityGroupName": Property("string", "Name or id of the security group of the peers."),
        "SourceSecurityGroupOwnerId": Property("string", "Not implemented.", implemented=False),
    },
)


class Ec2SecurityGroup(MappedType):
    """Rules for traffic. Without rules for outgoing traffic, the default rules permit it."""

    name = "AWS::EC2::SecurityGroup"
    service = "neutron"
    endpoint_type = "network"
    target_type = SecurityGroup
    changes = dict.fromkeys(DIRECTIONS, ("rules",))
    properties = {
        "GroupDescription": Property("string", "Description of the group.", required=True),
        "VpcId": Property("string", "Id of the VPC; it has no effect."),
        "SecurityGroupIngress": Property(
            "list", "Rules for incoming traffic.", update_allowed=True, schema=_RULE
        ),
        "SecurityGroupEgress": Property(
            "list", "Rules for outgoing traffic.", update_allowed=True, schema=_RULE
        ),
    }
    translation = tuple(
        Resolve((name, key), "neutron.security_group")
        for name in DIRECTIONS
        for key in ("SourceSecurityGroupId", "SourceSecurityGroupName")
    )

    def mapped(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the properties of a security group."""
        rules = [
            _rule(direction, rule) for name, direction in DIRECTIONS.items() for rule in props.get(name) or ()
        ]
        return {"description": props.get("GroupDescription") or "", "rules": rules}

    def observed_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the rules as templates write them, if they differ from the template's."""
        if "rules" not in actual or actual["rules"] == self.context(ctx).properties.get("rules"):
            return {name: ctx.properties[name] for name in DIRECTIONS if name in ctx.properties}
        return {
            name: [_template_rule(rule) for rule in actual["rules"] if rule.get("direction") == direction]
            for name, direction in DIRECTIONS.items()
            if name in ctx.properties
        }


def _rule(direction: str, rule: Mapping[str, Value]) -> JsonObject:
    """Return a rule of Neutron; negative ports stand for all, and a rule without ports is for all peers."""
    values: JsonObject = {"direction": direction, "ethertype": "IPv4"}
    protocol = rule.get("IpProtocol")
    if protocol and protocol != ANY_PROTOCOL:
        values["protocol"] = protocol
    for key, name in (("FromPort", "port_range_min"), ("ToPort", "port_range_max")):
        port = rule.get(key)
        if port not in (None, "") and int(port) >= 0:
            values[name] = int(port)
    source = rule.get("SourceSecurityGroupId") or rule.get("SourceSecurityGroupName")
    has_ports = any(rule.get(key) not in (None, "") for key in ("FromPort", "ToPort"))
    if source:
        values |= {"remote_mode": "remote_group_id", "remote_group_id": source}
    elif rule.get("CidrIp") and has_ports:
        values["remote_ip_prefix"] = rule["CidrIp"]
    return values


def _template_rule(rule: JsonMapping) -> JsonObject:
    names = {
        "remote_ip_prefix": "CidrIp",
        "port_range_min": "FromPort",
        "port_range_max": "ToPort",
        "protocol": "IpProtocol",
        "remote_group_id": "SourceSecurityGroupId",
    }
    return {own: str(rule[name]) for name, own in names.items() if rule.get(name) is not None}
