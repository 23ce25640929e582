"""The service: accounts of projects, their containers and objects. Objects above `MAX_KEPT` bytes keep their
size, not their content.
"""

from __future__ import annotations

import base64
import hashlib
from typing import ClassVar, Final

from simulated_openstack.environment import Environment
from simulated_openstack.http import REASONS, ApiError, Request, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import LABEL, Call, Identity, Service, precise_timestamp
from simulated_openstack.state import Table
from simulated_openstack.swift.temporary_urls import check_signature, is_temporary

MAX_LISTED: Final = 10_000
MAX_NAME: Final = 256  # bytes of the name of a container
MAX_KEPT: Final = 64 * 1024  # bytes of an object
VERSIONS: Final = "x-versions-location"  # of a container: where former contents of its objects are kept
CONFLICT: Final = "There was a conflict when trying to complete your request."
METADATA: Final = ("x-container-meta-", "x-container-read", "x-container-write", "x-account-meta-", VERSIONS)


class Swift(Service):
    """Containers and objects."""

    name: ClassVar[str] = "swift"
    port_offset: ClassVar[int] = 8
    public_paths: ClassVar[frozenset[str]] = frozenset({"/", "/info"})

    def __init__(self, cloud: Environment, identity: Identity) -> None:
        """Start without containers."""
        super().__init__(cloud, identity)
        self.accounts: Table = cloud.state.table("swift.account")
        self.containers: Table = cloud.state.table("swift.container", "account")
        self.objects: Table = cloud.state.table("swift.object", "container")

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error: a page of HTML."""
        title = REASONS.get(error.status, "Error")
        page = f"<html><h1>{title}</h1><p>{error.message}</p></html>"
        return Response(error.status, page.encode(), {"Content-Type": "text/html; charset=UTF-8"})

    def _handle(self, request: Request) -> Response:
        """Find the account, the container and the object in the path: names of objects contain slashes."""
        if request.path in self.public_paths:
            return Response(200, {"swift": {"version": LABEL, "max_container_name_length": MAX_NAME}})
        version, account, *names = request.path.strip("/").split("/", 3)
        if version != "v1" or not account:
            raise ApiError(404, "The resource could not be found.")
        if len(names) == 2 and is_temporary(request):
            check_signature(request, self.accounts.get(account))
            return self._object(request, account, *names)
        caller = self.caller(request)
        if account != f"AUTH_{caller.project_id}" and not caller.is_admin:
            raise ApiError(403, "Access was denied to this resource.")
        call = Call(request, caller, self.base)
        if len(names) == 2:
            return self._object(request, account, *names)
        return self._container(call, account, names[0]) if names else self._account(call, account)

    def _account(self, call: Call, account: str) -> Response:
        row = self.accounts.get(account) or {"id": account, "headers": {}}
        match call.request.method:
            case "POST":
                row["headers"] |= _metadata(call.request)
                self.accounts.save(row)
                return Response(204)
            case "HEAD" | "GET":
                rows = self.containers.where("account", account)
                count = {"X-Account-Container-Count": str(len(rows))}
                listed = [{"name": one["name"]} for one in rows]
                status = 204 if call.request.method == "HEAD" else 200
                return Response(status, listed if status == 200 else None, _sent(row["headers"]) | count)
        raise ApiError(405, "The method is not allowed for this resource.")

    def _container(self, call: Call, account: str, name: str) -> Response:
        row = self.containers.get(f"{account}/{name}")
        if call.request.method == "PUT":
            return self._put_container(call, account, name, row)
        if row is None:
            raise ApiError(404, "The resource could not be found.")
        objects = self.objects.where("container", row["id"])
        match call.request.method:
            case "POST":
                row["headers"] |= _metadata(call.request)
                self.containers.save(row)
                return Response(204)
            case "DELETE":
                if objects:
                    raise ApiError(409, CONFLICT)
                self.containers.remove(row["id"])
                return Response(204)
            case "HEAD" | "GET":
                return _described(call.request, row, objects)
        raise ApiError(405, "The method is not allowed for this resource.")

    def _put_container(self, call: Call, account: str, name: str, row: JsonObject | None) -> Response:
        if len(name.encode()) > MAX_NAME:
            raise ApiError(400, f"Container name length of {len(name.encode())} longer than {MAX_NAME}")
        status = 201 if row is None else 202
        row = row or {"id": f"{account}/{name}", "account": account, "name": name, "headers": {}}
        row["headers"] |= _metadata(call.request)
        self.containers.save(row)
        return Response(status)

    def _object(self, request: Request, account: str, container: str, name: str) -> Response:
        holder = self.containers.get(f"{account}/{container}")
        if holder is None:
            raise ApiError(404, "The resource could not be found.")
        versions = holder["headers"].get(VERSIONS)
        place = f"{account}/{versions}" if versions else ""
        row = self.objects.get(f"{account}/{container}/{name}")
        if request.method == "PUT":
            if row is not None and place:
                self._save(place, f"{_versions_prefix(name)}{row['last_modified']}", row)
            etag = hashlib.md5(request.content, usedforsecurity=False).hexdigest()
            kept = base64.b64encode(request.content).decode() if len(request.content) <= MAX_KEPT else None
            values = {"bytes": len(request.content), "hash": etag, "content": kept}
            self._save(f"{account}/{container}", name, values | {"last_modified": precise_timestamp()})
            return Response(201, None, {"Etag": etag})
        if row is None:
            raise ApiError(404, "The resource could not be found.")
        if request.method == "DELETE":
            self.objects.remove(row["id"])
            if place:
                self._restore(place, f"{account}/{container}", name)
            return Response(204)
        kept = row.get("content")
        content = b"\0" * row["bytes"] if kept is None else base64.b64decode(kept)
        return Response(200, content, {"Content-Type": "application/octet-stream", "Etag": row["hash"]})

    def _save(self, container: str, name: str, row: JsonObject) -> None:
        self.objects.save({**row, "id": f"{container}/{name}", "container": container, "name": name})

    def _restore(self, place: str, container: str, name: str) -> None:
        """Replace a deleted object by its newest former content."""
        former = [
            row
            for row in self.objects.where("container", place)
            if row["name"].startswith(_versions_prefix(name))
        ]
        if former:
            newest = max(former, key=lambda row: str(row["name"]))
            self.objects.remove(newest["id"])
            self._save(container, name, newest)


def _described(request: Request, row: JsonObject, objects: list[JsonObject]) -> Response:
    """Return the headers of a container and, for GET, the list of its objects."""
    headers = _sent(row["headers"]) | {
        "X-Container-Object-Count": str(len(objects)),
        "X-Container-Bytes-Used": str(sum(one["bytes"] for one in objects)),
    }
    if request.method == "HEAD":
        return Response(204, None, headers)
    limit = min(int(request.value("limit") or MAX_LISTED), MAX_LISTED)
    marker = request.value("marker") or ""
    rows = sorted((one for one in objects if one["name"] > marker), key=lambda one: str(one["name"]))
    fields = ("name", "bytes", "hash", "last_modified")
    return Response(200, [{name: one[name] for name in fields} for one in rows[:limit]], headers)


def _versions_prefix(name: str) -> str:
    """Return the beginning of the names of former contents: the length of the name, and the name."""
    return f"{len(name):03x}{name}/"


def _metadata(request: Request) -> JsonObject:
    """Return the headers that are kept, as received."""
    return {name: value for name, value in request.headers.items() if name.startswith(METADATA)}


def _sent(headers: JsonObject) -> dict[str, str]:
    """Return kept headers with capitals; those without a value were removed."""
    return {name.title(): str(value) for name, value in headers.items() if value}
