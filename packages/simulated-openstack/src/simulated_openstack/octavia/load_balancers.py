"""Load balancers and their virtual addresses."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.octavia.fields import (
    ADMIN_STATE_UP,
    DESCRIPTION,
    NAME,
    TAGS,
    Field,
    validation_failure,
)
from simulated_openstack.octavia.provisioning import (
    ACTIVE,
    CHANGING,
    CREATING,
    DELETING,
    ERROR,
    Part,
    Provisioning,
)
from simulated_openstack.octavia.quotas import Quotas
from simulated_openstack.service import Call, Service, project_of

PROVIDERS = ("amphora", "octavia")
NO_VIP = "VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id."


class LoadBalancers(Part):
    """Load balancers. Each has a port on the subnet of its virtual address."""

    singular = "loadbalancer"
    plural = "loadbalancers"
    path = "loadbalancers"
    argument = "load_balancer"
    label = "Load Balancer"
    quota = "loadbalancer"
    fields: ClassVar[dict[str, Field]] = {
        "name": NAME,
        "description": DESCRIPTION,
        "admin_state_up": ADMIN_STATE_UP,
        "provider": Field(put=False),
        "flavor_id": Field(put=False),
        "availability_zone": Field(put=False),
        "vip_address": Field(put=False),
        "vip_subnet_id": Field(put=False),
        "vip_network_id": Field(put=False),
        "vip_port_id": Field(put=False),
        "vip_qos_policy_id": Field(),
        "vip_sg_ids": Field(list, "list"),
        "tags": TAGS,
    }

    def __init__(
        self, octavia: Service, quotas: Quotas, provisioning: Provisioning, neutron: Neutron
    ) -> None:
        """Add the routes."""
        super().__init__(octavia, quotas, provisioning)
        self._neutron = neutron

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Begin to create a load balancer."""
        del parents
        values["provider"] = values["provider"] or PROVIDERS[0]
        if values["provider"] not in PROVIDERS:
            raise ApiError(400, f"Provider '{values['provider']}' is not enabled.")
        self._require_choices(values)
        subnet = self._subnet(values)
        values |= {"vip_subnet_id": subnet["id"], "vip_network_id": subnet["network_id"]}
        status = {"provisioning_status": CREATING, "operating_status": "OFFLINE", "_owns_port": False}
        row = self.save_new(project_of(call, values), {**values, **status})
        row["_load_balancer"] = row["id"]
        try:
            self._set_port(row)
        except ApiError:
            self.table.remove(row["id"])
            raise
        return self.begin(row, CREATING)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Begin a change."""
        del call
        self._require_state(row, ACTIVE)
        self.touch(row, values)
        self.begin(row, CHANGING)

    def delete(self, call: Call, id_: str, **parents: str) -> Response:
        """Delete a load balancer, with its parts if the query asks for it."""
        row = self.visible(call, id_, **parents)
        cascade = (call.request.value("cascade") or "").lower() in ("true", "1", "yes")
        owned = [
            (family, part)
            for family in self.provisioning.parts
            for part in family.table.where("_load_balancer", id_)
            if family is not self
        ]
        if owned and not cascade:
            raise validation_failure(f"Cannot delete Load Balancer {id_} - it has children")
        self._require_state(row, ACTIVE, ERROR)
        for family, part in owned:
            family.touch(part, {"provisioning_status": DELETING})
        self.begin(row, DELETING)
        return Response(204)

    def discard(self, row: JsonObject) -> None:
        """Remove a load balancer and its port."""
        ports = self._neutron.ports
        port = ports.table.get(row["vip_port_id"])
        if port is not None and row["_owns_port"]:
            ports.discard(port)
        super().discard(row)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a load balancer with its listeners and pools."""
        owned = {
            family.plural: [{"id": part["id"]} for part in family.table.where("_load_balancer", row["id"])]
            for family in (self.part("listener"), self.part("pool"))
        }
        return {**super().view(row), **owned, "additional_vips": [], "vip_vnic_type": "normal"}

    def _require_state(self, row: JsonObject, *states: str) -> None:
        status = row["provisioning_status"]
        if status not in states:
            raise ApiError(409, f"Invalid state {status} of loadbalancer resource {row['id']}")

    def _require_choices(self, values: JsonObject) -> None:
        """Check flavor and availability zone."""
        if values["flavor_id"]:
            flavor = self.rows("flavor").get(values["flavor_id"])
            if flavor is None:
                raise validation_failure("Invalid flavor_id.")
            self._require_enabled("flavor", flavor, values["flavor_id"])
        if values["availability_zone"]:
            zone = self.rows("availability_zone").get(values["availability_zone"])
            if zone is None:
                raise validation_failure("Invalid availability zone.")
            self._require_enabled("availability_zone", zone, values["availability_zone"])

    @staticmethod
    def _require_enabled(option: str, row: JsonObject, value: str) -> None:
        if not row["enabled"]:
            text = f"The selected {option} is not allowed in this deployment: {value}"
            raise ApiError(400, text)

    def _subnet(self, values: JsonObject) -> JsonObject:
        """Return the subnet of the virtual address."""
        neutron = self._neutron
        subnet_id = values["vip_subnet_id"]
        if values["vip_port_id"]:
            port = neutron.ports.table.get(values["vip_port_id"])
            if port is None or not port["fixed_ips"]:
                raise ApiError(400, f"Port {values['vip_port_id']} not found.")
            subnet_id = subnet_id or port["fixed_ips"][0]["subnet_id"]
        elif not subnet_id and values["vip_network_id"]:
            subnets = neutron.subnets.table.where("network_id", values["vip_network_id"])
            if not subnets:
                raise validation_failure("Supplied network does not contain a subnet.")
            subnet_id = subnets[0]["id"]
        if not subnet_id:
            raise validation_failure(NO_VIP)
        subnet: JsonObject | None = neutron.subnets.table.get(subnet_id)
        if subnet is None:
            raise ApiError(400, f"Subnet {subnet_id} not found.")
        return subnet

    def _set_port(self, row: JsonObject) -> None:
        """Create the port of the virtual address, or take the given one."""
        neutron = self._neutron
        port = neutron.ports.table.get(row["vip_port_id"] or "")
        if port is None:
            fixed = {"subnet_id": row["vip_subnet_id"]}
            if row["vip_address"]:
                fixed["ip_address"] = row["vip_address"]
            given = {
                "name": f"octavia-lb-{row['id']}",
                "device_id": f"lb-{row['id']}",
                "device_owner": "Octavia",
                "admin_state_up": False,
                "fixed_ips": [fixed],
            }
            network = neutron.networks.found(row["vip_network_id"])
            port = neutron.ports.add(network, row["project_id"], given)
            row["_owns_port"] = True
        row |= {"vip_port_id": port["id"], "vip_address": port["fixed_ips"][0]["ip_address"]}
        self.table.save(row)
