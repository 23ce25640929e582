"""Backups of volumes: as many as the project wants, of the size of their volumes."""

from __future__ import annotations

from simulated_openstack.cinder.pages import listing
from simulated_openstack.cinder.volumes import Volumes
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table


class Backups:
    """All backups."""

    def __init__(self, cinder: Service, volumes: Volumes) -> None:
        """Add the routes."""
        self._volumes = volumes
        self.cinder = cinder
        self.table: Table = cinder.cloud.state.table("cinder.backup", "project_id")
        cinder.cloud.schedule.register("backup.created", self._created)
        cinder.cloud.schedule.register("backup.restored", self._restored)
        cinder.cloud.schedule.register("backup.deleted", self.table.remove)
        add = cinder.router.add
        add("GET", "/v3/backups", self.index)
        add("POST", "/v3/backups", self.post)
        add("GET", "/v3/backups/detail", self.detail)
        add("GET", "/v3/backups/{id_}", self.show)
        add("DELETE", "/v3/backups/{id_}", self.delete)
        add("POST", "/v3/backups/{id_}/restore", self.restore)

    def index(self, call: Call) -> Response:
        """List backups with their names only."""
        return listing(call, "backups", [_view(row) for row in self._matching(call)])

    def detail(self, call: Call) -> Response:
        """List backups."""
        return listing(call, "backups", [_full_view(row) for row in self._matching(call)])

    def post(self, call: Call) -> Response:
        """Create a backup of a volume that is available, or in use with `force`."""
        values = (call.body or {}).get("backup") or {}
        volume = self._volumes.visible(call, values.get("volume_id", ""))
        if volume["status"] == "in-use" and not values.get("force"):
            raise ApiError(400, "Invalid volume: Backing up an in-use volume must use the force flag.")
        if volume["status"] not in {"available", "in-use"}:
            text = "Invalid volume: Volume to be backed up must be available or in-use, but the current"
            raise ApiError(400, f'{text} status is "{volume["status"]}".')
        now = precise_timestamp()
        row = {
            "id": new_id(),
            "created_at": now,
            "updated_at": now,
            "name": values.get("name"),
            "description": values.get("description"),
            "container": values.get("container"),
            "volume_id": volume["id"],
            "size": volume["size"],
            "status": "creating",
            "fail_reason": None,
            "project_id": volume["project_id"],
        }
        self.table.save(row)
        before, volume["status"] = volume["status"], "backing-up"
        self._volumes.touch(volume)
        fault = self.cinder.cloud.faults.action("backup", row["name"])
        seconds = self.cinder.cloud.delays.volume_action + fault.delay
        self.cinder.cloud.schedule.after(seconds, "backup.created", row["id"], before, fault.error)
        return Response(202, {"backup": _view(row)})

    def show(self, call: Call, id_: str) -> Response:
        """Show a backup."""
        return Response(200, {"backup": _full_view(self._visible(call, id_))})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete a backup."""
        row = self._visible(call, id_)
        if row["status"] not in {"available", "error"}:
            raise ApiError(400, "Invalid backup: Backup status must be available or error")
        row["status"] = "deleting"
        self._touch(row)
        self.cinder.cloud.schedule.after(self.cinder.cloud.delays.volume_delete, "backup.deleted", id_)
        return Response(202)

    def restore(self, call: Call, id_: str) -> Response:
        """Restore a backup to an available volume, which is not smaller."""
        row = self._visible(call, id_)
        values = (call.body or {}).get("restore") or {}
        volume = self._volumes.visible(call, values.get("volume_id") or "")
        if row["status"] != "available":
            raise ApiError(400, "Invalid backup: Backup status must be available")
        if volume["status"] != "available":
            raise ApiError(400, "Invalid volume: Volume to be restored to must be available")
        if volume["size"] < row["size"]:
            text = f"volume size {volume['size']} is too small to restore backup of size {row['size']}."
            raise ApiError(400, f"Invalid volume: {text}")
        volume["status"], row["status"] = "restoring-backup", "restoring"
        self._volumes.touch(volume)
        self._touch(row)
        seconds = self.cinder.cloud.delays.volume_action
        self.cinder.cloud.schedule.after(seconds, "backup.restored", id_, volume["id"])
        restored = {"backup_id": id_, "volume_id": volume["id"], "volume_name": volume["name"]}
        return Response(202, {"restore": restored})

    def _matching(self, call: Call) -> list[JsonObject]:
        rows = self.table.where("project_id", call.caller.project_id)
        for key, value in call.request.query:
            if key in {"name", "status", "volume_id"}:
                rows = [row for row in rows if str(row[key]) == value]
        return rows[::-1]

    def _visible(self, call: Call, id_: str) -> JsonObject:
        row = self.table.get(id_)
        if row is None or not (call.caller.is_admin or row["project_id"] == call.caller.project_id):
            raise ApiError(404, f"Backup {id_} could not be found.")
        return row

    def _touch(self, row: JsonObject) -> JsonObject:
        row["updated_at"] = precise_timestamp()
        return self.table.save(row)

    def _created(self, id_: str, status: str, error: str | None) -> None:
        row = self.table.get(id_)
        if row is None or row["status"] != "creating":
            return
        row["status"], row["fail_reason"] = ("error", error) if error else ("available", None)
        self._touch(row)
        self._return_volume(row["volume_id"], "backing-up", status)

    def _restored(self, id_: str, volume_id: str) -> None:
        row = self.table.get(id_)
        if row is not None and row["status"] == "restoring":
            row["status"] = "available"
            self._touch(row)
        self._return_volume(volume_id, "restoring-backup", "available")

    def _return_volume(self, volume_id: str, status: str, following: str) -> None:
        volume = self._volumes.table.get(volume_id)
        if volume is not None and volume["status"] == status:
            volume["status"] = following
            self._volumes.touch(volume)


def _view(row: JsonObject) -> JsonObject:
    return {"id": row["id"], "name": row["name"], "links": []}


def _full_view(row: JsonObject) -> JsonObject:
    shown = {key: value for key, value in row.items() if key != "project_id"}
    further = {
        "availability_zone": "nova",
        "object_count": 0,
        "is_incremental": False,
        "has_dependent_backups": False,
        "snapshot_id": None,
        "data_timestamp": row["created_at"],
    }
    return {**_view(row), **shown, **further}
