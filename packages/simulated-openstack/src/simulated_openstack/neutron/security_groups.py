"""Security groups and their rules."""

from __future__ import annotations

import ipaddress
from typing import ClassVar, Final

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Families, Family
from simulated_openstack.neutron.fields import REQUIRED, Field, bad_request
from simulated_openstack.service import Call, Service, new_id, timestamp

DEFAULT: Final = "default"
PROTOCOLS: Final = (
    *(
        "any",
        "ah",
        "dccp",
        "egp",
        "esp",
        "gre",
        "hopopt",
        "icmp",
        "igmp",
        "ip",
        "ipip",
        "ipv6-encap",
        "ipv6-frag",
    ),
    *(
        "ipv6-icmp",
        "icmpv6",
        "ipv6-nonxt",
        "ipv6-opts",
        "ipv6-route",
        "ospf",
        "pgm",
        "rsvp",
        "sctp",
        "tcp",
        "udp",
    ),
    *("udplite", "vrrp"),
)
WITH_PORTS: Final = frozenset({"tcp", "udp", "sctp", "dccp", "udplite", "6", "17", "132", "33", "136"})
SAME_RULE: Final = (
    *("security_group_id", "direction", "ethertype", "protocol", "port_range_min", "port_range_max"),
    *("remote_ip_prefix", "remote_group_id", "remote_address_group_id"),
)


class SecurityGroups(Family):
    """Security groups. Every project has a group `default`, made at its first use."""

    singular = "security_group"
    collection = "security_groups"
    label = "Security group"
    not_found = "{label} {id} does not exist"
    not_found_kind = "SecurityGroupNotFound"
    quota = "security_group"
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(),
        "description": Field(),
        "stateful": Field(True, "boolean"),
        "shared": Field(False, "boolean", post=False, put=False),
    }

    def __init__(self, neutron: Service, families: Families, rules: SecurityGroupRules) -> None:
        """Add the routes."""
        super().__init__(neutron, families)
        self._rules = rules

    def default(self, project: str) -> JsonObject:
        """Return the default group of a project."""
        for row in self.table.where("project_id", project):
            if row["name"] == DEFAULT:
                return row
        row = self._keep(
            project, {"name": DEFAULT, "description": "Default security group", "stateful": True}
        )
        for ethertype in ("IPv4", "IPv6"):
            rule = {"direction": "ingress", "ethertype": ethertype, "remote_group_id": row["id"]}
            self._rules.keep(row, {**rule, "description": None})
        return row

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new group, which allows all outgoing traffic."""
        project = str(values.get("project_id") or values.get("tenant_id") or call.caller.project_id)
        if values["name"] == DEFAULT:
            self.default(project)
            raise _default_exists()
        self.default(project)
        self.quotas.require(self.quota, project)
        return self._keep(project, values)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change; the name `default` is reserved."""
        if values.get("name") == DEFAULT and row["name"] != DEFAULT:
            raise _default_exists()
        if "name" in values and row["name"] == DEFAULT and values["name"] != DEFAULT:
            raise ApiError(
                409, "Updating default security group not allowed.", "SecurityGroupCannotUpdateDefault"
            )
        super().change(call, row, values)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a group that no port uses."""
        if any(row["id"] in port["security_groups"] for port in self.family("port").table):
            raise ApiError(409, f"Security Group {row['id']} in use.", "SecurityGroupInUse")
        if row["name"] == DEFAULT and not call.caller.is_admin:
            raise ApiError(
                409,
                "Insufficient rights for removing default security group.",
                "SecurityGroupCannotRemoveDefault",
            )
        for rule in self._rules.table:
            if row["id"] in {rule["security_group_id"], rule["remote_group_id"]}:
                self._rules.table.remove(rule["id"])
        super().remove(call, row)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a group with its rules."""
        rules = self._rules.of_group(row["id"])
        views = [{**rule, "standard_attr_id": n, "tags": []} for n, rule in enumerate(rules, 1)]
        return {**super().view(row), "shared": False, "security_group_rules": views}

    def _keep(self, project: str, values: JsonObject) -> JsonObject:
        now = timestamp()
        row = {"id": new_id(), **values, "project_id": project, "tenant_id": project, "tags": []}
        row |= {"created_at": now, "updated_at": now, "revision_number": 1}
        self.table.save(row)
        for ethertype in ("IPv4", "IPv6"):
            rule = {"direction": "egress", "ethertype": ethertype, "description": None}
            self._rules.keep(row, rule)
        return row


class SecurityGroupRules(Family):
    """Rules of security groups."""

    singular = "security_group_rule"
    collection = "security_group_rules"
    label = "Security group rule"
    not_found = "{label} {id} does not exist"
    not_found_kind = "SecurityGroupRuleNotFound"
    quota = "security_group_rule"
    taggable = False
    indexes: ClassVar[tuple[str, ...]] = ("security_group_id",)
    fields: ClassVar[dict[str, Field]] = {
        "security_group_id": Field(REQUIRED, "uuid", put=False),
        "direction": Field(REQUIRED, "any", put=False),
        "ethertype": Field("IPv4", "any", put=False),
        "protocol": Field(None, "any", put=False),
        "port_range_min": Field(None, "any", put=False),
        "port_range_max": Field(None, "any", put=False),
        "remote_ip_prefix": Field(None, "any", put=False),
        "remote_group_id": Field(None, "any", put=False),
        "remote_address_group_id": Field(None, "any", put=False),
        "description": Field(),
    }

    def of_group(self, group_id: str) -> list[JsonObject]:
        """Return the rules of a group."""
        return self.table.where("security_group_id", group_id)

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new rule."""
        group = self.family("security_group").visible(call, values["security_group_id"])
        self._check(values)
        for rule in self.of_group(group["id"]):
            if all(rule.get(name) == values.get(name) for name in SAME_RULE):
                raise ApiError(
                    409,
                    f"Security group rule already exists. Rule id is {rule['id']}.",
                    "SecurityGroupRuleExists",
                )
        self.quotas.require(self.quota, group["project_id"])
        return self.keep(group, values)

    def checked(self, call: Call, given: JsonObject, *, new: bool) -> JsonObject:
        """Return the values of a body."""
        values = super().checked(call, given, new=new)
        if new:
            self._check_words(values)
        return values

    def keep(self, group: JsonObject, values: JsonObject) -> JsonObject:
        """Keep a rule of a group."""
        now = timestamp()
        defaults = dict.fromkeys(self.fields)
        row = {"id": new_id(), **defaults, **values, "security_group_id": group["id"]}
        row |= {"project_id": group["project_id"], "tenant_id": group["project_id"]}
        row |= {"normalized_cidr": _normalized(row["remote_ip_prefix"]), "belongs_to_default_sg": False}
        row["belongs_to_default_sg"] = group["name"] == DEFAULT
        row |= {"created_at": now, "updated_at": now, "revision_number": 0}
        return self.table.save(row)

    def _check_words(self, values: JsonObject) -> None:
        for name, allowed in (("direction", ("ingress", "egress")), ("ethertype", ("IPv4", "IPv6"))):
            if values[name] not in allowed:
                raise bad_request(f"Invalid input for {name}. Reason: {values[name]} is not in valid_values.")
        protocol = values["protocol"]
        if protocol is not None:
            values["protocol"] = protocol = str(protocol).lower()
            if protocol not in PROTOCOLS and not (protocol.isdigit() and int(protocol) <= 255):
                raise ApiError(
                    400,
                    f"Security group rule protocol {protocol} not supported. Only protocol values (None, "
                    f"{', '.join(repr(name) for name in PROTOCOLS)}) and integer representations [0 to 255]"
                    " are"
                    " supported.",
                    "SecurityGroupRuleInvalidProtocol",
                )
        for name in ("port_range_min", "port_range_max"):
            if values[name] is not None:
                values[name] = int(values[name])

    def _check(self, values: JsonObject) -> None:
        remotes = [values["remote_ip_prefix"], values["remote_group_id"], values["remote_address_group_id"]]
        if sum(remote is not None for remote in remotes) > 1:
            raise ApiError(
                400,
                "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.",
                "SecurityGroupMultipleRemoteEntites",
            )
        if values["remote_group_id"] is not None:
            self.family("security_group").found(values["remote_group_id"])
        low, high = values["port_range_min"], values["port_range_max"]
        if values["protocol"] is None and (low is not None or high is not None):
            text = "Must also specify protocol if port range is given."
            raise ApiError(400, text, "SecurityGroupProtocolRequiredWithPorts")
        has_range = low is not None or high is not None
        ordered = low is not None and high is not None and low <= high
        if values["protocol"] in WITH_PORTS and has_range and not ordered:
            text = "For TCP/UDP protocols, port_range_min must be <= port_range_max"
            raise ApiError(400, text, "SecurityGroupInvalidPortRange")
        prefix = values["remote_ip_prefix"]
        if prefix is not None:
            self._check_prefix(prefix, values["ethertype"])

    def _check_prefix(self, prefix: str, ethertype: str) -> None:
        try:
            version = ipaddress.ip_network(prefix, strict=False).version
        except ValueError as error:
            text = f"Invalid CIDR {prefix} given as IP prefix."
            raise ApiError(400, text, "InvalidCIDR") from error
        if f"IPv{version}" != ethertype:
            text = f"Conflicting value ethertype {ethertype} for CIDR {prefix}"
            raise ApiError(400, text, "SecurityGroupRuleParameterConflict")


def _normalized(prefix: str | None) -> str | None:
    return None if prefix is None else str(ipaddress.ip_network(prefix, strict=False))


def _default_exists() -> ApiError:
    return ApiError(409, "Default security group already exists.", "SecurityGroupDefaultAlreadyExists")
