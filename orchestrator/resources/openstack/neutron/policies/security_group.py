"""OS::Neutron::SecurityGroup: rules for the traffic of ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from orchestrator.clients.openstack.networking.network import SECURITY_GROUP_RULES, SECURITY_GROUPS
from orchestrator.errors import ProviderConflict, ProviderQuotaExceeded
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Created, Fault, Observation, Property, Value
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.neutron.base import NeutronType, network
from orchestrator.resources.openstack.neutron.policies.security_rules import (
    PROTOCOLS,
    own_rules,
    rule_changes,
    template_rule,
)
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve

REFUSALS: Final = (ProviderConflict, ProviderQuotaExceeded)
_PORT = (Range(0, 65535),)
_RULE: Final = Property(
    "map",
    "A rule.",
    schema={
        "direction": Property(
            "string",
            "Direction of the traffic, as seen from the port.",
            default="ingress",
            constraints=(AllowedValues(("ingress", "egress")),),
        ),
        "ethertype": Property(
            "string",
            "Version of IP.",
            default="IPv4",
            constraints=(AllowedValues(("IPv4", "IPv6")),),
        ),
        "port_range_min": Property("integer", "First port, or the type of ICMP.", constraints=_PORT),
        "port_range_max": Property("integer", "Last port, or the code of ICMP.", constraints=_PORT),
        "protocol": Property(
            "string", "Protocol, by name or number; default: all.", constraints=(AllowedValues(PROTOCOLS),)
        ),
        "remote_mode": Property(
            "string",
            "Whether the peers are members of a group or have certain addresses.",
            default="remote_ip_prefix",
            constraints=(AllowedValues(("remote_ip_prefix", "remote_group_id")),),
        ),
        "remote_group_id": Property(
            "string",
            "Name or id of the group of the peers; default: this group.",
            constraints=(Custom("neutron.security_group"),),
        ),
        "remote_ip_prefix": Property("string", "Addresses of the peers.", constraints=(Custom("net_cidr"),)),
        "description": Property("string", "Description of the rule."),
    },
)


class SecurityGroup(NeutronType):
    """Rules for the traffic of ports. An update adds missing and deletes stale rules, and keeps the rest."""

    name = "OS::Neutron::SecurityGroup"
    support_version = "2014.1"
    collection = SECURITY_GROUPS
    fields = {"rules": Field(sent=False)}
    properties = {
        "name": Property("string", "Name of the group; not `default`.", update_allowed=True),
        "description": Property("string", "Description of the group.", update_allowed=True),
        "rules": Property("list", "Rules of the group.", default=[], update_allowed=True, schema=_RULE),
        "stateful": Property(
            "boolean", "Whether answers to permitted traffic are permitted.", update_allowed=True
        ),
    }
    translation = (Resolve(("rules", "remote_group_id"), "neutron.security_group"),)

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """The name of the project's own group is reserved."""
        if properties.get("name") == "default":
            message = 'Security groups cannot be assigned the name "default".'
            return (Fault(message, alone=True),)
        return super().validate(properties, stack_timeout_seconds)

    def from_api(self, name: str, actual: JsonMapping) -> Value:
        """Return the group itself as the value of `rules`: `satisfies` compares the normal forms."""
        return dict(actual) if name == "rules" else super().from_api(name, actual)

    def satisfies(self, name: str, desired: Value, actual: Value) -> bool:
        """Compare rules in their normal form; the order has no meaning."""
        if name != "rules":
            return super().satisfies(name, desired, actual)
        return rule_changes(actual, desired) == ([], [])

    def actual_properties(self, ctx: Context, actual: JsonMapping) -> dict[str, Value]:
        """Return rules as a template writes them, if they differ from the template's."""
        values = super().actual_properties(ctx, actual)
        if isinstance(values.get("rules"), dict):
            values["rules"] = [template_rule(rule) for rule in own_rules(actual)]
        return values

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Set the rules of a new group."""
        if ctx.action != "CREATE" or rule_changes(actual, ctx.properties.get("rules") or ()) == ([], []):
            return ""
        return "set_rules"

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the rules of a new group."""
        with temporary_conflicts():
            self._set_rules(ctx, physical_id, props)
        return None

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the group, then its rules."""
        updated = super().update(ctx, physical_id, props, changed)
        if "rules" in changed:
            with temporary_conflicts():
                self._set_rules(ctx, physical_id, props)
        return updated

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Delete the rules first: rules of other groups may refer to this group, and its own to them."""
        neutron = network(ctx)
        group = neutron.find(SECURITY_GROUPS, physical_id)
        if group is None:
            return Observation(exists=False)
        for rule in group.get("security_group_rules") or ():
            neutron.remove(SECURITY_GROUP_RULES, rule["id"])
        return super().delete(ctx, physical_id)

    def _set_rules(self, ctx: Context, group_id: str, props: Mapping[str, Value]) -> None:
        """Add rules before others are removed: traffic that both versions permit is not interrupted. Only if
        Neutron refuses that, because of a quota or of equal rules, are they removed first.
        """
        neutron = network(ctx)
        group = neutron.find(SECURITY_GROUPS, group_id)
        if group is None:
            return
        changes = rule_changes(group, props.get("rules") or ())
        added = not changes.missing
        if changes.missing:
            with suppress(*(REFUSALS if changes.stale else ())):
                neutron.add_rules(changes.missing)
                added = True
        for rule_id in changes.stale:
            neutron.remove(SECURITY_GROUP_RULES, rule_id)
        if not added:
            neutron.add_rules(changes.missing)
