"""The actions of volumes: extend, attach, detach, retype and others."""

from __future__ import annotations

from typing import Any, Final

from simulated_openstack.cinder.quotas import Quotas
from simulated_openstack.cinder.types import Types
from simulated_openstack.cinder.volumes import Volumes
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id

ADMIN: Final = frozenset({"os-reset_status", "os-force_delete", "os-force_detach"})


class VolumeActions:
    """`POST /volumes/{id}/action`."""

    def __init__(self, cinder: Service, volumes: Volumes, quotas: Quotas, types: Types) -> None:
        """Add the route."""
        self._volumes, self._quotas, self._types = volumes, quotas, types
        self.cinder = cinder
        self.actions = {
            "os-extend": self.extend,
            "os-update_readonly_flag": self.set_read_only,
            "os-set_bootable": self.set_bootable,
            "os-reset_status": self.reset_status,
            "os-retype": self.retype,
            "os-detach": self.detach,
            "os-attach": self.attach,
            "os-force_delete": self.force_delete,
            "os-set_image_metadata": self.set_image_metadata,
            "os-reserve": self.reserve,
            "os-unreserve": self.unreserve,
            "os-roll_detaching": self.end_detaching,
            "revert": self.nothing,
        }
        cinder.cloud.schedule.register("volume.extended", self._extended)
        cinder.cloud.schedule.register("volume.retyped", self._retyped)
        cinder.cloud.schedule.register("volume.released", self._released)
        cinder.router.add("POST", "/v3/volumes/{id_}/action", self.act)

    def act(self, call: Call, id_: str) -> Response:
        """Carry out an action."""
        body = call.body if isinstance(call.body, dict) else {}
        name = next(iter(body), "")
        action = self.actions.get(name)
        if action is None:
            advice = "Verify the request body and Content-Type header and try again."
            raise ApiError(400, f"There is no such action: {name}. {advice}")
        if name in ADMIN and not call.caller.is_admin:
            rule = f"volume_extension:volume_admin_actions:{name.removeprefix('os-')}"
            raise ApiError(403, f"Policy doesn't allow {rule} to be performed.")
        return action(self._volumes.visible(call, id_), body[name] or {})

    # used by nova

    def begin_attach(self, row: JsonObject) -> None:
        """Reserve a volume for a server."""
        if row["status"] not in {"available", "reserved"} and not (row["multiattach"] and row["attachments"]):
            status = f"status must be available. Currently in {row['status']}."
            servers = ", ".join(item["server_id"] for item in row["attachments"])
            reason = f"is already attached to instances: {servers}" if servers else status
            raise ApiError(400, f"Invalid volume: volume {row['id']} {reason}")
        row["status"] = "reserved"
        self._volumes.touch(row)

    def end_attach(self, row: JsonObject, server_id: str, device: str, at: str) -> None:
        """Mark a volume as used by a server."""
        row["attachments"] = [
            *row["attachments"],
            {
                "id": row["id"],
                "attachment_id": new_id(),
                "volume_id": row["id"],
                "server_id": server_id,
                "host_name": "fakehost",
                "device": device,
                "attached_at": at,
            },
        ]
        row["status"] = "in-use"
        self._volumes.touch(row)

    def end_detach(self, row: JsonObject, server_id: str) -> None:
        """Mark a volume as not used by a server."""
        row["attachments"] = [item for item in row["attachments"] if item["server_id"] != server_id]
        row["status"] = "in-use" if row["attachments"] else "available"
        self._volumes.touch(row)

    # the actions

    def extend(self, row: JsonObject, body: JsonObject) -> Response:
        """Make a volume larger."""
        size = int(body.get("new_size") or 0)
        if row["status"] != "available":
            wanted = "'{'status': 'available'}'"
            text = f"Volume {row['id']} status must be {wanted} to extend, currently {row['status']}."
            raise ApiError(400, f"Invalid volume: {text}")
        if size <= row["size"]:
            text = (
                f"New size for extend must be greater than current size. (current: {row['size']}, extended:"
                f" {size})."
            )
            raise ApiError(400, f"Invalid input received: {text}")
        self._quotas.require_gigabytes(row["project_id"], size - row["size"])
        row |= {"previous_status": row["status"], "status": "extending"}
        self._volumes.touch(row)
        self.cinder.cloud.schedule.after(
            self.cinder.cloud.delays.volume_action, "volume.extended", row["id"], size
        )
        return Response(202)

    def set_read_only(self, row: JsonObject, body: JsonObject) -> Response:
        """Set or clear the read-only flag."""
        if row["status"] != "available":
            text = (
                f"Invalid volume: Volume {row['id']} status must be available to update readonly flag, but"
                " current"
            )
            raise ApiError(400, f"{text} status is: {row['status']}.")
        row["metadata"] = {**row["metadata"], "readonly": str(_boolean(body.get("readonly")))}
        self._volumes.touch(row)
        return Response(202)

    def set_bootable(self, row: JsonObject, body: JsonObject) -> Response:
        """Set or clear the bootable flag."""
        row["bootable"] = _boolean(body.get("bootable"))
        self._volumes.touch(row)
        return Response(200)

    def reset_status(self, row: JsonObject, body: JsonObject) -> Response:
        """Set the status."""
        row["status"] = body.get("status") or row["status"]
        self._volumes.touch(row)
        return Response(202)

    def retype(self, row: JsonObject, body: JsonObject) -> Response:
        """Change the type."""
        type_ = self._types.named(body.get("new_type") or "")
        if row["status"] not in {"available", "in-use"}:
            raise ApiError(
                400,
                "Invalid volume: Retype needs volume to be in available or in-use state. Volume"
                f" {row['id']} current"
                f" status: {row['status']}.",
            )
        row |= {"previous_status": row["status"], "status": "retyping"}
        self._volumes.touch(row)
        seconds = self.cinder.cloud.delays.volume_action
        self.cinder.cloud.schedule.after(seconds, "volume.retyped", row["id"], type_["name"])
        return Response(202)

    def detach(self, row: JsonObject, body: JsonObject) -> Response:
        """Detach a volume; without attachments nothing happens."""
        del body
        for attachment in list(row["attachments"]):
            self.end_detach(row, attachment["server_id"])
        return Response(202)

    def attach(self, row: JsonObject, body: JsonObject) -> Response:
        """Mark a volume as attached."""
        self.end_attach(row, body.get("instance_uuid", ""), body.get("mountpoint", ""), row["updated_at"])
        return Response(202)

    def force_delete(self, row: JsonObject, body: JsonObject) -> Response:
        """Delete a volume in any status."""
        del body
        self._volumes.remove(row)
        return Response(202)

    def set_image_metadata(self, row: JsonObject, body: JsonObject) -> Response:
        """Set metadata of the image."""
        row["image"] = {**(row["image"] or {}), **(body.get("metadata") or {})}
        self._volumes.touch(row)
        return Response(200, {"metadata": row["image"]})

    def reserve(self, row: JsonObject, body: JsonObject) -> Response:
        """Reserve a volume."""
        del body
        self.begin_attach(row)
        return Response(202)

    def unreserve(self, row: JsonObject, body: JsonObject) -> Response:
        """Free a reserved volume."""
        del body
        row["status"] = "available"
        self._volumes.touch(row)
        return Response(202)

    def end_detaching(self, row: JsonObject, body: JsonObject) -> Response:
        """Give up a detachment."""
        del body
        if row["status"] == "detaching":
            row["status"] = "in-use"
            self._volumes.touch(row)
        return Response(202)

    def nothing(self, row: JsonObject, body: JsonObject) -> Response:
        """Accept an action without effect."""
        del row, body
        return Response(202)

    def _extended(self, id_: str, size: int) -> None:
        row = self._volumes.table.get(id_)
        if row is not None and row["status"] == "extending":
            row |= {"size": size, "status": row.pop("previous_status", "available")}
            self._volumes.touch(row)

    def _retyped(self, id_: str, name: str) -> None:
        row = self._volumes.table.get(id_)
        if row is not None and row["status"] == "retyping":
            row |= {"volume_type": name, "status": row.pop("previous_status", "available")}
            self._volumes.touch(row)

    def _released(self, id_: str, server_id: str) -> None:
        row = self._volumes.table.get(id_)
        if row is not None:
            self.end_detach(row, server_id)


def _boolean(value: Any) -> bool:
    return value in (True, 1, "1", "true", "True", "yes", "on")
