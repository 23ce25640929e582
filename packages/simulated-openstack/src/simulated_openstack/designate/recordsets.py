"""Record sets."""

from __future__ import annotations

import ipaddress
from typing import Final

from simulated_openstack.designate.changes import Changes
from simulated_openstack.designate.zones import Zones
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

TYPES: Final = frozenset(
    "A AAAA CNAME MX SRV TXT SPF NS PTR SSHFP SOA CAA CERT NAPTR".split()  # noqa: SIM905
)


class RecordSets:
    """All record sets. Name and type are unique in a zone."""

    def __init__(self, designate: Service, zones: Zones) -> None:
        """Add the routes."""
        self._zones = zones
        self.table: Table = designate.cloud.state.table("designate.recordset", "zone_id")
        self.changes = Changes(designate.cloud, "recordset", self.table)
        add = designate.router.add
        one = "/v2/zones/{zone}/recordsets/{id_}"
        add("GET", "/v2/zones/{zone}/recordsets", self.index)
        add("POST", "/v2/zones/{zone}/recordsets", self.post)
        add("GET", one, self.show)
        add("PUT", one, self.put)
        add("DELETE", one, self.delete)

    def index(self, call: Call, zone: str) -> Response:
        """List the record sets of a zone."""
        rows = self.table.where("zone_id", self._zones.found(call, zone)["id"])
        for key in ("name", "type"):
            value = call.request.value(key)
            rows = [row for row in rows if value in (None, row[key])]
        return Response(200, {"recordsets": rows, "links": {}, "metadata": {"total_count": len(rows)}})

    def post(self, call: Call, zone: str) -> Response:
        """Request a record set."""
        owner, body = self._zones.found(call, zone), call.body or {}
        row = {
            "id": new_id(),
            "zone_id": zone,
            "zone_name": owner["name"],
            "project_id": owner["project_id"],
            **{name: body.get(name) for name in ("name", "type", "ttl", "description")},
            "records": body.get("records") or [],
            "created_at": precise_timestamp(),
            "version": 1,
        }
        _check(row)
        for other in self.table.where("zone_id", zone):
            if (other["name"], other["type"]) == (row["name"], row["type"]):
                raise ApiError(409, "Duplicate RecordSet", "duplicate_recordset")
        return Response(202, self.changes.begin(row, "CREATE"))

    def show(self, call: Call, zone: str, id_: str) -> Response:
        """Return a record set."""
        return Response(200, self._found(call, zone, id_))

    def put(self, call: Call, zone: str, id_: str) -> Response:
        """Request a change."""
        row, body = self._found(call, zone, id_), call.body or {}
        changed = {name: body[name] for name in ("ttl", "description", "records") if name in body}
        _check({**row, **changed})
        return Response(202, self.changes.begin({**row, **changed}, "UPDATE"))

    def delete(self, call: Call, zone: str, id_: str) -> Response:
        """Request the deletion."""
        return Response(202, self.changes.begin(self._found(call, zone, id_), "DELETE"))

    def _found(self, call: Call, zone: str, id_: str) -> JsonObject:
        self._zones.found(call, zone)
        row = self.table.get(id_)
        if row is None or row["zone_id"] != zone:
            raise ApiError(404, "Could not find RecordSet", "recordset_not_found")
        return row


def _check(row: JsonObject) -> None:
    """Refuse values of a wrong form."""
    if row["type"] == "SOA":
        raise ApiError(400, "Creating a SOA recordset is not allowed", "bad_request")
    if row["type"] not in TYPES:
        raise ApiError(400, f"'{row['type']}' is not a valid record type", "invalid_object")
    if not str(row["name"]).endswith(f".{row['zone_name']}") and row["name"] != row["zone_name"]:
        raise ApiError(
            400, "RecordSet is not contained within it's parent zone", "invalid_recordset_location"
        )
    versions = {"A": ipaddress.IPv4Address, "AAAA": ipaddress.IPv6Address}
    for record in row["records"] if row["type"] in versions else ():
        try:
            versions[row["type"]](record)
        except ValueError:
            text = f"'{record}' is not a 'ipv{4 if row['type'] == 'A' else 6}'"
            raise ApiError(400, text, "invalid_object") from None
