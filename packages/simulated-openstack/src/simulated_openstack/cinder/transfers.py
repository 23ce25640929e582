"""Transfers of volumes to another project."""

from __future__ import annotations

import secrets
from typing import Final

from simulated_openstack.cinder.pages import listing
from simulated_openstack.cinder.quotas import Quotas
from simulated_openstack.cinder.volumes import Volumes
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

ROOTS: Final = ("/v3/volume-transfers", "/v3/os-volume-transfer")
PROJECTS: Final = (3, 57)  # first version that shows the projects
KEY_BYTES: Final = 8


class Transfers:
    """All transfers that are not accepted."""

    def __init__(self, cinder: Service, volumes: Volumes, quotas: Quotas) -> None:
        """Add the routes."""
        self._volumes, self._quotas = volumes, quotas
        self.table: Table = cinder.cloud.state.table("cinder.transfer", "source_project_id")
        add = cinder.router.add
        for root in ROOTS:
            add("GET", root, self.index)
            add("POST", root, self.post)
            add("GET", f"{root}/detail", self.detail)
            add("GET", f"{root}/{{id_}}", self.show)
            add("DELETE", f"{root}/{{id_}}", self.delete)
            add("POST", f"{root}/{{id_}}/accept", self.accept)

    def index(self, call: Call) -> Response:
        """List transfers in short form."""
        return listing(call, "transfers", [_short(call, row) for row in self._matching(call)])

    def detail(self, call: Call) -> Response:
        """List transfers."""
        return listing(call, "transfers", [_view(call, row) for row in self._matching(call)])

    def post(self, call: Call) -> Response:
        """Offer a volume; the answer has the key with which another project accepts it."""
        given = (call.body or {}).get("transfer") or {}
        volume = self._volumes.visible(call, given.get("volume_id") or "")
        if volume["status"] != "available":
            raise ApiError(400, "Invalid volume: status must be available")
        row = {
            "id": new_id(),
            "name": given.get("name"),
            "volume_id": volume["id"],
            "created_at": precise_timestamp(),
            "source_project_id": volume["project_id"],
            "auth_key": secrets.token_hex(KEY_BYTES),
        }
        self.table.save(row)
        self._set_status(volume["id"], "awaiting-transfer")
        return Response(202, {"transfer": {**_view(call, row), "auth_key": row["auth_key"]}})

    def show(self, call: Call, id_: str) -> Response:
        """Show a transfer."""
        return Response(200, {"transfer": _view(call, self._visible(call, id_))})

    def delete(self, call: Call, id_: str) -> Response:
        """Withdraw an offer."""
        row = self._visible(call, id_)
        self.table.remove(id_)
        self._set_status(row["volume_id"], "available")
        return Response(202)

    def accept(self, call: Call, id_: str) -> Response:
        """Give the volume to the project of the caller, who knows the key."""
        row = self._found(id_)
        key = ((call.body or {}).get("accept") or {}).get("auth_key")
        if key != row["auth_key"]:
            raise ApiError(400, f"Invalid auth key: Attempt to transfer {id_} with invalid auth key.")
        volume = self._volumes.found(row["volume_id"])
        project = call.caller.project_id
        self._quotas.require_volume(project, volume["size"])
        volume |= {"project_id": project, "user_id": call.caller.user_id, "status": "available"}
        self._volumes.touch(volume)
        self.table.remove(id_)
        return Response(202, {"transfer": _short(call, row)})

    def _matching(self, call: Call) -> list[JsonObject]:
        every = call.caller.is_admin and call.request.value("all_tenants") in {"1", "True", "true"}
        rows = list(self.table) if every else self.table.where("source_project_id", call.caller.project_id)
        return rows[::-1]

    def _found(self, id_: str) -> JsonObject:
        row = self.table.get(id_)
        if row is None:
            raise ApiError(404, f"Transfer {id_} could not be found.")
        return row

    def _visible(self, call: Call, id_: str) -> JsonObject:
        row = self._found(id_)
        if not call.caller.is_admin and row["source_project_id"] != call.caller.project_id:
            self._found("")
        return row

    def _set_status(self, volume_id: str, status: str) -> None:
        volume = self._volumes.table.get(volume_id)
        if volume is not None:
            volume["status"] = status
            self._volumes.touch(volume)


def _short(call: Call, row: JsonObject) -> JsonObject:
    path = f"volume-transfers/{row['id']}"
    links = [
        {"rel": "self", "href": f"{call.base}/v3/{path}"},
        {"rel": "bookmark", "href": f"{call.base}/{path}"},
    ]
    return {**{name: row[name] for name in ("id", "name", "volume_id")}, "links": links}


def _view(call: Call, row: JsonObject) -> JsonObject:
    projects = {
        "source_project_id": row["source_project_id"],
        "destination_project_id": None,
        "accepted": False,
    }
    shown = projects if call.version >= PROJECTS else {}
    return {**_short(call, row), "created_at": row["created_at"], **shown}
