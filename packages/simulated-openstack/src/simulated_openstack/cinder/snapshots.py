"""Snapshots of volumes."""

from __future__ import annotations

from simulated_openstack.cinder.pages import listing
from simulated_openstack.cinder.quotas import Quotas
from simulated_openstack.cinder.volumes import Volumes
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp


class Snapshots:
    """All snapshots."""

    def __init__(self, cinder: Service, volumes: Volumes, quotas: Quotas) -> None:
        """Add the routes."""
        self._volumes, self._quotas = volumes, quotas
        self.cinder = cinder
        self.table = volumes.snapshots
        cinder.cloud.schedule.register("snapshot.created", self._created)
        cinder.cloud.schedule.register("snapshot.deleted", self._deleted)
        add = cinder.router.add
        add("GET", "/v3/snapshots", self.index)
        add("POST", "/v3/snapshots", self.post)
        add("GET", "/v3/snapshots/detail", self.detail)
        add("GET", "/v3/snapshots/{id_}", self.show)
        add("PUT", "/v3/snapshots/{id_}", self.put)
        add("DELETE", "/v3/snapshots/{id_}", self.delete)
        add("POST", "/v3/snapshots/{id_}/action", self.act)

    def index(self, call: Call) -> Response:
        """List snapshots in short form."""
        return listing(call, "snapshots", [_view(row) for row in self._matching(call)])

    def detail(self, call: Call) -> Response:
        """List snapshots."""
        return listing(call, "snapshots", [_full_view(row) for row in self._matching(call)])

    def post(self, call: Call) -> Response:
        """Create a snapshot."""
        values = (call.body or {}).get("snapshot") or {}
        volume = self._volumes.visible(call, values.get("volume_id", ""))
        self._quotas.require_snapshot(volume["project_id"])
        if volume["status"] not in {"available", "in-use"}:
            text = (
                f"Invalid volume: Volume {volume['id']} status must be available or in-use, but current"
                " status is"
            )
            raise ApiError(400, f"{text}: {volume['status']}.")
        now = precise_timestamp()
        row = {
            "id": new_id(),
            "created_at": now,
            "updated_at": now,
            "name": values.get("name", values.get("display_name")),
            "description": values.get("description", values.get("display_description")),
            "volume_id": volume["id"],
            "volume_size": volume["size"],
            "status": "creating",
            "metadata": dict(values.get("metadata") or {}),
            "project_id": volume["project_id"],
        }
        self.table.save(row)
        self.cinder.cloud.schedule.after(
            self.cinder.cloud.delays.volume_create, "snapshot.created", row["id"]
        )
        return Response(202, {"snapshot": {**_view(row), "updated_at": None}})

    def show(self, call: Call, id_: str) -> Response:
        """Show a snapshot."""
        return Response(200, {"snapshot": _full_view(self._visible(call, id_))})

    def put(self, call: Call, id_: str) -> Response:
        """Change name or description."""
        row = self._visible(call, id_)
        given = (call.body or {}).get("snapshot") or {}
        row |= {key: given[key] for key in ("name", "description") if key in given}
        return Response(200, {"snapshot": _view(self._touch(row))})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete a snapshot."""
        row = self._visible(call, id_)
        if row["status"] not in {"available", "error", "error_deleting"}:
            text = (
                "Invalid snapshot: Snapshot status must be available or error and must not be part of a"
                " group."
            )
            raise ApiError(400, text)
        row["status"] = "deleting"
        self._touch(row)
        self.cinder.cloud.schedule.after(self.cinder.cloud.delays.volume_delete, "snapshot.deleted", id_)
        return Response(202)

    def act(self, call: Call, id_: str) -> Response:
        """Set the status."""
        row = self._visible(call, id_)
        status = ((call.body or {}).get("os-reset_status") or {}).get("status")
        if status:
            row["status"] = status
            self._touch(row)
        return Response(202)

    def _matching(self, call: Call) -> list[JsonObject]:
        rows = [row for row in self.table if row["project_id"] == call.caller.project_id]
        for key, value in call.request.query:
            if key in {"name", "status", "volume_id"}:
                rows = [row for row in rows if str(row[key]) == value]
        return rows[::-1]

    def _visible(self, call: Call, id_: str) -> JsonObject:
        row = self._volumes.snapshot(id_)
        if not call.caller.is_admin and row["project_id"] != call.caller.project_id:
            self._volumes.snapshot("")
        return row

    def _touch(self, row: JsonObject) -> JsonObject:
        row["updated_at"] = precise_timestamp()
        return self.table.save(row)

    def _created(self, id_: str) -> None:
        row = self.table.get(id_)
        if row is not None and row["status"] == "creating":
            row["status"] = "available"
            self._touch(row)

    def _deleted(self, id_: str) -> None:
        self.table.remove(id_)


def _view(row: JsonObject) -> JsonObject:
    names = ("id", "created_at", "updated_at", "name", "description", "volume_id", "status", "metadata")
    return {**{name: row[name] for name in names}, "size": row["volume_size"]}


def _full_view(row: JsonObject) -> JsonObject:
    progress = "100%" if row["status"] == "available" else "0%"
    prefix = "os-extended-snapshot-attributes"
    return {**_view(row), f"{prefix}:progress": progress, f"{prefix}:project_id": row["project_id"]}
