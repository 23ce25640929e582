"""Zones."""

from __future__ import annotations

import re
import time
from typing import Final

from simulated_openstack.designate.changes import Changes
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

NAME: Final = re.compile(r"([A-Za-z0-9_*]([A-Za-z0-9_-]{0,62})?\.)+")
FIELDS: Final = ("name", "email", "ttl", "description", "type", "masters", "attributes")
CHANGED: Final = ("email", "ttl", "description", "masters")


class Zones:
    """All zones. Names are unique."""

    def __init__(self, designate: Service) -> None:
        """Add the routes."""
        self.designate = designate
        self.table: Table = designate.cloud.state.table("designate.zone", "project_id", "name")
        self.changes = Changes(designate.cloud, "zone", self.table)
        add = designate.router.add
        add("GET", "/v2/zones", self.index)
        add("POST", "/v2/zones", self.post)
        add("GET", "/v2/zones/{id_}", self.show)
        add("PATCH", "/v2/zones/{id_}", self.patch)
        add("DELETE", "/v2/zones/{id_}", self.delete)

    def index(self, call: Call) -> Response:
        """List the zones of the project."""
        rows = self.table.where("project_id", call.caller.project_id)
        name = call.request.value("name")
        found = [row for row in rows if name in (None, row["name"])]
        return Response(200, {"zones": found, "links": {}, "metadata": {"total_count": len(found)}})

    def post(self, call: Call) -> Response:
        """Request a zone."""
        values = {name: (call.body or {}).get(name) for name in FIELDS}
        values["type"] = values["type"] or "PRIMARY"
        _check(values)
        if self.table.where("name", values["name"]):
            raise ApiError(409, "Duplicate Zone", "duplicate_zone")
        row = {
            "id": new_id(),
            **values,
            "ttl": values["ttl"] or 3600,
            "masters": [_server(one) for one in values["masters"] or ()],
            "attributes": values["attributes"] or {},
            "serial": int(time.time()),
            "project_id": call.caller.project_id,
            "created_at": precise_timestamp(),
            "version": 1,
        }
        return Response(202, self.changes.begin(row, "CREATE"))

    def show(self, call: Call, id_: str) -> Response:
        """Return a zone."""
        return Response(200, self.found(call, id_))

    def patch(self, call: Call, id_: str) -> Response:
        """Request a change."""
        row = self.found(call, id_)
        if row["action"] == "DELETE":
            raise ApiError(400, "Can not update a deleting zone")
        changed = {name: call.body[name] for name in CHANGED if name in (call.body or {})}
        _check({**row, **changed}, changed)
        if "masters" in changed:
            changed["masters"] = [_server(one) for one in changed["masters"] or ()]
        serial = max(int(time.time()), row["serial"] + 1)
        return Response(202, self.changes.begin({**row, **changed, "serial": serial}, "UPDATE"))

    def delete(self, call: Call, id_: str) -> Response:
        """Request the deletion; record sets end with the zone."""
        row = self.changes.begin(self.found(call, id_), "DELETE")
        recordsets = self.designate.cloud.state.table("designate.recordset")
        for recordset in recordsets.where("zone_id", id_):
            recordsets.remove(recordset["id"])
        return Response(202, row)

    def found(self, call: Call, id_: str) -> JsonObject:
        """Return a zone.

        Raises:
            ApiError: there is none.
        """
        row = self.table.get(id_)
        if row is None or row["project_id"] != call.caller.project_id:
            raise ApiError(404, "Could not find Zone", "zone_not_found")
        return row


def _server(given: str) -> str:
    return given if ":" in given else f"{given}:53"


def _check(values: JsonObject, given: JsonObject | None = None) -> None:
    """Refuse values of a wrong form."""
    given = values if given is None else given
    if not NAME.fullmatch(str(values["name"])):
        raise ApiError(400, f"'{values['name']}' is not a 'domainname'", "invalid_object")
    if values["type"] == "PRIMARY" and not values["email"]:
        raise ApiError(400, "'email' is a required property", "invalid_object")
    if values["type"] == "PRIMARY" and values["masters"]:
        raise ApiError(400, "'masters' has more items than allowed", "invalid_object")
    if values["type"] == "SECONDARY" and not values["masters"]:
        raise ApiError(400, "'masters' is a required property", "invalid_object")
    for name in ("email", "ttl"):
        if values["type"] == "SECONDARY" and given.get(name):
            raise ApiError(400, f"'{name}' can't be specified when type is SECONDARY", "invalid_object")
