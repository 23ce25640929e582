"""Volumes of servers."""

from __future__ import annotations

import string

from simulated_openstack.cinder.service import Cinder
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.nova.servers import Servers, require_state
from simulated_openstack.service import Call, Service, precise_timestamp

ATTACHABLE = ("active", "paused", "stopped", "resized", "suspended")


class Attachments:
    """`/servers/{id}/os-volume_attachments`."""

    def __init__(self, nova: Service, servers: Servers, cinder: Cinder) -> None:
        """Add the routes."""
        self._servers, self._cinder = servers, cinder
        self.nova = nova
        nova.cloud.schedule.register("volume.attached", self._attached)
        nova.cloud.schedule.register("volume.detached", self._detached)
        add = nova.router.add
        root = "/v2.1/servers/{id_}/os-volume_attachments"
        add("GET", root, self.index)
        add("POST", root, self.attach)
        add("GET", root + "/{volume_id}", self.show)
        add("PUT", root + "/{volume_id}", self.change)
        add("DELETE", root + "/{volume_id}", self.detach)

    def index(self, call: Call, id_: str) -> Response:
        """List the volumes of a server."""
        row = self._servers.visible(call, id_)
        return Response(200, {"volumeAttachments": [self._view(call, row, item) for item in row["volumes"]]})

    def attach(self, call: Call, id_: str) -> Response:
        """Attach a volume after a while."""
        row = self._servers.visible(call, id_)
        given = (call.body or {}).get("volumeAttachment") or {}
        volume_id = given.get("volumeId", "")
        cinder = self._cinder
        volume = cinder.volumes.visible(call, volume_id)
        require_state(row, "attach_volume", ATTACHABLE)
        if any(item["id"] == volume_id for item in row["volumes"]):
            text = f"Invalid volume: volume {volume_id} is already attached to instances: {id_}"
            raise ApiError(400, text)
        cinder.actions.begin_attach(volume)
        used = len(row["volumes"]) + (1 if row["image_id"] else 0)
        device = given.get("device") or f"/dev/sd{string.ascii_lowercase[used]}"
        keep = bool(given.get("delete_on_termination"))
        item = {"id": volume_id, "device": device, "delete_on_termination": keep, "tag": given.get("tag")}
        row["volumes"] = [*row["volumes"], item]
        self._servers.record(call, row, "attach_volume")
        self._servers.touch(row)
        volume["status"] = "attaching"
        cinder.volumes.touch(volume)
        fault = self.nova.cloud.faults.action("attach_volume", row["name"])
        seconds = self.nova.cloud.delays.volume_action + fault.delay
        self.nova.cloud.schedule.after(seconds, "volume.attached", id_, volume_id, fault.error)
        view = {"id": volume_id, "serverId": id_, "volumeId": volume_id, "device": device}
        if call.version >= (2, 70):
            view["tag"] = item["tag"]
        if call.version >= (2, 79):
            view["delete_on_termination"] = keep
        return Response(200, {"volumeAttachment": view})

    def show(self, call: Call, id_: str, volume_id: str) -> Response:
        """Show a volume of a server."""
        row = self._servers.visible(call, id_)
        return Response(200, {"volumeAttachment": self._view(call, row, self._item(row, volume_id))})

    def change(self, call: Call, id_: str, volume_id: str) -> Response:
        """Change whether a volume is deleted with the server."""
        row = self._servers.visible(call, id_)
        given = (call.body or {}).get("volumeAttachment") or {}
        item = self._item(row, volume_id)
        if "delete_on_termination" in given:
            item["delete_on_termination"] = bool(given["delete_on_termination"])
        self._servers.touch(row)
        return Response(202)

    def detach(self, call: Call, id_: str, volume_id: str) -> Response:
        """Detach a volume after a while."""
        row = self._servers.visible(call, id_)
        self._item(row, volume_id)
        require_state(row, "detach_volume", ATTACHABLE)
        volume = self._cinder.volumes.found(volume_id)
        if volume["status"] != "in-use":
            raise ApiError(
                400,
                "Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status"
                " must be"
                f" 'attached' to detach. Currently: status: '{volume['status']}'.",
            )
        volume["status"] = "detaching"
        self._cinder.volumes.touch(volume)
        self._servers.record(call, row, "detach_volume")
        self._servers.table.save(row)
        seconds = self.nova.cloud.delays.volume_action
        self.nova.cloud.schedule.after(seconds, "volume.detached", id_, volume_id)
        return Response(202)

    def _item(self, row: JsonObject, volume_id: str) -> JsonObject:
        for item in row["volumes"]:
            if item["id"] == volume_id:
                found: JsonObject = item
                return found
        raise ApiError(404, f"Instance {row['id']} is not attached to volume {volume_id}")

    def _view(self, call: Call, row: JsonObject, item: JsonObject) -> JsonObject:
        volume = self._cinder.volumes.table.get(item["id"]) or {"attachments": []}
        view = {"serverId": row["id"], "volumeId": item["id"], "device": item["device"]}
        if call.version >= (2, 70):
            view["tag"] = item["tag"]
        if call.version >= (2, 79):
            view["delete_on_termination"] = item["delete_on_termination"]
        if call.version < (2, 89):
            return {"id": item["id"], **view}
        own = [entry for entry in volume["attachments"] if entry["server_id"] == row["id"]]
        return {**view, "attachment_id": own[0]["attachment_id"] if own else None, "bdm_uuid": item["id"]}

    def _attached(self, id_: str, volume_id: str, error: str | None) -> None:
        row = self._servers.table.get(id_)
        volume = self._cinder.volumes.table.get(volume_id)
        item = next((item for item in row["volumes"] if item["id"] == volume_id), None) if row else None
        if volume is None:
            return
        if row is None or item is None or error:
            volume["status"] = "available"
            self._cinder.volumes.touch(volume)
            if row is not None:
                self._servers.mark_failed(row, "attach_volume")
                row["volumes"] = [entry for entry in row["volumes"] if entry["id"] != volume_id]
                self._servers.touch(row)
            return
        self._cinder.actions.end_attach(volume, id_, item["device"], precise_timestamp())

    def _detached(self, id_: str, volume_id: str) -> None:
        row = self._servers.table.get(id_)
        if row is not None:
            row["volumes"] = [item for item in row["volumes"] if item["id"] != volume_id]
            self._servers.touch(row)
        volume = self._cinder.volumes.table.get(volume_id)
        if volume is not None:
            self._cinder.actions.end_detach(volume, id_)
