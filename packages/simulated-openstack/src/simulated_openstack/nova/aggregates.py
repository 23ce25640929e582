"""Host aggregates, availability zones, hypervisors and services."""

from __future__ import annotations

from typing import Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

HOST: Final = "fakehost"


class Aggregates:
    """Host aggregates; there is a single host."""

    def __init__(self, nova: Service) -> None:
        """Add the routes."""
        self.table: Table = nova.cloud.state.table("nova.aggregate")
        self._last_number = 0
        add = nova.router.add
        add("GET", "/v2.1/os-aggregates", self.index)
        add("POST", "/v2.1/os-aggregates", self.post)
        add("GET", "/v2.1/os-aggregates/{id_}", self.show)
        add("PUT", "/v2.1/os-aggregates/{id_}", self.put)
        add("DELETE", "/v2.1/os-aggregates/{id_}", self.delete)
        add("POST", "/v2.1/os-aggregates/{id_}/action", self.act)
        add("GET", "/v2.1/os-availability-zone", self.zones)
        add("GET", "/v2.1/os-availability-zone/detail", self.zones)
        add("GET", "/v2.1/os-hypervisors", self.hypervisors)
        add("GET", "/v2.1/os-hypervisors/detail", self.hypervisors)
        add("GET", "/v2.1/os-services", self.services)

    def zone_names(self) -> list[str]:
        """Return the availability zones with hosts."""
        return ["nova", *(row["availability_zone"] for row in self.table if row["availability_zone"])]

    def index(self, call: Call) -> Response:
        """List aggregates."""
        self._require_admin(call, "index")
        return Response(200, {"aggregates": [_view(row) for row in self.table]})

    def post(self, call: Call) -> Response:
        """Create an aggregate."""
        self._require_admin(call, "create")
        given = (call.body or {}).get("aggregate") or {}
        if any(row["name"] == given.get("name") for row in self.table):
            raise ApiError(409, f"Aggregate {given['name']} already exists.")
        number = 1 + max((row["number"] for row in self.table), default=0)
        number = self._last_number = max(number, self._last_number + 1)  # none is used again
        row: JsonObject = {
            "id": str(number),
            "number": number,
            "uuid": new_id(),
            "name": given.get("name"),
            "availability_zone": given.get("availability_zone"),
            "created_at": precise_timestamp(),
            "updated_at": None,
            "hosts": [],
            "metadata": {},
        }
        view = _view(self.table.save(row))
        return Response(200, {"aggregate": {k: v for k, v in view.items() if k not in {"hosts", "metadata"}}})

    def show(self, call: Call, id_: str) -> Response:
        """Show an aggregate."""
        self._require_admin(call, "show")
        return Response(200, {"aggregate": _view(self._found(id_))})

    def put(self, call: Call, id_: str) -> Response:
        """Change name or zone."""
        self._require_admin(call, "update")
        row, given = self._found(id_), (call.body or {}).get("aggregate") or {}
        if any(other["name"] == given.get("name") for other in self.table if other["id"] != id_):
            raise ApiError(409, f"Aggregate {given['name']} already exists.")
        row |= {name: given[name] for name in ("name", "availability_zone") if name in given}
        return self._changed(row)

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an aggregate without hosts."""
        self._require_admin(call, "delete")
        row = self._found(id_)
        if row["hosts"]:
            text = "Host aggregate is not empty."
            raise ApiError(400, f"Cannot remove host from aggregate {id_}. Reason: {text}")
        self.table.remove(row["id"])
        return Response(200)

    def act(self, call: Call, id_: str) -> Response:
        """Add or remove a host, or set metadata."""
        self._require_admin(call, "add_host")
        row, body = self._found(id_), call.body or {}
        if "set_metadata" in body:
            changes = body["set_metadata"]["metadata"]
            merged = {**row["metadata"], **changes}
            row["metadata"] = {key: value for key, value in merged.items() if value is not None}
            row["availability_zone"] = changes.get("availability_zone", row["availability_zone"])
            return self._changed(row)
        wanted: JsonObject = next(iter(body.values()), {})
        host = wanted.get("host")
        if host != HOST:
            raise ApiError(404, f"Compute host {host} could not be found.")
        if "add_host" in body:
            if host in row["hosts"]:
                raise ApiError(
                    409, f"Cannot add host to aggregate {id_}. Reason: One or more hosts already in"
                )
            row["hosts"] = [*row["hosts"], host]
        else:
            row["hosts"] = [item for item in row["hosts"] if item != host]
        return self._changed(row)

    def zones(self, call: Call) -> Response:
        """List the availability zones."""
        del call
        zones = [
            {"zoneName": name, "zoneState": {"available": True}, "hosts": None}
            for name in dict.fromkeys(
                ["nova", *(row["availability_zone"] for row in self.table if row["hosts"])]
            )
            if name
        ]
        return Response(200, {"availabilityZoneInfo": zones})

    def hypervisors(self, call: Call) -> Response:
        """List the only hypervisor."""
        del call
        row = {"id": "00000000-0000-4000-8000-000000000002", "hypervisor_hostname": HOST, "state": "up"}
        return Response(200, {"hypervisors": [{**row, "status": "enabled"}]})

    def services(self, call: Call) -> Response:
        """List the services."""
        del call
        names = ("nova-scheduler", "nova-conductor", "nova-compute")
        rows = [{"binary": name, "host": HOST, "state": "up", "status": "enabled"} for name in names]
        return Response(200, {"services": rows})

    def _changed(self, row: JsonObject) -> Response:
        row["updated_at"] = precise_timestamp()
        return Response(200, {"aggregate": _view(self.table.save(row))})

    def _found(self, id_: str) -> JsonObject:
        row = self.table.get(id_)
        if row is None:
            raise ApiError(404, f"Aggregate {id_} could not be found.")
        return row

    def _require_admin(self, call: Call, verb: str) -> None:
        if not call.caller.is_admin:
            raise ApiError(403, f"Policy doesn't allow os_compute_api:os-aggregates:{verb} to be performed.")


def _view(row: JsonObject) -> JsonObject:
    zone = {"availability_zone": row["availability_zone"]} if row["availability_zone"] else {}
    view = {key: value for key, value in row.items() if key != "number"}
    return {
        **view,
        "id": row["number"],
        "metadata": {**zone, **row["metadata"]},
        "deleted": False,
        "deleted_at": None,
    }
