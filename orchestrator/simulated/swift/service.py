"""The service: accounts of projects, their containers and objects. Objects keep their size, not their
content.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, Final

from orchestrator.json_types import JsonObject
from orchestrator.simulated.http import REASONS, ApiError, Request, Response
from orchestrator.simulated.service import LABEL, Call, Service, precise_timestamp
from orchestrator.simulated.state import Table

SimulatedCloud = Any  # its module imports this module

MAX_LISTED: Final = 10_000
MAX_NAME: Final = 256  # bytes of the name of a container
CONFLICT: Final = "There was a conflict when trying to complete your request."
METADATA: Final = ("x-container-meta-", "x-container-read", "x-container-write", "x-account-meta-")


class Swift(Service):
    """Containers and objects."""

    name: ClassVar[str] = "swift"
    port_offset: ClassVar[int] = 8
    public_paths: ClassVar[frozenset[str]] = frozenset({"/", "/info"})

    def __init__(self, cloud: SimulatedCloud) -> None:
        """Start without containers."""
        super().__init__(cloud)
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
        caller = self.caller(request)
        version, account, *names = request.path.strip("/").split("/", 3)
        if version != "v1" or not account:
            raise ApiError(404, "The resource could not be found.")
        if account != f"AUTH_{caller.project_id}" and not caller.is_admin:
            raise ApiError(403, "Access was denied to this resource.")
        call = Call(request, caller, self.base)
        handlers = (self._account, self._container, self._object)
        return handlers[len(names)](call, account, *names)

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

    def _object(self, call: Call, account: str, container: str, name: str) -> Response:
        if self.containers.get(f"{account}/{container}") is None:
            raise ApiError(404, "The resource could not be found.")
        id_ = f"{account}/{container}/{name}"
        if call.request.method == "PUT":
            content = call.request.content
            etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
            values = {"container": f"{account}/{container}", "name": name, "bytes": len(content)}
            self.objects.save({"id": id_, **values, "hash": etag, "last_modified": precise_timestamp()})
            return Response(201, None, {"Etag": etag})
        row = self.objects.get(id_)
        if row is None:
            raise ApiError(404, "The resource could not be found.")
        if call.request.method == "DELETE":
            self.objects.remove(id_)
            return Response(204)
        return Response(200, b"\0" * row["bytes"], {"Content-Type": "application/octet-stream"})


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


def _metadata(request: Request) -> JsonObject:
    """Return the headers that are kept, as received."""
    return {name: value for name, value in request.headers.items() if name.startswith(METADATA)}


def _sent(headers: JsonObject) -> dict[str, str]:
    """Return kept headers with capitals; those without a value were removed."""
    return {name.title(): str(value) for name, value in headers.items() if value}
