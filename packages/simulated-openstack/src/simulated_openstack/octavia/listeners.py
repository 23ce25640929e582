"""Listeners, and the policies and rules for their requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.octavia.family import as_parent
from simulated_openstack.octavia.fields import (
    ADMIN_STATE_UP,
    DESCRIPTION,
    NAME,
    PORT,
    REQUIRED,
    TAGS,
    Field,
    validation_failure,
)
from simulated_openstack.octavia.provisioning import CHANGING, Part
from simulated_openstack.service import Call

PROTOCOLS: Final = ("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "UDP", "SCTP", "PROMETHEUS")
DATAGRAMS: Final = ("UDP", "SCTP")
NO_KEY: Final = "Error parsing L7Rule: Invalid L7 Rule: L7 rule type requires a key"
LAST: Final = 2_147_483_647
TIMEOUTS: Final = (50_000, 5_000, 50_000, 0)


class Listeners(Part):
    """Ports of load balancers that accept connections."""

    singular = "listener"
    plural = "listeners"
    path = "listeners"
    argument = "listener_"
    label = "Listener"
    quota = "listener"
    fields: ClassVar[dict[str, Field]] = {
        "name": NAME,
        "description": DESCRIPTION,
        "admin_state_up": ADMIN_STATE_UP,
        "loadbalancer_id": Field(REQUIRED, put=False),
        "protocol": Field(REQUIRED, put=False, values=PROTOCOLS),
        "protocol_port": PORT,
        "connection_limit": Field(-1, "integer", low=-1),
        "default_pool_id": Field(),
        "default_tls_container_ref": Field(),
        "sni_container_refs": Field(list, "list"),
        "insert_headers": Field(dict, "map"),
        "allowed_cidrs": Field(None, "list"),
        "client_authentication": Field("NONE"),
        **dict.fromkeys(("client_ca_tls_container_ref", "client_crl_container_ref", "tls_ciphers"), Field()),
        **dict.fromkeys(("tls_versions", "alpn_protocols"), Field(None, "list")),
        "hsts_max_age": Field(None, "integer"),
        "hsts_include_subdomains": Field(False, "boolean"),
        "hsts_preload": Field(False, "boolean"),
        "timeout_client_data": Field(50_000, "integer"),
        "timeout_member_connect": Field(5_000, "integer"),
        "timeout_member_data": Field(50_000, "integer"),
        "timeout_tcp_inspect": Field(0, "integer"),
        "tags": TAGS,
    }

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Begin to create a listener."""
        del parents
        balancer = self.part("loadbalancer").visible(call, values.pop("loadbalancer_id"))
        self._check(values)
        datagrams = values["protocol"] in DATAGRAMS
        for row in self.table.where("_load_balancer", balancer["id"]):
            same_port = row["protocol_port"] == values["protocol_port"]
            if same_port and (row["protocol"] in DATAGRAMS) == datagrams:
                text = f"using protocol {values['protocol']} and protocol_port {values['protocol_port']}"
                raise ApiError(409, f"Another Listener on this Load Balancer is already {text}")
        return self.start_new(balancer, values)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Begin a change."""
        self._check({**row, **values})
        super().change(call, row, values)

    def discard(self, row: JsonObject) -> None:
        """Remove a listener with its policies."""
        for policy in in_order(self.rows("l7policy").where("listener_id", row["id"])):
            self.part("l7policy").discard(policy)
        super().discard(row)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a listener with its policies."""
        policies = [
            {"id": policy["id"]} for policy in in_order(self.rows("l7policy").where("listener_id", row["id"]))
        ]
        return {
            **super().view(row),
            "loadbalancers": [{"id": row["_load_balancer"]}],
            "l7policies": policies,
        }

    def _check(self, values: JsonObject) -> None:
        if values["protocol"] == "TERMINATED_HTTPS" and not (
            values["default_tls_container_ref"] or values["sni_container_refs"]
        ):
            raise validation_failure(
                "An SNI or default certificate container reference must be provided for TERMINATED_HTTPS"
                " protocol listeners."
            )
        if values["default_pool_id"]:
            self.part("pool").found(values["default_pool_id"])


class Policies(Part):
    """What is done with requests, in the order of the positions."""

    singular = "l7policy"
    plural = "l7policies"
    path = "l7policies"
    argument = "l7policy_"
    label = "L7 Policy"
    quota = "l7policy"
    indexes: ClassVar[tuple[str, ...]] = ("_load_balancer", "listener_id")
    fields: ClassVar[dict[str, Field]] = {
        "name": NAME,
        "description": DESCRIPTION,
        "admin_state_up": ADMIN_STATE_UP,
        "listener_id": Field(REQUIRED, put=False),
        "action": Field(
            REQUIRED, values=("REJECT", "REDIRECT_TO_POOL", "REDIRECT_TO_URL", "REDIRECT_PREFIX")
        ),
        "redirect_pool_id": Field(),
        "redirect_url": Field(),
        "redirect_prefix": Field(),
        "redirect_http_code": Field(None, "integer"),
        "position": Field(LAST, "integer", low=1, high=LAST),
        "tags": TAGS,
    }

    def of_listener(self, listener_id: str) -> list[JsonObject]:
        """Return the policies of a listener in their order."""
        return in_order(self.table.where("listener_id", listener_id))

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Begin to create a policy."""
        del parents
        listener = self.part("listener").visible(call, values["listener_id"])
        balancer = self.part("loadbalancer").found(listener["_load_balancer"])
        row = self.start_new(balancer, self._checked(values))
        self._number(row)
        self.part("listener").touch(listener, {"provisioning_status": CHANGING})
        return row

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Begin a change."""
        super().change(call, row, self._checked({**row, **values}))
        if "position" in values:
            self._number(row)

    def discard(self, row: JsonObject) -> None:
        """Remove a policy with its rules."""
        for rule in self.rows("rule").where("_policy", row["id"]):
            self.part("rule").discard(rule)
        super().discard(row)
        self._renumber(self.of_listener(row["listener_id"]))

    def view(self, row: JsonObject) -> JsonObject:
        """Return a policy with its rules."""
        rules = [{"id": rule["id"]} for rule in self.rows("rule").where("_policy", row["id"])]
        return {**super().view(row), "rules": rules}

    def _number(self, row: JsonObject) -> None:
        """Insert a policy at its position."""
        others = [other for other in self.of_listener(row["listener_id"]) if other["id"] != row["id"]]
        others.insert(row["position"] - 1, row)
        self._renumber(others)

    def _renumber(self, policies: list[JsonObject]) -> None:
        for position, policy in enumerate(policies, 1):
            policy["position"] = position
            self.table.save(policy)

    def _checked(self, values: JsonObject) -> JsonObject:
        """Return values that fit the action."""
        action = values["action"]
        targets = {
            "REDIRECT_TO_POOL": "redirect_pool_id",
            "REDIRECT_TO_URL": "redirect_url",
            "REDIRECT_PREFIX": "redirect_prefix",
        }
        own = targets.get(action)
        if own and not values[own]:
            raise ApiError(400, f"Invalid L7 Policy arguments: {own} must not be None")
        if own == "redirect_pool_id":
            self.part("pool").found(values[own])
        if own in ("redirect_url", "redirect_prefix") and not values["redirect_http_code"]:
            values["redirect_http_code"] = 302
        return {**values, **{name: None for name in targets.values() if name != own}}


class Rules(Part):
    """Conditions of policies."""

    singular = "rule"
    plural = "rules"
    path = "l7policies/{policy_id}/rules"
    argument = "rule_"
    label = "L7 Rule"
    quota = "l7rule"
    indexes: ClassVar[tuple[str, ...]] = ("_load_balancer", "_policy")
    fields: ClassVar[dict[str, Field]] = {
        "admin_state_up": ADMIN_STATE_UP,
        "type": Field(REQUIRED, values=("HOST_NAME", "PATH", "FILE_TYPE", "HEADER", "COOKIE")),
        "compare_type": Field(REQUIRED, values=("REGEX", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "EQUAL_TO")),
        "key": Field(),
        "value": Field(REQUIRED),
        "invert": Field(False, "boolean"),
        "tags": TAGS,
    }

    def candidates(self, call: Call, **parents: str) -> Iterable[JsonObject]:
        """Return the rules of a policy."""
        return self.table.where("_policy", self._policy(call, parents["policy_id"])["id"])

    def visible(self, call: Call, id_: str, **parents: str) -> JsonObject:
        """Return a rule of a policy."""
        self._policy(call, parents["policy_id"])
        return super().visible(call, id_)

    def _policy(self, call: Call, policy_id: str) -> JsonObject:
        """Return the policy of a path."""
        with as_parent():
            policy: JsonObject = self.part("l7policy").visible(call, policy_id)
        return policy

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Begin to create a rule."""
        policy = self._policy(call, parents["policy_id"])
        if values["type"] in ("HEADER", "COOKIE") and not values["key"]:
            raise ApiError(400, NO_KEY)
        balancer = self.part("loadbalancer").found(policy["_load_balancer"])
        return self.start_new(balancer, {**values, "_policy": policy["id"]})


def in_order(policies: Iterable[JsonObject]) -> list[JsonObject]:
    """Return policies in the order of their positions."""
    return sorted(policies, key=lambda row: int(row["position"]))
