"""QoS policies and their rules."""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import NAMESPACE_OID, uuid5

from simulated_openstack.http import ApiError, Handler, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Families, Family
from simulated_openstack.neutron.fields import Field, bad_request
from simulated_openstack.service import Call, Service, new_id

RULES: Final[dict[str, JsonObject]] = {  # kind of rule -> defaults; None: required
    "bandwidth_limit_rule": {"max_kbps": None, "max_burst_kbps": 0, "direction": "egress"},
    "dscp_marking_rule": {"dscp_mark": None},
    "minimum_bandwidth_rule": {"min_kbps": None, "direction": "egress"},
    "minimum_packet_rate_rule": {"min_kpps": None, "direction": "egress"},
}


class QosPolicies(Family):
    """QoS policies; only an administrator makes them."""

    singular = "policy"
    collection = "policies"
    path = "qos/policies"
    label = "QoS policy"
    not_found_kind = "QosPolicyNotFound"
    admin_only = True
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(),
        "description": Field(),
        "shared": Field(False, "boolean"),
        "is_default": Field(False, "boolean"),
    }

    def __init__(self, neutron: Service, families: Families) -> None:
        """Add the routes."""
        super().__init__(neutron, families)
        neutron.router.add("GET", "/v2.0/qos/rule-types", self.rule_types)
        for kind in RULES:
            root = f"/v2.0/qos/policies/{{id_}}/{kind}s"
            neutron.router.add("GET", root, self._handler(kind, self.rules))
            neutron.router.add("POST", root, self._handler(kind, self.add_rule))
            neutron.router.add("GET", root + "/{rule_id}", self._handler(kind, self.rule))
            neutron.router.add("PUT", root + "/{rule_id}", self._handler(kind, self.change_rule))
            neutron.router.add("DELETE", root + "/{rule_id}", self._handler(kind, self.remove_rule))

    def rule_types(self, call: Call) -> Response:
        """List the kinds of rules."""
        del call
        return Response(200, {"rule_types": [{"type": kind.removesuffix("_rule")} for kind in RULES]})

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new policy without rules."""
        return self.save_new(call, {**values, "rules": []})

    def resource_request(self, policy_id: str | None) -> JsonObject | None:
        """Return the bandwidth that a port with a policy requests, None without a minimum."""
        row = self.table.get(policy_id) if policy_id else None
        minimums = [rule for rule in row["rules"] if rule["type"] == "minimum_bandwidth"] if row else []
        if not minimums:
            return None
        names = {"egress": "NET_BW_EGR_KILOBIT_PER_SEC", "ingress": "NET_BW_IGR_KILOBIT_PER_SEC"}
        group = str(uuid5(NAMESPACE_OID, policy_id or ""))
        required = ["CUSTOM_NETWORK_TUNNEL_PROVIDER", "CUSTOM_VNIC_TYPE_NORMAL"]
        resources = {names[rule["direction"]]: rule["min_kbps"] for rule in minimums}
        request = {"id": group, "required": required, "resources": resources}
        return {"request_groups": [request], "same_subtree": [group]}

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a policy that nothing uses."""
        for family, kind in ((self.family("network"), "Network"), (self.family("port"), "Port")):
            for user in family.table:
                if user.get("qos_policy_id") == row["id"]:
                    text = f"QoS Policy {row['id']} is used by {kind.lower()} {user['id']}."
                    raise ApiError(409, text, "QosPolicyInUse")
        super().remove(call, row)

    def is_visible(self, call: Call, row: JsonObject) -> bool:
        """Shared policies are visible to all."""
        return super().is_visible(call, row) or bool(row["shared"])

    def rules(self, call: Call, kind: str, id_: str) -> Response:
        """List the rules of a kind."""
        rules = [_shown(rule) for rule in self.visible(call, id_)["rules"] if rule["type"] == kind[:-5]]
        return Response(200, {f"{kind}s": rules})

    def add_rule(self, call: Call, kind: str, id_: str) -> Response:
        """Add a rule."""
        row = self.owned(call, id_, "update")
        given = dict((call.body or {}).get(kind) or {})
        rule = {**RULES[kind], **given}
        for name, value in rule.items():
            if value is None and name in RULES[kind]:
                raise bad_request(f"Failed to parse request. Required attribute '{name}' not specified")
        rule |= {"id": new_id(), "qos_policy_id": id_, "type": kind[:-5]}
        for other in row["rules"]:
            if all(other.get(name) == rule.get(name) for name in ("type", "direction")):
                text = (
                    f"Rule {rule['type']} conflicts with rule {other['id']} which already exists in QoS"
                    f" Policy {id_}."
                )
                raise ApiError(409, text, "QoSRulesConflict")
        row["rules"] = [*row["rules"], rule]
        self.touch(row)
        return Response(201, {kind: _shown(rule)})

    def rule(self, call: Call, kind: str, id_: str, rule_id: str) -> Response:
        """Show a rule."""
        return Response(200, {kind: _shown(self._rule(self.visible(call, id_), rule_id))})

    def change_rule(self, call: Call, kind: str, id_: str, rule_id: str) -> Response:
        """Change a rule."""
        row = self.owned(call, id_, "update")
        rule = self._rule(row, rule_id)
        rule.update((call.body or {}).get(kind) or {})
        self.touch(row)
        return Response(200, {kind: _shown(rule)})

    def remove_rule(self, call: Call, kind: str, id_: str, rule_id: str) -> Response:
        """Remove a rule."""
        del kind
        row = self.owned(call, id_, "update")
        rule = self._rule(row, rule_id)
        row["rules"] = [other for other in row["rules"] if other is not rule]
        self.touch(row)
        return Response(204)

    def _rule(self, row: JsonObject, rule_id: str) -> JsonObject:
        for rule in row["rules"]:
            if rule["id"] == rule_id:
                found: JsonObject = rule
                return found
        text = f"QoS rule {rule_id} for policy {row['id']} could not be found."
        raise ApiError(404, text, "QosRuleNotFound")

    @staticmethod
    def _handler(kind: str, handler: Handler) -> Handler:
        def handle(call: Call, **variables: str) -> Response:
            return handler(call, kind, **variables)

        return handle


def _shown(rule: JsonObject) -> JsonObject:
    return {name: value for name, value in rule.items() if name not in {"type", "qos_policy_id"}}
