"""Ports and their addresses."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Families, Family
from simulated_openstack.neutron.fields import REQUIRED, Field, invalid_input
from simulated_openstack.neutron.networks import Networks
from simulated_openstack.neutron.qos import QosPolicies
from simulated_openstack.neutron.security_groups import SecurityGroups
from simulated_openstack.neutron.subnets import Subnets
from simulated_openstack.service import Call, Service, new_id, timestamp

UNSET: Final = "\0unset"
SERVICE_OWNERS: Final = frozenset(
    {
        "network:router_interface",
        "network:router_gateway",
        "network:floatingip",
        "network:ha_router_replicated_interface",
    }
)
MAC_PREFIX: Final = "fa:16:3e"


class Ports(Family):
    """Ports."""

    singular = "port"
    collection = "ports"
    label = "Port"
    not_found_kind = "PortNotFound"
    quota = "port"
    admin_fields: ClassVar[frozenset[str]] = frozenset(
        {"binding:host_id", "binding:profile", "binding:vif_details", "binding:vif_type", "resource_request"}
    )
    indexes: ClassVar[tuple[str, ...]] = ("device_id", "network_id")
    extra_filters: ClassVar[tuple[str, ...]] = ("binding:vif_type",)
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(),
        "network_id": Field(REQUIRED, "uuid", put=False),
        "mac_address": Field(None, "mac"),
        "admin_state_up": Field(True, "boolean"),
        "device_id": Field(),
        "device_owner": Field(),
        "fixed_ips": Field(UNSET, "any"),
        "port_security_enabled": Field(None, "boolean"),
        "qos_policy_id": Field(None, "uuid"),
        "security_groups": Field(UNSET, "any"),
        "binding:vnic_type": Field("normal", "any"),
        "binding:profile": Field(dict, "any"),
        "binding:host_id": Field("", "any"),
        "binding:vif_type": Field("unbound", "any", post=False, put=False),
        "binding:vif_details": Field(dict, "any", post=False, put=False),
        "allowed_address_pairs": Field(list, "any"),
        "extra_dhcp_opts": Field(list, "any"),
        "description": Field(),
        "dns_name": Field("", "any"),
        "tags": Field(None, "any", put=False),  # accepted and ignored, as by Neutron
        "propagate_uplink_status": Field(None, "any"),
        "numa_affinity_policy": Field(None, "any"),
        "ip_allocation": Field("immediate", "any", post=False, put=False),
    }

    def __init__(
        self,
        neutron: Service,
        families: Families,
        networks: Networks,
        subnets: Subnets,
        policies: QosPolicies,
        groups: SecurityGroups,
    ) -> None:
        """Add the routes, and find the used addresses."""
        super().__init__(neutron, families)
        self.addresses, self._policies, self._groups = subnets.addresses, policies, groups
        # Called before a port is removed by a request, which they may refuse.
        self.on_remove: list[Callable[[JsonObject], None]] = []
        # Called with the id and the fixed addresses of a port after a change.
        self.on_addresses: list[Callable[[str, list[JsonObject]], None]] = []
        networks.on_remove.append(self._discard_of)
        self._macs: set[tuple[str, str]] = set()
        for row in self.table:
            self._remember(row)

    def of_device(self, device_id: str) -> list[JsonObject]:
        """Return the ports of a server or router."""
        return self.table.where("device_id", device_id)

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new port on a network that the caller may use."""
        network = self.family("network").visible(call, values["network_id"])
        values = {k: v for k, v in values.items() if k not in {"tags", "numa_affinity_policy"}}
        project = values.get("project_id") or values.get("tenant_id") or call.caller.project_id
        return self.add(network, str(project), values)

    def add(self, network: JsonObject, project: str, given: JsonObject) -> JsonObject:
        """Keep a new port for a project; `given` may leave fields out."""
        defaults = {
            name: field.default() if callable(field.default) else field.default
            for name, field in self.fields.items()
            if name not in {"tags", "numa_affinity_policy", "propagate_uplink_status"}
        }
        row = {**defaults, **given, "network_id": network["id"], "project_id": project, "tenant_id": project}
        if row.get("propagate_uplink_status") is None:
            row.pop("propagate_uplink_status", None)
        self.quotas.require(self.quota, project)
        if row["port_security_enabled"] is None:
            row["port_security_enabled"] = network["port_security_enabled"] and not _is_service(row)
        self._set_mac(row)
        self._set_groups(row, project)
        self._normalize(row)
        if row["qos_policy_id"]:
            self.family("policy").found(row["qos_policy_id"])
        row["id"] = given.get("id") or new_id()
        requested = None if row["fixed_ips"] == UNSET else row["fixed_ips"]
        row["fixed_ips"] = self.addresses.allocate(network, requested, row["mac_address"])
        row |= {"status": "DOWN", "dns_name": "", "ip_allocation": "immediate", "tags": []}
        now = timestamp()
        row |= {"created_at": now, "updated_at": now, "revision_number": 1}
        self._bind(row)
        self._remember(row)
        return self.table.save(row)

    def delete(self, call: Call, id_: str) -> Response:
        """Delete a port, a member only one without a server."""
        row = self.owned(call, id_, "delete")
        if not call.caller.is_admin and row["device_owner"].startswith("compute:"):
            self.disallow("delete")
        return super().delete(call, id_)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change to a port."""
        del call
        self.apply(row, values)

    def apply(self, row: JsonObject, values: JsonObject) -> JsonObject:
        """Apply a change, and keep it."""
        after = {**row, **values}
        network = self.family("network").found(row["network_id"])
        if values.get("mac_address") and values["mac_address"] != row["mac_address"]:
            self._require_free_mac(row["network_id"], values["mac_address"])
        if "security_groups" in values:
            self._set_groups(after, row["project_id"])
        elif not after["port_security_enabled"] and after["security_groups"]:
            raise _insecure()
        if values.get("qos_policy_id"):
            self.family("policy").found(values["qos_policy_id"])
        self._normalize(after)
        if "fixed_ips" in values:
            after["fixed_ips"] = self.addresses.allocate(
                network, values["fixed_ips"] or [], after["mac_address"], kept=row["fixed_ips"]
            )
            self._addresses_changed(row["id"], after["fixed_ips"])
        self._forget(row)
        row.update(after)
        row["dns_name"] = ""
        self._bind(row)
        self._remember(row)
        return self.table.save(row)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a port that no router uses."""
        del call
        if row["device_owner"] in SERVICE_OWNERS:
            raise ApiError(
                409,
                f"Port {row['id']} cannot be deleted directly via the port API: has device owner"
                f" {row['device_owner']}.",
                "ServicePortInUse",
            )
        for act in self.on_remove:
            act(row)
        self.discard(row)

    def discard(self, row: JsonObject) -> None:
        """Remove a port in any case; its floating addresses become free."""
        self._addresses_changed(row["id"], [])
        self._forget(row)
        self.table.remove(row["id"])

    def view(self, row: JsonObject) -> JsonObject:
        """Return a port with its names."""
        names = [
            {
                "ip_address": fixed["ip_address"],
                "hostname": (host := f"host-{fixed['ip_address'].replace('.', '-').replace(':', '-')}"),
                "fqdn": f"{host}.openstacklocal.",
            }
            for fixed in row["fixed_ips"]
        ]
        network = self.family("network").table.get(row["network_id"]) or {}
        view = {
            **super().view(row),
            "dns_assignment": names,
            "resource_request": self._policies.resource_request(row["qos_policy_id"]),
            "qos_network_policy_id": network.get("qos_policy_id"),
        }
        trunk = self._trunk(row["id"])
        return view if trunk is None else {**view, "trunk_details": trunk}

    def matches(self, row: JsonObject, name: str, values: list[str]) -> bool:
        """Whether a field has any of the values; fixed addresses are given as `ip_address=X`."""
        if name != "fixed_ips":
            return super().matches(row, name, values)
        wanted = [value.partition("=")[::2] for value in values]
        return any(all(str(fixed.get(key)) == text for key, text in wanted) for fixed in row["fixed_ips"])

    def _set_mac(self, row: JsonObject) -> None:
        if row["mac_address"]:
            self._require_free_mac(row["network_id"], row["mac_address"])
            return
        while not row["mac_address"] or (row["network_id"], row["mac_address"]) in self._macs:
            tail = ":".join(f"{random.randrange(256):02x}" for _ in range(3))  # noqa: S311 - no secret
            row["mac_address"] = f"{MAC_PREFIX}:{tail}"

    def _require_free_mac(self, network_id: str, mac: str) -> None:
        if (network_id, mac) in self._macs:
            raise ApiError(
                409,
                f"Unable to complete operation for network {network_id}. The mac address {mac} is in use.",
                "MacAddressInUse",
            )

    def _set_groups(self, row: JsonObject, project: str) -> None:
        """Check the security groups; by default that of the project."""
        groups = self._groups
        if row["security_groups"] == UNSET:
            secure = row["port_security_enabled"] and not _is_service(row)
            row["security_groups"] = [groups.default(project)["id"]] if secure else []
            return
        row["security_groups"] = list(row["security_groups"] or [])
        for id_ in row["security_groups"]:
            groups.found(id_)
        if row["security_groups"] and not row["port_security_enabled"]:
            raise _insecure()

    def _normalize(self, row: JsonObject) -> None:
        """Complete pairs of addresses and DHCP options."""
        for pair in row["allowed_address_pairs"] or ():
            try:
                ipaddress.ip_network(pair["ip_address"], strict=False)
            except (KeyError, ValueError) as error:
                raise invalid_input(f"'{pair.get('ip_address')}' is not a valid IP address.") from error
        row["allowed_address_pairs"] = [
            {"mac_address": pair.get("mac_address") or row["mac_address"], "ip_address": pair["ip_address"]}
            for pair in row["allowed_address_pairs"] or ()
        ]
        row["extra_dhcp_opts"] = [
            {"ip_version": 4, **option}
            for option in row["extra_dhcp_opts"] or ()
            if option.get("opt_value") is not None
        ]

    def _bind(self, row: JsonObject) -> None:
        """Bind a port that has a host; it becomes active."""
        if not row["binding:host_id"]:
            row |= {"binding:vif_type": "unbound", "binding:vif_details": {}, "status": "DOWN"}
        elif row["binding:vif_type"] in {"unbound", "binding_failed"}:
            if self.neutron.cloud.faults.action("bind", row["name"]).error:
                row |= {"binding:vif_type": "binding_failed", "binding:vif_details": {}}
                return
            details = {"port_filter": True, "bound_drivers": {"0": "osfake"}}
            row |= {"binding:vif_type": "ovs", "binding:vif_details": details, "status": "ACTIVE"}

    def _addresses_changed(self, port_id: str, fixed_ips: list[JsonObject]) -> None:
        for act in self.on_addresses:
            act(port_id, fixed_ips)

    def _discard_of(self, network: JsonObject) -> None:
        for port in self.table.where("network_id", network["id"]):
            self.discard(port)

    def _trunk(self, port_id: str) -> JsonObject | None:
        """Return the summary of the trunk whose parent is a port, or None."""
        for row in self.family("trunk").table.where("port_id", port_id):
            sub_ports = [
                {**sub, "mac_address": (self.table.get(sub["port_id"]) or {}).get("mac_address")}
                for sub in row["sub_ports"]
            ]
            return {"trunk_id": row["id"], "sub_ports": sub_ports}
        return None

    def _remember(self, row: JsonObject) -> None:
        self._macs.add((row["network_id"], row["mac_address"]))
        self.addresses.take(row["id"], row["fixed_ips"])

    def _forget(self, row: JsonObject) -> None:
        self._macs.discard((row["network_id"], row["mac_address"]))
        self.addresses.free(row["fixed_ips"])


def addresses_of(rows: Iterable[JsonObject]) -> list[str]:
    """Return all fixed addresses of ports."""
    return [fixed["ip_address"] for row in rows for fixed in row["fixed_ips"]]


def _is_service(row: JsonObject) -> bool:
    """Whether a port belongs to the network itself."""
    return str(row["device_owner"]).startswith("network:")


def _insecure() -> ApiError:
    return ApiError(
        400,
        "Port security must be enabled and port must have an IP address in order to use security groups.",
        "PortSecurityAndIPRequiredForSecurityGroups",
    )
