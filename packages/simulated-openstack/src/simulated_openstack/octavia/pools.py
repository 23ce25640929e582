"""Pools, their members and their health monitors."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import ClassVar, Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.octavia.family import as_parent
from simulated_openstack.octavia.fields import (
    ADMIN_STATE_UP,
    DESCRIPTION,
    NAME,
    PORT,
    REQUIRED,
    ROOT,
    TAGS,
    Field,
    invalid,
    validation_failure,
)
from simulated_openstack.octavia.provisioning import CHANGING, CREATING, DELETING, Part, Provisioning
from simulated_openstack.octavia.quotas import Quotas
from simulated_openstack.service import Call, Service

PROTOCOLS: Final = ("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "PROXYV2", "UDP", "SCTP")
ALGORITHMS: Final = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")
NO_COOKIE: Final = (
    'Field "cookie_name" must be specified when using the "APP_COOKIE" session persistence type.'
)
COOKIE: Final = 'Field "cookie_name" can only be specified with session persistence of type "APP_COOKIE".'
HTTP: Final = {"http_method": "GET", "url_path": "/", "expected_codes": "200"}


class Pools(Part):
    """Groups of members."""

    singular = "pool"
    plural = "pools"
    path = "pools"
    argument = "pool_"
    label = "Pool"
    quota = "pool"
    fields: ClassVar[dict[str, Field]] = {
        "name": NAME,
        "description": DESCRIPTION,
        "admin_state_up": ADMIN_STATE_UP,
        "loadbalancer_id": Field(put=False),
        "listener_id": Field(put=False),
        "protocol": Field(REQUIRED, put=False, values=PROTOCOLS),
        "lb_algorithm": Field(REQUIRED, values=ALGORITHMS),
        "session_persistence": Field(None, "map"),
        "tls_enabled": Field(False, "boolean"),
        **dict.fromkeys(("tls_container_ref", "ca_tls_container_ref", "crl_container_ref"), Field()),
        "tls_ciphers": Field(),
        **dict.fromkeys(("tls_versions", "alpn_protocols"), Field(None, "list")),
        "tags": TAGS,
    }

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Begin to create a pool, of a listener or of a load balancer."""
        del parents
        listener_id, balancer_id = values.pop("listener_id"), values.pop("loadbalancer_id")
        listener = self.part("listener").visible(call, listener_id) if listener_id else None
        if listener is not None:
            if listener["default_pool_id"]:
                raise ApiError(409, "This listener already has a default pool")
            balancer_id = listener["_load_balancer"]
        if not balancer_id:
            raise validation_failure("Must provide at least one of: loadbalancer_id, listener_id")
        balancer = self.part("loadbalancer").visible(call, balancer_id)
        row = self.start_new(balancer, {**values, **_persistence(values)})
        if listener is not None:
            changed = {"default_pool_id": row["id"], "provisioning_status": CHANGING}
            self.part("listener").touch(listener, changed)
        return row

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Begin a change."""
        super().change(call, row, {**values, **_persistence(values)})

    def remove(self, call: Call, row: JsonObject) -> None:
        """Begin the deletion of a pool that no policy uses."""
        for policy in self.rows("l7policy").where("_load_balancer", row["_load_balancer"]):
            if policy["redirect_pool_id"] == row["id"]:
                raise ApiError(409, f"Pool {row['id']} is in use by L7 policy {policy['id']}")
        super().remove(call, row)

    def discard(self, row: JsonObject) -> None:
        """Remove a pool with its parts; it is no longer the default pool of a listener."""
        for listener in self.listeners_of(row):
            self.part("listener").touch(listener, {"default_pool_id": None})
        for family in (self.part("member"), self.part("healthmonitor")):
            for part in family.table.where("_pool", row["id"]):
                family.discard(part)
        super().discard(row)

    def listeners_of(self, row: JsonObject) -> list[JsonObject]:
        """Return the listeners with a default pool."""
        listeners = self.rows("listener").where("_load_balancer", row["_load_balancer"])
        return [listener for listener in listeners if listener["default_pool_id"] == row["id"]]

    def view(self, row: JsonObject) -> JsonObject:
        """Return a pool with its parts."""
        monitors = self.rows("healthmonitor").where("_pool", row["id"])
        return {
            **super().view(row),
            "loadbalancers": [{"id": row["_load_balancer"]}],
            "listeners": [{"id": listener["id"]} for listener in self.listeners_of(row)],
            "members": [{"id": member["id"]} for member in self.rows("member").where("_pool", row["id"])],
            **({"healthmonitor_id": monitors[0]["id"]} if monitors else {}),
        }


class Members(Part):
    """Servers of pools."""

    singular = "member"
    plural = "members"
    path = "pools/{pool_id}/members"
    argument = "member_"
    label = "Member"
    quota = "member"
    indexes: ClassVar[tuple[str, ...]] = ("_load_balancer", "_pool")
    fields: ClassVar[dict[str, Field]] = {
        "name": NAME,
        "admin_state_up": ADMIN_STATE_UP,
        "address": Field(REQUIRED, put=False),
        "protocol_port": PORT,
        "subnet_id": Field(put=False),
        "weight": Field(1, "integer", low=0, high=256),
        "backup": Field(False, "boolean"),
        "monitor_address": Field(),
        "monitor_port": Field(None, "integer", low=1, high=65_535),
        "tags": TAGS,
    }

    def __init__(
        self, octavia: Service, quotas: Quotas, provisioning: Provisioning, neutron: Neutron
    ) -> None:
        """Add the routes."""
        super().__init__(octavia, quotas, provisioning)
        self._neutron = neutron
        octavia.router.add("PUT", f"{ROOT}/{self.path}", self.put_all)

    def put_all(self, call: Call, pool_id: str) -> Response:
        """Replace all members of a pool, as a single change."""
        pool = self._pool(call, pool_id)
        given = (call.body or {}).get(self.plural) or []
        wanted = {
            (values["address"], values["protocol_port"]): values
            for values in (self.checked_values(one, new=True) for one in given)
        }
        self.require_mutable(pool["_load_balancer"])
        balancer = self.part("loadbalancer").found(pool["_load_balancer"])
        for row in self.of_pool(pool_id):
            values = wanted.pop((row["address"], row["protocol_port"]), None)
            changed = {"provisioning_status": DELETING} if values is None else values
            self.touch(row, changed)
        for values in wanted.values():
            status = {"provisioning_status": CREATING, "operating_status": "OFFLINE"}
            parents = {"_pool": pool_id, "_load_balancer": balancer["id"]}
            self.save_new(balancer["project_id"], {**values, **status, **parents})
        self.part("pool").begin(pool, CHANGING)
        return Response(202)

    def of_pool(self, pool_id: str) -> list[JsonObject]:
        """Return the members of a pool."""
        return self.table.where("_pool", pool_id)

    def candidates(self, call: Call, **parents: str) -> Iterable[JsonObject]:
        """Return the members of a pool."""
        return self.of_pool(self._pool(call, parents["pool_id"])["id"])

    def visible(self, call: Call, id_: str, **parents: str) -> JsonObject:
        """Return a member of a pool."""
        self._pool(call, parents["pool_id"])
        return super().visible(call, id_)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a member with the kind of its port."""
        return {**super().view(row), "vnic_type": "normal"}

    def _pool(self, call: Call, pool_id: str) -> JsonObject:
        """Return the pool of a path."""
        with as_parent():
            pool: JsonObject = self.part("pool").visible(call, pool_id)
        return pool

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Begin to create a member."""
        pool = self._pool(call, parents["pool_id"])
        address, port = values["address"], values["protocol_port"]
        _require_address(address)
        if values["subnet_id"] and self._neutron.subnets.table.get(values["subnet_id"]) is None:
            raise ApiError(400, f"Subnet {values['subnet_id']} not found.")
        if any((row["address"], row["protocol_port"]) == (address, port) for row in self.of_pool(pool["id"])):
            text = f"using ip {address} on protocol_port {port}"
            raise ApiError(409, f"Another member on this pool is already {text}")
        balancer = self.part("loadbalancer").found(pool["_load_balancer"])
        row = self.start_new(balancer, {**values, "_pool": pool["id"]})
        self.part("pool").touch(pool, {"provisioning_status": CHANGING})
        return row


class Monitors(Part):
    """Health monitors, at most one of each pool."""

    singular = "healthmonitor"
    plural = "healthmonitors"
    path = "healthmonitors"
    argument = "health_monitor_"
    label = "Health Monitor"
    quota = "healthmonitor"
    indexes: ClassVar[tuple[str, ...]] = ("_load_balancer", "_pool")
    fields: ClassVar[dict[str, Field]] = {
        "name": NAME,
        "admin_state_up": ADMIN_STATE_UP,
        "pool_id": Field(REQUIRED, put=False),
        "type": Field(
            REQUIRED, put=False, values=("PING", "TCP", "HTTP", "HTTPS", "TLS-HELLO", "UDP-CONNECT", "SCTP")
        ),
        "delay": Field(REQUIRED, "integer", low=0),
        "timeout": Field(REQUIRED, "integer", low=0),
        "max_retries": Field(REQUIRED, "integer", low=1, high=10),
        "max_retries_down": Field(3, "integer", low=1, high=10),
        "http_method": Field(),
        "url_path": Field(),
        "expected_codes": Field(),
        "http_version": Field(None, "any"),
        "domain_name": Field(),
        "tags": TAGS,
    }

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Begin to create a health monitor."""
        del parents
        pool = self.part("pool").visible(call, values.pop("pool_id"))
        if self.table.where("_pool", pool["id"]):
            raise ApiError(409, "This pool already has a health monitor")
        balancer = self.part("loadbalancer").found(pool["_load_balancer"])
        return self.start_new(balancer, {**_with_http(values), "_pool": pool["id"]})

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Begin a change."""
        super().change(call, row, _with_http({**row, **values}))

    def view(self, row: JsonObject) -> JsonObject:
        """Return a health monitor with its pool."""
        return {**super().view(row), "pools": [{"id": row["_pool"]}]}


def _persistence(values: JsonObject) -> JsonObject:
    """Return the checked session persistence, if it is given."""
    given = values.get("session_persistence")
    if not given:
        return {}
    cookie = given.get("cookie_name")
    if given.get("type") == "APP_COOKIE" and not cookie:
        raise validation_failure(NO_COOKIE)
    if given.get("type") != "APP_COOKIE" and cookie:
        raise validation_failure(COOKIE)
    empty = dict.fromkeys(("type", "cookie_name", "persistence_timeout", "persistence_granularity"))
    return {"session_persistence": {**empty, **given}}


def _with_http(values: JsonObject) -> JsonObject:
    """Return values with the defaults of HTTP checks."""
    if values["type"] not in ("HTTP", "HTTPS"):
        return values
    return {**values, **{name: values[name] or default for name, default in HTTP.items()}}


def _require_address(address: str) -> None:
    try:
        ipaddress.ip_address(address)
    except ValueError as error:
        raise invalid("address", address, "Value should be IPv4 or IPv6 format") from error
