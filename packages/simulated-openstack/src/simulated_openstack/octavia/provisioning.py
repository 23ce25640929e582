"""Changes of a load balancer take time. Until one is complete, others are refused."""

from __future__ import annotations

from typing import ClassVar, Final

from simulated_openstack.environment import Environment
from simulated_openstack.faults import ActionFault
from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.octavia.family import Family
from simulated_openstack.octavia.quotas import Quotas
from simulated_openstack.service import Call, Service

ACTIVE: Final = "ACTIVE"
ERROR: Final = "ERROR"
CREATING: Final = "PENDING_CREATE"
CHANGING: Final = "PENDING_UPDATE"
DELETING: Final = "PENDING_DELETE"
SETTLED: Final = "load_balancer.settled"


class Part(Family):
    """A load balancer, or an object that belongs to one: `_load_balancer` is its id."""

    indexes: ClassVar[tuple[str, ...]] = ("_load_balancer",)

    def __init__(self, octavia: Service, quotas: Quotas, provisioning: Provisioning) -> None:
        """Add the routes; a part comes after those that contain it."""
        super().__init__(octavia, quotas)
        self.provisioning = provisioning
        provisioning.parts.append(self)

    def part(self, kind: str) -> Part:
        """Return all objects of another kind of parts."""
        return self.provisioning.part(kind)

    def begin(self, row: JsonObject, status: str) -> JsonObject:
        """Begin a change of an object, after `require_mutable`."""
        row["provisioning_status"] = status
        self.provisioning.begin(self, row)
        return self.table.save(row)

    def require_mutable(self, balancer_id: str) -> None:
        """Refuse a change while another is in progress, or after one has failed."""
        balancer = self.part("loadbalancer").found(balancer_id)
        if balancer["provisioning_status"] != ACTIVE:
            raise ApiError(409, f"Load Balancer {balancer_id} is immutable and cannot be updated.")

    def start_new(self, balancer: JsonObject, values: JsonObject) -> JsonObject:
        """Keep a new part of a load balancer, which is being created."""
        self.require_mutable(balancer["id"])
        status = {"provisioning_status": CREATING, "operating_status": "OFFLINE"}
        row = self.save_new(balancer["project_id"], {**values, **status, "_load_balancer": balancer["id"]})
        return self.begin(row, CREATING)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Begin a change of an object."""
        del call
        self.require_mutable(row["_load_balancer"])
        self.touch(row, values)
        self.begin(row, CHANGING)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Begin the deletion of an object."""
        del call
        self.require_mutable(row["_load_balancer"])
        self.begin(row, DELETING)

    def discard(self, row: JsonObject) -> None:
        """Remove an object whose deletion is complete."""
        self.table.remove(row["id"])


class Provisioning:
    """The pending changes of all load balancers, at most one of each."""

    def __init__(self, cloud: Environment) -> None:
        """Know no change."""
        self.cloud = cloud
        self.parts: list[Part] = []  # every part comes after those that contain it
        cloud.schedule.register(SETTLED, self._settled)

    def part(self, kind: str) -> Part:
        """Return the objects of a kind."""
        return next(part for part in self.parts if part.singular == kind)

    def begin(self, family: Family, row: JsonObject) -> None:
        """Complete the change of an object after a while; its load balancer is locked until then."""
        balancers = self.part("loadbalancer")
        balancer_id = row.get("_load_balancer") or row["id"]
        if balancer_id != row["id"]:
            balancers.touch(balancers.found(balancer_id), {"provisioning_status": CHANGING})
        delays, fault = self.cloud.delays, self._fault(row)
        creates = family is balancers and row["provisioning_status"] == CREATING
        seconds = delays.load_balancer_create if creates else delays.load_balancer_change
        arguments = (family.singular, row["id"], fault.error)
        self.cloud.schedule.after(seconds + fault.delay, SETTLED, balancer_id, *arguments)

    def _fault(self, row: JsonObject) -> ActionFault:
        return self.cloud.faults.action("load_balancer", row.get("name") or row.get("address"))

    def _settled(self, balancer_id: str, kind: str, id_: str, error: str | None) -> None:
        """Complete a change; with an error, the object of this kind and id is in error."""
        for family in reversed(self.parts):
            for row in family.table.where("_load_balancer", balancer_id):
                status = row["provisioning_status"]
                if error and family.singular == kind and row["id"] == id_:
                    family.touch(row, {"provisioning_status": ERROR})
                elif status == DELETING:
                    family.discard(row)
                elif status in (CREATING, CHANGING):
                    family.touch(row, {"provisioning_status": ACTIVE, "operating_status": "ONLINE"})
