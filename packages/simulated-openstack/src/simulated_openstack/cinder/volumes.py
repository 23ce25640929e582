"""Volumes and their metadata."""

from __future__ import annotations

import ast
from typing import Any, Final

from simulated_openstack.cinder.messages import DRIVER_FAILED, NO_BACKEND, Messages
from simulated_openstack.cinder.pages import listing
from simulated_openstack.cinder.quotas import Quotas
from simulated_openstack.cinder.types import Types
from simulated_openstack.glance.service import Glance
from simulated_openstack.http import ApiError, Request, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Caller, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

MALFORMED: Final = (
    "The server could not comply with the request since it is either malformed or otherwise incorrect."
)
DELETABLE: Final = frozenset({"available", "error", "error_restoring", "error_extending", "error_managing"})
SERVICE_ID: Final = "5c1f5e1e-0000-4000-8000-000000000001"  # of the only backend
ZONES: Final = ("nova",)
BACKEND: Final = "fake"


class Volumes:
    """All volumes."""

    def __init__(
        self, cinder: Service, types: Types, quotas: Quotas, glance: Glance, messages: Messages
    ) -> None:
        """Add the routes."""
        self._types, self._quotas, self._glance, self._messages = types, quotas, glance, messages
        self.cinder = cinder
        self.table: Table = cinder.cloud.state.table("cinder.volume", "project_id")
        self.snapshots: Table = cinder.cloud.state.table("cinder.snapshot", "volume_id", "project_id")
        cinder.cloud.schedule.register("volume.created", self._created)
        cinder.cloud.schedule.register("volume.deleted", self._deleted)
        add = cinder.router.add
        one = "/v3/volumes/{id_}"
        add("GET", "/v3/volumes", self.index)
        add("POST", "/v3/volumes", self.post)
        add("GET", "/v3/volumes/detail", self.detail)
        add("GET", "/v3/volumes/summary", self.summary)
        add("GET", one, self.show)
        add("PUT", one, self.put)
        add("DELETE", one, self.delete)
        add("GET", f"{one}/metadata", self.metadata)
        add("POST", f"{one}/metadata", self.add_metadata)
        add("PUT", f"{one}/metadata", self.set_metadata)
        add("DELETE", f"{one}/metadata/{{key}}", self.remove_metadata)

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new volume; it becomes available after a while."""
        size = self._size(call, values)
        type_ = self._types.named(values.get("volume_type") or "fake")
        self._quotas.require_volume(call.caller.project_id, size)
        source = values.get("source_volid")
        image_id = values.get("imageRef") or values.get("image_id")
        bootable = bool(image_id) or bool(source and self.found(source)["bootable"])
        if values.get("snapshot_id"):
            bootable = self.found(self.snapshot(values["snapshot_id"])["volume_id"])["bootable"]
        now = precise_timestamp()
        row = {
            "id": new_id(),
            "status": "creating",
            "size": size,
            "availability_zone": values.get("availability_zone") or "nova",
            "created_at": now,
            "updated_at": now,
            "name": values.get("name", values.get("display_name")),
            "description": values.get("description", values.get("display_description")),
            "volume_type": type_["name"],
            "snapshot_id": values.get("snapshot_id"),
            "source_volid": source,
            "metadata": dict(values.get("metadata") or {}),
            "user_id": call.caller.user_id,
            "project_id": call.caller.project_id,
            "bootable": bootable,
            "encrypted": type_.get("encryption") is not None,
            "multiattach": bool(values.get("multiattach", False)),
            "attachments": [],
            "image": self._image_metadata(call, image_id),
        }
        self.table.save(row)
        fault = self.cinder.cloud.faults.action("volume_create", row["name"])
        seconds = self.cinder.cloud.delays.volume_create + fault.delay
        error = fault.error or (None if _has_backend(type_) else NO_BACKEND.text)
        self.cinder.cloud.schedule.after(seconds, "volume.created", row["id"], error, call.request.id)
        return row

    def make(self, server: JsonObject, disk: JsonObject) -> JsonObject:
        """Keep a volume that nova makes for a server: from an image, from a snapshot or empty."""
        source = {"image": "imageRef", "snapshot": "snapshot_id"}.get(disk.get("source_type") or "")
        values: JsonObject = {"name": "", "size": disk.get("volume_size") or server["flavor"]["disk"] or 1}
        if source is not None:
            values[source] = disk.get("uuid")
        if disk.get("volume_type"):
            values["volume_type"] = disk["volume_type"]
        caller = Caller("", server["user_id"], server["project_id"], frozenset({"admin"}))
        row = self.create(Call(Request("POST", "/"), caller, ""), values)
        row["status"] = "available"
        return self.touch(row)

    def remove(self, row: JsonObject) -> None:
        """Begin to delete a volume."""
        row["status"] = "deleting"
        self.touch(row)
        fault = self.cinder.cloud.faults.action("volume_delete", row["name"])
        seconds = self.cinder.cloud.delays.volume_delete + fault.delay
        self.cinder.cloud.schedule.after(seconds, "volume.deleted", row["id"], fault.error)

    def found(self, id_: str) -> JsonObject:
        """Return a volume.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(id_)
        if row is None:
            raise ApiError(404, f"Volume {id_} could not be found.")
        return row

    def snapshot(self, id_: str) -> JsonObject:
        """Return a snapshot of a volume.

        Raises:
            ApiError: 404.
        """
        row = self.snapshots.get(id_)
        if row is None:
            raise ApiError(404, f"Snapshot {id_} could not be found.")
        return row

    def visible(self, call: Call, id_: str) -> JsonObject:
        """Return a volume of the caller's project."""
        row = self.found(id_)
        if not call.caller.is_admin and row["project_id"] != call.caller.project_id:
            raise ApiError(404, f"Volume {id_} could not be found.")
        return row

    def touch(self, row: JsonObject) -> JsonObject:
        """Keep a changed volume."""
        row["updated_at"] = precise_timestamp()
        return self.table.save(row)

    # requests

    def index(self, call: Call) -> Response:
        """List volumes with their names only."""
        return listing(call, "volumes", [_short(call, row) for row in self._matching(call)])

    def summary(self, call: Call) -> Response:
        """Show the number and the size of volumes."""
        rows = self._matching(call)
        total = {"total_count": len(rows), "total_size": sum(row["size"] for row in rows)}
        return Response(200, {"volume-summary": {**total, "metadata": {}}})

    def detail(self, call: Call) -> Response:
        """List volumes."""
        return listing(call, "volumes", [self.view(call, row) for row in self._matching(call)])

    def post(self, call: Call) -> Response:
        """Create a volume."""
        values = (call.body or {}).get("volume") if isinstance(call.body, dict) else None
        if not isinstance(values, dict):
            raise ApiError(400, "Invalid input for field/attribute volume.")
        row = self.create(call, values)
        view = _without_admin_fields(self.view(call, row))
        view.pop("volume_image_metadata", None)
        from_source = bool(row["snapshot_id"] or row["source_volid"])
        bootable = view["bootable"] if from_source else "false"
        return Response(202, {"volume": {**view, "bootable": bootable, "updated_at": None}})

    def show(self, call: Call, id_: str) -> Response:
        """Show a volume."""
        return Response(200, {"volume": self.view(call, self.visible(call, id_))})

    def put(self, call: Call, id_: str) -> Response:
        """Change name, description or metadata."""
        row = self.visible(call, id_)
        given = (call.body or {}).get("volume") or {}
        row |= {key: given[key] for key in ("name", "description", "metadata") if key in given}
        return Response(200, {"volume": _without_admin_fields(self.view(call, self.touch(row)))})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an unused volume without snapshots."""
        row = self.visible(call, id_)
        forced = call.request.value("force") == "True"
        if self.snapshots.where("volume_id", id_) and call.request.value("cascade") != "True":
            raise _undeletable()
        if row["status"] not in DELETABLE and not forced:
            raise _undeletable()
        self.remove(row)
        return Response(202)

    def metadata(self, call: Call, id_: str) -> Response:
        """Show the metadata."""
        return Response(200, {"metadata": self.visible(call, id_)["metadata"]})

    def add_metadata(self, call: Call, id_: str) -> Response:
        """Add metadata."""
        row = self.visible(call, id_)
        row["metadata"] = {**row["metadata"], **((call.body or {}).get("metadata") or {})}
        return Response(200, {"metadata": self.touch(row)["metadata"]})

    def set_metadata(self, call: Call, id_: str) -> Response:
        """Replace the metadata."""
        row = self.visible(call, id_)
        row["metadata"] = dict((call.body or {}).get("metadata") or {})
        return Response(200, {"metadata": self.touch(row)["metadata"]})

    def remove_metadata(self, call: Call, id_: str, key: str) -> Response:
        """Remove a key."""
        row = self.visible(call, id_)
        if key not in row["metadata"]:
            raise ApiError(404, f"Volume {id_} has no metadata with key {key}.")
        row["metadata"] = {name: value for name, value in row["metadata"].items() if name != key}
        self.touch(row)
        return Response(200)

    def view(self, call: Call, row: JsonObject) -> JsonObject:
        """Return a volume as the API shows it."""
        hidden = {"project_id", "image", "previous_status"}
        view = {key: value for key, value in row.items() if key not in hidden}
        view |= {
            "links": _links(call, row),
            "bootable": "true" if row["bootable"] else "false",
            "replication_status": None,
            "consistencygroup_id": None,
            "migration_status": None,
            "os-vol-tenant-attr:tenant_id": row["project_id"],
        }
        if call.caller.is_admin:
            host = None if row["status"] == "creating" else "fakehost@fake#fake"
            view |= {"os-vol-mig-status-attr:migstat": None, "os-vol-mig-status-attr:name_id": None}
            view["os-vol-host-attr:host"] = host
        if row["image"]:
            view["volume_image_metadata"] = row["image"]
        if call.version >= (3, 13):
            view["group_id"] = None
        if call.version >= (3, 21):
            view["provider_id"] = None
        if call.version >= (3, 48):
            view |= {"service_uuid": SERVICE_ID, "shared_targets": False}
        if call.version >= (3, 61):
            view["cluster_name"] = None
        if call.version >= (3, 63):
            view["volume_type_id"] = self._types.named(row["volume_type"])["id"]
        if call.version >= (3, 65):
            view["consumes_quota"] = True
        return view

    # helpers

    def _matching(self, call: Call) -> list[JsonObject]:
        query = call.request.query
        every = call.caller.is_admin and call.request.value("all_tenants") in {"1", "True", "true"}
        project = call.caller.project_id
        rows = list(self.table) if every else self.table.where("project_id", project)
        for key, value in query:
            if key in {"name", "status", "id", "volume_type", "availability_zone", "bootable", "project_id"}:
                rows = [row for row in rows if str(row[key]).lower() == value.lower()]
            elif key == "metadata":
                rows = [row for row in rows if _has(row["metadata"], value)]
        return rows[::-1]  # the newest first

    def _size(self, call: Call, values: JsonObject) -> int:
        """Return the size of a new volume, which may follow from its source."""
        size, least = values.get("size"), 1
        zone = values.get("availability_zone")
        if size is not None and str(size).isdigit() and int(size) < 1:
            text = (
                f"Invalid input for field/attribute size. Value: {size}. {size} is less than the minimum of 1"
            )
            raise ApiError(400, text)
        if isinstance(size, str) and not size.isdigit():
            text = (
                f"Invalid input for field/attribute size. Value: {size}. '{size}' does not match '^[0-9]+$'"
            )
            raise ApiError(400, text)
        if values.get("snapshot_id"):
            snapshot = self.snapshot(values["snapshot_id"])
            least = snapshot["volume_size"]
            size = size or least
            if int(size) < least:
                text = f"Volume size '{size}'GB cannot be smaller than the snapshot size {least}GB. "
                raise ApiError(400, f"Invalid input received: {text}They must be >= original snapshot size.")
        if values.get("source_volid"):
            source = self.visible(call, values["source_volid"])
            size = size or source["size"]
            if int(size) < source["size"]:
                text = (
                    f"Volume size '{size}'GB cannot be smaller than original volume size  {source['size']}GB."
                )
                raise ApiError(400, f"Invalid input received: {text} They must be >= original volume size.")
        if zone and zone not in ZONES:
            raise ApiError(400, f"Availability zone '{zone}' is invalid.")
        if size is None:
            raise ApiError(400, MALFORMED)
        return int(size)

    def _image_metadata(self, call: Call, image_id: str | None) -> JsonObject | None:
        if not image_id:
            return None
        image = self._glance.images.table.get(image_id)
        if image is None:
            raise ApiError(400, "Invalid image identifier or unable to access requested image.")
        self._glance.images.visible(call, image_id)
        names = ("checksum", "container_format", "disk_format", "min_disk", "min_ram", "size")
        extra = {key: str(value) for key, value in image.items() if key.startswith("owner_specified")}
        shown = {name: str(image[name]) for name in names}
        return {
            "image_id": image_id,
            "image_name": image["name"],
            **shown,
            **extra,
        }

    def _created(self, id_: str, error: str | None, request_id: str = "") -> None:
        row = self.table.get(id_)
        if row is None or row["status"] != "creating":
            return
        row["status"] = "error" if error else "available"
        self.touch(row)
        if error is None:
            return
        if error != NO_BACKEND.text and not row["image"]:
            self._messages.add(row, request_id, DRIVER_FAILED)
        self._messages.add(row, request_id, NO_BACKEND)

    def _deleted(self, id_: str, error: str | None) -> None:
        row = self.table.get(id_)
        if row is None or row["status"] != "deleting":
            return
        if error:
            row["status"] = "error_deleting"
            self.touch(row)
            return
        for snapshot in self.snapshots.where("volume_id", id_):
            self.snapshots.remove(snapshot["id"])
        self.table.remove(id_)


def _has_backend(type_: JsonObject) -> bool:
    """Whether the only backend serves a volume type."""
    return bool((type_.get("extra_specs") or {}).get("volume_backend_name", BACKEND) == BACKEND)


def _has(metadata: JsonObject, text: str) -> bool:
    """Whether metadata contains a dictionary, given in Python's notation."""
    try:
        wanted: Any = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return isinstance(wanted, dict) and all(metadata.get(key) == value for key, value in wanted.items())


def _short(call: Call, row: JsonObject) -> JsonObject:
    return {"id": row["id"], "name": row["name"], "links": _links(call, row)}


def _links(call: Call, row: JsonObject) -> list[JsonObject]:
    path = f"volumes/{row['id']}"
    return [
        {"rel": "self", "href": f"{call.base}/v3/{path}"},
        {"rel": "bookmark", "href": f"{call.base}/{path}"},
    ]


def _without_admin_fields(view: JsonObject) -> JsonObject:
    """Return a view without the fields that answers to changes leave out."""
    return {key: value for key, value in view.items() if not key.startswith("os-vol-")}


def _undeletable() -> ApiError:
    return ApiError(
        400,
        "Invalid volume: Volume status must be available or error or error_restoring or error_extending"
        " or"
        " error_managing and must not be migrating, attached, belong to a group, have snapshots,"
        " awaiting a"
        " transfer, or be disassociated from snapshots after volume transfer.",
    )
