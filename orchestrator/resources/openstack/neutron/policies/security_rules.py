"""Rules of security groups: their normal form, and the difference between two sets of rules."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.openstack.creation_marks import unmarked

NAMED_PROTOCOLS: Final = (
    "ah",
    "dccp",
    "egp",
    "esp",
    "gre",
    "icmp",
    "icmpv6",
    "igmp",
    "ipv6-encap",
    "ipv6-frag",
    "ipv6-icmp",
    "ipv6-nonxt",
    "ipv6-opts",
    "ipv6-route",
    "ospf",
    "pgm",
    "rsvp",
    "sctp",
    "tcp",
    "udp",
    "udplite",
    "vrrp",
)
PROTOCOLS: Final = (*range(256), *NAMED_PROTOCOLS)
ICMP6: Final = frozenset({"icmp", "icmpv6", "ipv6-icmp", "58"})  # names of the same protocol with IPv6
DEFAULT_EGRESS: Final[Sequence[JsonMapping]] = (
    {"direction": "egress", "ethertype": "IPv4"},
    {"direction": "egress", "ethertype": "IPv6"},
)


class RuleKey(NamedTuple):
    """The normal form of a rule: rules with the same key are the same rule for Neutron."""

    direction: str
    ethertype: str
    protocol: str | None
    port_range_min: str | None
    port_range_max: str | None
    remote_group_id: str | None
    remote_ip_prefix: str | None


class RuleChanges(NamedTuple):
    """The difference of a group's rules from the desired rules."""

    stale: Sequence[str]  # ids
    missing: Sequence[JsonObject]  # as requests have them


def rule_key(rule: Mapping[str, Any]) -> RuleKey:
    """Return the normal form of a rule of Neutron."""
    ethertype, protocol = rule.get("ethertype") or "IPv4", _text(rule.get("protocol"))
    if ethertype == "IPv6" and protocol in ICMP6:
        protocol = "ipv6-icmp"
    return RuleKey(
        rule.get("direction") or "ingress",
        ethertype,
        protocol,
        _text(rule.get("port_range_min")),
        _text(rule.get("port_range_max")),
        rule.get("remote_group_id") or None,
        _prefix(rule.get("remote_ip_prefix")),
    )


def requested_rule(group_id: str, rule: Mapping[str, Any]) -> JsonObject:
    """Return a rule of a template as a request has it.

    With `remote_mode: remote_group_id`, a rule without a group refers to its own group.
    """
    values: JsonObject = {
        "security_group_id": group_id,
        "direction": rule.get("direction") or "ingress",
        "ethertype": rule.get("ethertype") or "IPv4",
    }
    for name in ("protocol", "port_range_min", "port_range_max"):
        text = _text(rule.get(name))
        if text is not None:
            values[name] = text
    if rule.get("remote_mode") == "remote_group_id":
        values["remote_group_id"] = rule.get("remote_group_id") or group_id
    elif rule.get("remote_ip_prefix"):
        values["remote_ip_prefix"] = rule["remote_ip_prefix"]
    if rule.get("description"):
        values["description"] = rule["description"]
    return values


def desired_rules(group_id: str, rules: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """Return the desired rules of a group: those of the template, and without any egress rule among them
    Neutron's default egress rules.
    """
    wanted = [requested_rule(group_id, rule) for rule in rules]
    if not any(rule["direction"] == "egress" for rule in wanted):
        wanted += [requested_rule(group_id, rule) for rule in DEFAULT_EGRESS]
    return wanted


def own_rules(group: JsonMapping) -> list[JsonMapping]:
    """Return the rules of a group, except for those that are their own resources."""
    rules: Iterable[JsonMapping] = group.get("security_group_rules") or ()
    return [rule for rule in rules if unmarked(rule.get("description")) == (rule.get("description") or "")]


def rule_changes(group: JsonMapping, rules: Iterable[Mapping[str, Any]]) -> RuleChanges:
    """Return the changes from the rules of a group to the rules of a template."""
    wanted = {rule_key(rule): rule for rule in desired_rules(group["id"], rules)}
    current = {rule_key(rule): rule for rule in own_rules(group)}
    stale = [rule["id"] for key, rule in current.items() if key not in wanted]
    return RuleChanges(stale, [rule for key, rule in wanted.items() if key not in current])


def template_rule(rule: JsonMapping) -> JsonObject:
    """Return a rule of Neutron as a template writes it."""
    names = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix")
    values = {name: rule[name] for name in names if rule.get(name) is not None}
    if rule.get("remote_group_id"):
        values |= {"remote_mode": "remote_group_id", "remote_group_id": rule["remote_group_id"]}
    return values


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value).lower()


def _prefix(value: str | None) -> str | None:
    if not value:
        return None
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        return value
