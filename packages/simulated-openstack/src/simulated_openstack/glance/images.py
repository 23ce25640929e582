"""Images: their properties, data, tags, members and import."""

from __future__ import annotations

import hashlib
import html
from typing import Any, Final

from simulated_openstack.glance import downloads
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, timestamp
from simulated_openstack.state import Table

DISK_FORMATS: Final = (
    "ami",
    "ari",
    "aki",
    "vhd",
    "vhdx",
    "vmdk",
    "raw",
    "qcow2",
    "vdi",
    "iso",
    "ploop",
)
CONTAINER_FORMATS: Final = ("ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")
VISIBILITIES: Final = ("community", "public", "private", "shared")
MISMATCH: Final = "Provided object does not match schema 'image'"
FAILED: Final = "\n\nFailed validating the schema"  # Glance prints it
CONFLICT: Final = "There was a conflict when trying to complete your request."
READ_ONLY: Final = frozenset(
    {
        "status",
        "created_at",
        "updated_at",
        "size",
        "virtual_size",
        "checksum",
        "file",
        "self",
        "schema",
        "owner",
    }
    | {"os_hash_algo", "os_hash_value", "direct_url", "stores"}
)
BASE: Final = frozenset(
    {
        "id",
        "name",
        "visibility",
        "protected",
        "min_disk",
        "min_ram",
        "disk_format",
        "container_format",
        "tags",
    }
    | {"os_hidden", "locations"}
    | READ_ONLY
)


class Images:
    """All images. `_data` is never kept: only its size and its sums."""

    def __init__(self, glance: Service) -> None:
        """Add the routes."""
        self.glance = glance
        self.table: Table = glance.cloud.state.table("glance.image", "owner")
        glance.cloud.schedule.register("image.import", self._imported)
        add = glance.router.add
        one = "/v2/images/{id_}"
        add("GET", "/v2/images", self.index)
        add("POST", "/v2/images", self.post)
        add("GET", one, self.show)
        add("PATCH", one, self.patch)
        add("DELETE", one, self.delete)
        add("PUT", f"{one}/file", self.upload)
        add("GET", f"{one}/file", self.download)
        add("PUT", f"{one}/stage", self.upload)
        add("POST", f"{one}/import", self.start_import)
        add("POST", f"{one}/actions/{{action}}", self.act)
        add("PUT", f"{one}/tags/{{tag}}", self.add_tag)
        add("DELETE", f"{one}/tags/{{tag}}", self.remove_tag)
        add("GET", f"{one}/members", self.members)
        add("POST", f"{one}/members", self.add_member)
        add("PUT", f"{one}/members/{{member}}", self.change_member)
        add("DELETE", f"{one}/members/{{member}}", self.remove_member)

    def create(self, owner: str, values: JsonObject) -> JsonObject:
        """Keep a new image without data."""
        now = timestamp()
        row = {
            "name": None,
            "disk_format": None,
            "container_format": None,
            "visibility": "shared",
            "size": None,
            "virtual_size": None,
            "checksum": None,
            "protected": False,
            "min_ram": 0,
            "min_disk": 0,
            "os_hash_algo": None,
            "os_hash_value": None,
            "os_hidden": False,
            "owner": owner,
            "tags": [],
            **values,
            "id": values.get("id") or new_id(),
            "status": "queued",
            "created_at": now,
            "updated_at": now,
            "_members": {},
        }
        row["tags"] = sorted(set(row["tags"]))
        return self.table.save(row)

    def fill(self, row: JsonObject, data: bytes) -> None:
        """Give an image its data; it becomes active."""
        row |= {
            "size": len(data),
            "virtual_size": len(data) if row["disk_format"] == "raw" else None,
            "checksum": hashlib.md5(data, usedforsecurity=False).hexdigest(),
            "os_hash_algo": "sha512",
            "os_hash_value": hashlib.sha512(data).hexdigest(),
            "status": "active",
            "stores": "file",
        }
        self._touch(row)

    def visible(self, call: Call, id_: str) -> JsonObject:
        """Return an image that the caller may read.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(id_)
        if row is None or not self._may_read(call, row):
            raise ApiError(404, f"No image found with ID {id_}")
        return row

    # requests

    def index(self, call: Call) -> Response:
        """List images in pages."""
        request = call.request
        words = {"limit", "marker", "sort_key", "sort_dir", "sort"}
        filters = [(key, value) for key, value in request.query if key not in words]
        rows = [row for row in self.table if self._may_read(call, row) and _matches(row, filters)]
        keys = request.values("sort_key") or ["created_at"]
        reverse = (request.value("sort_dir") or "desc") == "desc"
        rows.sort(key=lambda row: [str(row.get(key)) for key in (*keys, "id")], reverse=reverse)
        marker, limit = request.value("marker"), int(request.value("limit") or 25)
        if marker:
            ids = [row["id"] for row in rows]
            if marker not in ids:
                raise ApiError(400, f"Image {marker} not found", "BadRequest")
            rows = rows[ids.index(marker) + 1 :]
        query = request.target.partition("?")[2]
        first = "/v2/images" + (
            f"?{'&'.join(p for p in query.split('&') if not p.startswith('marker='))}" if query else ""
        )
        body = {
            "images": [self._view(row) for row in rows[:limit]],
            "first": first,
            "schema": "/v2/schemas/images",
        }
        if len(rows) >= limit and limit:
            body["next"] = request.following(rows[limit - 1]["id"], "")
        return Response(200, body)

    def post(self, call: Call) -> Response:
        """Create an image."""
        values = dict(call.body) if isinstance(call.body, dict) else {}
        _check(values)
        if values.get("visibility") == "public" and not call.caller.is_admin:
            raise ApiError(403, "You are not authorized to complete publicize_image action.")
        if values.get("id") and self.table.get(values["id"]) is not None:
            raise ApiError(409, f"Image ID {values['id']} already exists!")
        row = self.create(values.pop("owner", None) or call.caller.project_id, values)
        headers = {
            "Location": f"{call.base}/v2/images/{row['id']}",
            "OpenStack-image-import-methods": METHODS,
        }
        return Response(201, self._view(row), headers)

    def show(self, call: Call, id_: str) -> Response:
        """Show an image."""
        return Response(200, self._view(self.visible(call, id_)))

    def patch(self, call: Call, id_: str) -> Response:
        """Change an image by a JSON patch."""
        self.visible(call, id_)
        row = self._owned(call, id_)
        for change in call.body or []:
            _apply(row, change)
        _check({k: v for k, v in row.items() if k in {"visibility", "disk_format", "container_format"}})
        self._touch(row)
        return Response(200, self._view(row))

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an image that is not protected."""
        row = self._owned(call, id_, " to delete")
        if row["protected"]:
            raise ApiError(403, f"Image {id_} is protected and cannot be deleted.")
        self.table.remove(id_)
        return Response(204)

    def upload(self, call: Call, id_: str) -> Response:
        """Receive the data of an image."""
        row = self._owned(call, id_)
        if row["status"] != "queued":
            raise ApiError(409, f"Image status transition from {row['status']} to saving is not allowed")
        self.fill(row, call.request.content)
        return Response(204)

    def download(self, call: Call, id_: str) -> Response:
        """Answer that there is no data."""
        self.visible(call, id_)
        return Response(204)

    def start_import(self, call: Call, id_: str) -> Response:
        """Import the data from a location, or the staged data."""
        row = self._owned(call, id_)
        given = (call.body or {}).get("method") or {}
        method, location = given.get("name"), str(given.get("uri") or "")
        if method not in METHODS.split(","):
            raise ApiError(400, f"Unknown import method name '{method}'.")
        if row["status"] not in {"queued", "uploading"}:
            raise ApiError(409, f"Image with status {row['status']} cannot be target for import")
        if method == "web-download" and not downloads.is_allowed(location):
            raise ApiError(400, f"URI for web-download does not pass filtering: {html.escape(location)}")
        row["status"] = "importing"
        self._touch(row)
        self.glance.cloud.schedule.after(self.glance.cloud.delays.image, "image.import", id_)
        return Response(202, self._view(row))

    def act(self, call: Call, id_: str, action: str) -> Response:
        """Deactivate or reactivate an image."""
        row = self._owned(call, id_)
        if action not in {"deactivate", "reactivate"}:
            raise ApiError(404, "The resource could not be found.")
        row["status"] = "deactivated" if action == "deactivate" else "active"
        self._touch(row)
        return Response(204)

    def add_tag(self, call: Call, id_: str, tag: str) -> Response:
        """Add a tag."""
        row = self._owned(call, id_)
        row["tags"] = sorted({*row["tags"], tag})
        self._touch(row)
        return Response(204)

    def remove_tag(self, call: Call, id_: str, tag: str) -> Response:
        """Remove a tag."""
        row = self._owned(call, id_)
        if tag not in row["tags"]:
            raise ApiError(404, "The resource could not be found.")
        row["tags"] = [item for item in row["tags"] if item != tag]
        self._touch(row)
        return Response(204)

    def members(self, call: Call, id_: str) -> Response:
        """List the projects with which an image is shared."""
        row = self.visible(call, id_)
        if row["visibility"] != "shared":
            text = f"Not allowed to list members for image {id_}: Only shared images have members."
            raise ApiError(403, text)
        members = [_member(row, name) for name in row["_members"]]
        return Response(200, {"members": members, "schema": "/v2/schemas/members"})

    def add_member(self, call: Call, id_: str) -> Response:
        """Share an image with a project."""
        row = self._owned(call, id_)
        if row["visibility"] != "shared":
            raise ApiError(403, f"Not allowed to create members for image {id_}.")
        name = str((call.body or {}).get("member") or "")
        if name in row["_members"]:
            raise ApiError(409, f"Member {name} is duplicated for image {id_}")
        now = timestamp()
        row["_members"][name] = {"status": "pending", "created_at": now, "updated_at": now}
        self._touch(row)
        return Response(200, _member(row, name))

    def change_member(self, call: Call, id_: str, member: str) -> Response:
        """Accept or reject a shared image."""
        row = self.visible(call, id_)
        self._require_member(row, member)
        row["_members"][member] |= {"status": (call.body or {}).get("status"), "updated_at": timestamp()}
        self._touch(row)
        return Response(200, _member(row, member))

    def remove_member(self, call: Call, id_: str, member: str) -> Response:
        """Stop sharing an image with a project."""
        row = self._owned(call, id_)
        self._require_member(row, member)
        del row["_members"][member]
        self._touch(row)
        return Response(204)

    # helpers

    def _imported(self, id_: str) -> None:
        row = self.table.get(id_)
        if row is not None and row["status"] == "importing":
            self.fill(row, b"simulated")

    def _require_member(self, row: JsonObject, member: str) -> None:
        if member not in row["_members"]:
            raise ApiError(
                404, f"{html.escape(member)} not found in the member list of the image {row['id']}."
            )

    def _owned(self, call: Call, id_: str, verb: str = "") -> JsonObject:
        row = self.table.get(id_)
        if row is None or not self._may_read(call, row):
            raise ApiError(404, f"Failed to find image {id_}{verb}")
        if row["owner"] != call.caller.project_id and not call.caller.is_admin:
            raise ApiError(403, "You are not permitted to modify this image.")
        return row

    def _may_read(self, call: Call, row: JsonObject) -> bool:
        project = call.caller.project_id
        return (
            call.caller.is_admin
            or row["owner"] == project
            or row["visibility"] in {"public", "community"}
            or (row["visibility"] == "shared" and project in row["_members"])
        )

    def _touch(self, row: JsonObject) -> None:
        row["updated_at"] = timestamp()
        self.table.save(row)

    def _view(self, row: JsonObject) -> JsonObject:
        view = {key: value for key, value in row.items() if key[0] != "_"}
        path = f"/v2/images/{row['id']}"
        return {**view, "self": path, "file": f"{path}/file", "schema": "/v2/schemas/image"}


METHODS: Final = "copy-image,glance-direct,web-download"


def _member(row: JsonObject, name: str) -> JsonObject:
    return {**row["_members"][name], "member_id": name, "image_id": row["id"], "schema": "/v2/schemas/member"}


def _matches(row: JsonObject, filters: list[tuple[str, str]]) -> bool:
    for key, value in filters:
        if key == "tag":
            if value not in row["tags"]:
                return False
        elif value.startswith("in:"):
            if str(row.get(key)) not in value[3:].split(","):
                return False
        elif key == "member_status" or (key == "visibility" and value == "all"):
            continue
        elif str(row.get(key)).lower() != value.lower():
            return False
    return True


def _check(values: JsonObject) -> None:
    """Refuse values of a wrong form."""
    for name, allowed in (
        ("disk_format", DISK_FORMATS),
        ("container_format", CONTAINER_FORMATS),
        ("visibility", VISIBILITIES),
    ):
        value = values.get(name)
        if value is not None and value not in allowed:
            choices = [*(["None"] if name != "visibility" else []), *(repr(item) for item in allowed)]
            raise ApiError(400, f"{MISMATCH}: '{value}' is not one of [{', '.join(choices)}]{FAILED}")
    title = values.get("name")
    if title is not None and not isinstance(title, str):
        raise ApiError(400, f"{MISMATCH}: {title} is not of type 'null', 'string'{FAILED}")


def _apply(row: JsonObject, change: JsonObject) -> None:
    """Apply an operation of a JSON patch."""
    name = str(change.get("path", "")).lstrip("/")
    if name in READ_ONLY:
        raise ApiError(403, f"Attribute '{name}' is read-only.")
    if change.get("op") == "remove":
        if name in BASE:
            raise ApiError(403, f"Property {name} may not be removed.")
        if name not in row:
            raise ApiError(409, CONFLICT, f"Property {name} does not exist.")
        del row[name]
        return
    if change.get("op") == "replace" and name not in row:
        raise ApiError(409, CONFLICT, f"Property {name} does not exist.")
    value: Any = change.get("value")
    row[name] = sorted(set(value)) if name == "tags" else value
