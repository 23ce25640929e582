"""Sharing among projects, address scopes, and pools of subnets."""

from __future__ import annotations

import ipaddress
from typing import Any, ClassVar, Final

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Family
from simulated_openstack.neutron.fields import REQUIRED, Field, invalid_input
from simulated_openstack.service import Call

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

OBJECTS: Final = {
    "network": "network",
    "qos_policy": "policy",
    "security_group": "security_group",
    "address_scope": "address_scope",
    "subnetpool": "subnetpool",
}


class RbacPolicies(Family):
    """Permissions for other projects to use an object."""

    singular = "rbac_policy"
    collection = "rbac_policies"
    label = "RBAC policy"
    not_found = "{label} of type unknown with ID {id} not found"
    not_found_kind = "RbacPolicyNotFound"
    quota = "rbac_policy"
    taggable = False
    indexes: ClassVar[tuple[str, ...]] = ("object_id",)
    fields: ClassVar[dict[str, Field]] = {
        "object_type": Field(REQUIRED, "any", put=False),
        "object_id": Field(REQUIRED, "any", put=False),
        "action": Field(REQUIRED, "any", put=False),
        "target_tenant": Field(REQUIRED, "any"),
    }

    def allows(self, object_id: str, action: str, project: str | None) -> bool:
        """Whether an action is permitted to a project; None: to all projects."""
        rows = self.table.where("object_id", object_id)
        targets = {"*"} if project is None else {"*", project}
        return any(row["action"] == action and row["target_tenant"] in targets for row in rows)

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new permission for an object of the caller."""
        kind = values["object_type"]
        if kind not in OBJECTS:
            raise invalid_input(f"'{kind}' is not a valid RBAC object type.")
        family: Family = self.family(OBJECTS[kind])
        if family.table.get(values["object_id"]) is None:
            raise invalid_input(f"{family.label} {values['object_id']} could not be found.")
        family.owned(call, values["object_id"], "create_rbac_policy")
        for row in self.table.where("object_id", values["object_id"]):
            if (row["action"], row["target_tenant"]) == (values["action"], values["target_tenant"]):
                raise ApiError(409, "An RBAC policy already exists with those values.", "DuplicateRbacPolicy")
        row = self.save_new(call, values)
        for name in ("created_at", "updated_at", "revision_number"):
            row.pop(name)
        return row

    def touch(self, row: JsonObject) -> JsonObject:
        """Keep a changed permission."""
        return self.table.save(row)


class AddressScopes(Family):
    """Address scopes."""

    singular = "address_scope"
    collection = "address_scopes"
    label = "Address scope"
    not_found_kind = "AddressScopeNotFound"
    taggable = False
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(REQUIRED),
        "ip_version": Field(REQUIRED, "integer", put=False),
        "shared": Field(False, "boolean", admin=True),
    }

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new scope."""
        row = self.save_new(call, values)
        for name in ("created_at", "updated_at", "revision_number"):
            row.pop(name)
        return row

    def touch(self, row: JsonObject) -> JsonObject:
        """Keep a changed scope."""
        return self.table.save(row)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a scope without pools."""
        if any(pool["address_scope_id"] == row["id"] for pool in self.family("subnetpool").table):
            text = (
                f"Unable to complete operation on address scope {row['id']}. There are one or more subnet"
                " pools in use"
                " on the address scope."
            )
            raise ApiError(409, text, "AddressScopeInUse")
        super().remove(call, row)

    def is_visible(self, call: Call, row: JsonObject) -> bool:
        """Shared scopes are visible to all."""
        return super().is_visible(call, row) or bool(row["shared"])


class SubnetPools(Family):
    """Pools from which subnets get their ranges."""

    singular = "subnetpool"
    collection = "subnetpools"
    label = "Subnet pool"
    not_found_kind = "SubnetPoolNotFound"
    quota = "subnetpool"
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(REQUIRED),
        "prefixes": Field(REQUIRED, "any"),
        "default_prefixlen": Field(None, "any"),
        "min_prefixlen": Field(None, "any"),
        "max_prefixlen": Field(None, "any"),
        "default_quota": Field(None, "any"),
        "address_scope_id": Field(None, "any"),
        "shared": Field(False, "boolean", put=False, admin=True),
        "is_default": Field(False, "boolean", admin=True),
        "description": Field(),
    }

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new pool."""
        ranges = [ipaddress.ip_network(prefix) for prefix in values["prefixes"]]
        version = ranges[0].version if ranges else 4
        if values["address_scope_id"] is not None:
            self.family("address_scope").visible(call, values["address_scope_id"])
        smallest = str(values["min_prefixlen"] or (8 if version == 4 else 64))
        values["min_prefixlen"] = smallest  # text until the first change, as Neutron
        values["max_prefixlen"] = str(values["max_prefixlen"] or (32 if version == 4 else 128))
        values["default_prefixlen"] = str(values["default_prefixlen"] or smallest)
        return self.save_new(call, {**values, "ip_version": version, "revision_number": 0})

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change; adjacent prefixes are joined."""
        super().change(call, row, values)
        cidrs = [ipaddress.ip_network(prefix) for prefix in row["prefixes"]]
        row["prefixes"] = [str(cidr) for cidr in ipaddress.collapse_addresses(cidrs)]  # type: ignore[type-var]
        for name in ("min_prefixlen", "max_prefixlen", "default_prefixlen"):
            row[name] = int(row[name])

    def view_for(self, call: Call, view: JsonObject) -> JsonObject:
        """Return a pool; the answer to a change has no unset quota."""
        if call.request.method == "PUT" and view["default_quota"] is None:
            view.pop("default_quota")
        return super().view_for(call, view)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a pool without subnets."""
        if any(subnet["subnetpool_id"] == row["id"] for subnet in self.family("subnet").table):
            text = "Unable to delete subnet pool: Subnet pool has existing allocations."
            raise ApiError(400, text, "SubnetPoolDeleteError")
        super().remove(call, row)

    def allocate(self, pool_id: str, prefixlen: Any) -> Network:
        """Return the next free range of a pool."""
        row = self.found(pool_id)
        length = int(prefixlen or row["default_prefixlen"])
        if length < int(row["min_prefixlen"]):
            text = (
                f"Unable to allocate subnet with prefix length {length}, minimum allowed prefix is"
                f" {row['min_prefixlen']}."
            )
            raise ApiError(400, text, "MinPrefixSubnetAllocationError")
        used = [
            ipaddress.ip_network(subnet["cidr"])
            for subnet in self.family("subnet").table
            if subnet["subnetpool_id"] == pool_id
        ]
        for prefix in row["prefixes"]:
            whole = ipaddress.ip_network(prefix)
            for cidr in whole.subnets(new_prefix=length) if length >= whole.prefixlen else ():
                if not any(cidr.overlaps(other) for other in used):
                    return cidr
        text = f"Failed to allocate subnet: Insufficient prefix space to allocate subnet size /{length}."
        raise ApiError(500, text, "SubnetAllocationError")

    def is_visible(self, call: Call, row: JsonObject) -> bool:
        """Shared pools are visible to all."""
        return super().is_visible(call, row) or bool(row["shared"])
