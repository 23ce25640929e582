"""Attachments of volumes, as cinder lists them."""

from __future__ import annotations

from typing import Final

from simulated_openstack.cinder.actions import VolumeActions
from simulated_openstack.cinder.volumes import Volumes
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service

REFUSED: Final = "ConflictNovaUsingAttachment: Detach volume from instance {} using the Compute API"


class Attachments:
    """`/attachments`: a user may delete those that nova does not know."""

    def __init__(self, cinder: Service, actions: VolumeActions, volumes: Volumes) -> None:
        """Add the routes."""
        self._actions, self._volumes = actions, volumes
        self.cinder = cinder
        cinder.router.add("GET", "/v3/attachments", self.index)
        cinder.router.add("GET", "/v3/attachments/detail", self.index)
        cinder.router.add("DELETE", "/v3/attachments/{id_}", self.delete)

    def index(self, call: Call) -> Response:
        """List the attachments of a volume, or of all volumes of the project."""
        wanted = dict(call.request.query).get("volume_id")
        volumes = [row for row in self._visible(call) if wanted in (None, row["id"])]
        shown = [_view(row, item) for row in volumes for item in row["attachments"]]
        return Response(200, {"attachments": shown})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an attachment that nova does not know."""
        for row in self._visible(call):
            for item in row["attachments"]:
                if item["attachment_id"] == id_:
                    self._require_unknown(row["id"], item["server_id"])
                    self._actions.end_detach(row, item["server_id"])
                    return Response(200, {"attachments": [_view(row, left) for left in row["attachments"]]})
        raise ApiError(404, f"Volume attachment could not be found with filter: attachment_id = {id_}.")

    def _visible(self, call: Call) -> list[JsonObject]:
        rows = list(self._volumes.table)
        project = call.caller.project_id
        return [row for row in rows if call.caller.is_admin or row["project_id"] == project]

    def _require_unknown(self, volume_id: str, server_id: str) -> None:
        server = self.cinder.cloud.state.table("nova.server").get(server_id)  # nova comes after cinder
        if server is not None and any(item["id"] == volume_id for item in server["volumes"]):
            raise ApiError(409, REFUSED.format(server_id))


def _view(row: JsonObject, item: JsonObject) -> JsonObject:
    return {
        "id": item["attachment_id"],
        "status": "attached",
        "instance": item["server_id"],
        "volume_id": row["id"],
    }
