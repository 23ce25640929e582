"""Trunks: ports that carry the traffic of further ports."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Families, Family
from simulated_openstack.neutron.fields import REQUIRED, Field
from simulated_openstack.neutron.ports import Ports
from simulated_openstack.service import Call, Service


class Trunks(Family):
    """Trunks."""

    singular = "trunk"
    collection = "trunks"
    label = "Trunk"
    not_found_kind = "TrunkNotFound"
    quota = "trunk"
    indexes: ClassVar[tuple[str, ...]] = ("port_id",)
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(),
        "admin_state_up": Field(True, "boolean"),
        "port_id": Field(REQUIRED, "uuid", put=False),
        "description": Field(),
        "sub_ports": Field(list, "any", put=False),
    }

    def __init__(self, neutron: Service, families: Families, ports: Ports) -> None:
        """Add the routes."""
        super().__init__(neutron, families)
        self._ports = ports
        ports.on_remove.append(self._require_free)
        neutron.router.add("PUT", "/v2.0/trunks/{id_}/add_subports", self.add_sub_ports)
        neutron.router.add("PUT", "/v2.0/trunks/{id_}/remove_subports", self.remove_sub_ports)
        neutron.router.add("GET", "/v2.0/trunks/{id_}/get_subports", self.sub_ports)

    def _require_free(self, port: JsonObject) -> None:
        """Refuse to delete a port of a trunk."""
        if self.table.count("port_id", port["id"]):
            text = f"Port {port['id']} is currently a parent port for trunk"
            trunk = self.table.where("port_id", port["id"])[0]
            raise ApiError(409, f"{text} {trunk['id']}.", "PortInUseAsTrunkParent")
        for trunk in self.table:
            if any(sub["port_id"] == port["id"] for sub in trunk["sub_ports"]):
                text = f"Port {port['id']} is currently a subport for trunk {trunk['id']}."
                raise ApiError(409, text, "PortInUseAsSubPort")

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new trunk."""
        self.family("port").visible(call, values["port_id"])
        if self.table.count("port_id", values["port_id"]):
            text = (
                f"Port {values['port_id']} is currently in use and is not eligible for use as a parent port."
            )
            raise ApiError(409, text, "ParentPortInUse")
        self._require_unused(values["port_id"])
        sub_ports = values["sub_ports"] or []
        for sub in sub_ports:
            self._require_unused(sub["port_id"])
        return self.save_new(call, {**values, "sub_ports": sub_ports, "status": "DOWN", "revision_number": 1})

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a trunk."""
        self._require_enabled(row)
        for sub in row["sub_ports"]:
            self._set_owner(sub["port_id"], "")
        super().remove(call, row)

    def add_sub_ports(self, call: Call, id_: str) -> Response:
        """Add ports."""
        row = self.owned(call, id_, "add_subports")
        self._require_enabled(row)
        for sub in (call.body or {}).get("sub_ports") or []:
            self.family("port").visible(call, sub["port_id"])
            self._require_unused(sub["port_id"])
            if any(other["segmentation_id"] == sub.get("segmentation_id") for other in row["sub_ports"]):
                text = (
                    f"segmentation_type {sub.get('segmentation_type')} and segmentation_id"
                    f" {sub.get('segmentation_id')} already in use on trunk {id_}."
                )
                raise ApiError(409, text, "DuplicateSubPort")
            row["sub_ports"] = [*row["sub_ports"], dict(sub)]
            self._set_owner(sub["port_id"], "trunk:subport")
        return Response(200, self.view(self.touch(row)))

    def remove_sub_ports(self, call: Call, id_: str) -> Response:
        """Remove ports."""
        row = self.owned(call, id_, "remove_subports")
        self._require_enabled(row)
        for sub in (call.body or {}).get("sub_ports") or []:
            if not any(other["port_id"] == sub["port_id"] for other in row["sub_ports"]):
                text = f"SubPort {sub['port_id']} on trunk {id_} could not be found."
                raise ApiError(404, text, "SubPortNotFound")
            row["sub_ports"] = [other for other in row["sub_ports"] if other["port_id"] != sub["port_id"]]
            self._set_owner(sub["port_id"], "")
        return Response(200, self.view(self.touch(row)))

    def sub_ports(self, call: Call, id_: str) -> Response:
        """List the ports of a trunk."""
        return Response(200, {"sub_ports": self.visible(call, id_)["sub_ports"]})

    def _require_unused(self, port_id: str) -> None:
        """Refuse a port that another trunk has as its subport."""
        if any(sub["port_id"] == port_id for trunk in self.table for sub in trunk["sub_ports"]):
            raise ApiError(409, f"Port {port_id} is in use by another trunk.", "TrunkPortInUse")

    def _require_enabled(self, row: JsonObject) -> None:
        if not row["admin_state_up"]:
            raise ApiError(409, f"Trunk {row['id']} is currently disabled.", "TrunkDisabled")

    def _set_owner(self, port_id: str, owner: str) -> None:
        port = self.family("port").table.get(port_id)
        if port is not None:
            port["device_owner"] = owner
            self._ports.touch(port)
