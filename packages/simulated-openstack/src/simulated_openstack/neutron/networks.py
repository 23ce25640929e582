"""Networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Families, Family
from simulated_openstack.neutron.fields import Field, invalid_input
from simulated_openstack.neutron.security_groups import SecurityGroups
from simulated_openstack.neutron.segments import Segments
from simulated_openstack.neutron.sharing import RbacPolicies
from simulated_openstack.service import Call, Service

PHYSICAL: Final = frozenset({"physnet1", "ext"})
MTU: Final = {"flat": 1500, "vlan": 1500, "vxlan": 1450, "geneve": 1442}
AUTOMATIC_OWNERS: Final = frozenset({"network:dhcp", "network:distributed"})  # removed with the network


class Networks(Family):
    """Networks; a caller also sees shared and external networks of other projects."""

    singular = "network"
    collection = "networks"
    label = "Network"
    not_found_kind = "NetworkNotFound"
    quota = "network"
    admin_fields: ClassVar[frozenset[str]] = frozenset(
        {"provider:network_type", "provider:physical_network", "provider:segmentation_id"}
    )
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(),
        "admin_state_up": Field(True, "boolean"),
        "shared": Field(False, "boolean", admin=True),
        "mtu": Field(0, "integer"),
        "port_security_enabled": Field(True, "boolean"),
        "qos_policy_id": Field(None, "uuid"),
        "dns_domain": Field(),
        "router:external": Field(False, "boolean", admin=True),
        "is_default": Field(False, "boolean"),
        "provider:network_type": Field(None, "any", admin=True),
        "provider:physical_network": Field(None, "any", admin=True),
        "provider:segmentation_id": Field(None, "any", admin=True),
        "segments": Field(None, "any", put=False, admin=True),
        "vlan_transparent": Field(None, "any", put=False),
        "availability_zone_hints": Field(list, "any", put=False),
        "description": Field(),
    }

    def __init__(
        self,
        neutron: Service,
        families: Families,
        policies: RbacPolicies,
        segments: Segments,
        groups: SecurityGroups,
    ) -> None:
        """Add the routes."""
        super().__init__(neutron, families)
        self._policies, self._segments, self._groups = policies, segments, groups
        self.on_remove: list[Callable[[JsonObject], None]] = []  # called before a network is removed
        self.neutron.router.add("GET", "/v2.0/networks/{id_}/dhcp-agents", self.dhcp_agents)

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new network on a segment."""
        for name in ("segments", "vlan_transparent"):
            values.pop(name, None)
        kind = values["provider:network_type"] or "vxlan"
        if kind not in {"flat", "vlan", "vxlan", "geneve", "local"}:
            raise invalid_input(f"network_type value '{kind}' not supported.")
        self._check_segment(values, kind)
        if kind != "flat" and values["provider:segmentation_id"] is None:
            values["provider:segmentation_id"] = 1 + (len(self.table) * 37) % 9_999
        values["provider:network_type"] = kind
        values["mtu"] = values["mtu"] or MTU.get(kind, 1500)
        if values["qos_policy_id"]:
            self.family("policy").found(values["qos_policy_id"])
        row = self.save_new(call, {"status": "ACTIVE", **values, "revision_number": 1})
        self._segments.add_first(row)
        self._groups.default(row["project_id"])
        return row

    def _check_segment(self, values: JsonObject, kind: str) -> None:
        """Refuse a VLAN that is in use, and unknown physical networks."""
        if kind != "vlan":
            return
        physical, number = values["provider:physical_network"], values["provider:segmentation_id"]
        if physical not in PHYSICAL:
            raise invalid_input(f"physical_network '{physical}' unknown for VLAN provider network.")
        used = [(row["physical_network"], row["segmentation_id"]) for row in self.family("segment").table]
        if number is not None and (physical, number) in used:
            text = (
                f"Unable to create the network. The VLAN {number} on physical network {physical} is in use."
            )
            raise ApiError(409, text, "VlanIdInUse")

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change; an external network with gateways stays external."""
        if values.get("qos_policy_id"):
            self.family("policy").found(values["qos_policy_id"])
        if values.get("router:external") is False and row["router:external"]:
            owners = {
                port["device_owner"] for port in self.family("port").table.where("network_id", row["id"])
            }
            if owners & {"network:router_gateway", "network:floatingip"}:
                raise ApiError(
                    409,
                    f"External network {row['id']} cannot be updated to be made non-external, since it has"
                    " existing"
                    " gateway ports.",
                    "ExternalNetworkInUse",
                )
        super().change(call, row, values)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a network without ports, with its subnets."""
        ports = self.family("port").table.where("network_id", row["id"])
        blocking = [port["id"] for port in ports if port["device_owner"] not in AUTOMATIC_OWNERS]
        if blocking:
            raise ApiError(
                409,
                f"Unable to complete operation on network {row['id']}. There are one or more ports still in"
                " use on"
                f" the network, id for these ports is: {','.join(blocking)}.",
                "NetworkInUse",
            )
        for act in self.on_remove:
            act(row)
        for subnet in self.family("subnet").table.where("network_id", row["id"]):
            self.family("subnet").table.remove(subnet["id"])
        for segment in self.family("segment").table.where("network_id", row["id"]):
            self.family("segment").table.remove(segment["id"])
        for policy in self.family("rbac_policy").table.where("object_id", row["id"]):
            self.family("rbac_policy").table.remove(policy["id"])
        super().remove(call, row)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a network with its subnets; `is_default` is shown for external networks."""
        view = super().view(row)
        if not row["router:external"]:
            view.pop("is_default", None)
        subnets = sorted(
            subnet["id"] for subnet in self.family("subnet").table.where("network_id", row["id"])
        )
        return {
            **view,
            "shared": self.is_shared(row),
            "subnets": subnets,
            "availability_zones": [],
            "ipv4_address_scope": None,
            "ipv6_address_scope": None,
            "l2_adjacency": True,
        }

    def created_view(self, row: JsonObject) -> JsonObject:
        """Return a new network: always with `is_default`."""
        return {**self.view(row), "is_default": row["is_default"]}

    def is_shared(self, row: JsonObject) -> bool:
        """Whether all projects may use a network."""
        return bool(row["shared"]) or self._policies.allows(row["id"], "access_as_shared", None)

    def is_visible(self, call: Call, row: JsonObject) -> bool:
        """Whether the caller may use a network."""
        project = call.caller.project_id
        policies = self._policies
        return (
            super().is_visible(call, row)
            or row["router:external"]
            or self.is_shared(row)
            or policies.allows(row["id"], "access_as_shared", project)
            or policies.allows(row["id"], "access_as_external", project)
        )

    def dhcp_agents(self, call: Call, id_: str) -> Response:
        """List the DHCP agents of a network: there are none."""
        self.visible(call, id_)
        return Response(200, {"agents": []})
