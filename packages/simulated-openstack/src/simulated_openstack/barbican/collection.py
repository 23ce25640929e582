"""Objects of a kind: listed in pages, shown and deleted."""

from __future__ import annotations

from typing import ClassVar, Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

MAX_PAGE: Final = 100
PAGE: Final = 10


class Collection:
    """Objects of a kind. Members whose names begin with `_` are internal."""

    path: ClassVar[str]
    singular: ClassVar[str]

    def __init__(self, barbican: Service) -> None:
        """Add the routes."""
        self.barbican = barbican
        self.table: Table = barbican.cloud.state.table(f"barbican.{self.singular}", "_project")
        add = barbican.router.add
        add("GET", f"/v1/{self.path}", self.index)
        add("POST", f"/v1/{self.path}", self.post)
        add("GET", f"/v1/{self.path}/{{id_}}", self.show)
        add("DELETE", f"/v1/{self.path}/{{id_}}", self.delete)

    def checked(self, call: Call, body: JsonObject) -> JsonObject:
        """Return the values of a new object.

        Raises:
            ApiError: the request is not valid.
        """
        raise NotImplementedError

    def index(self, call: Call) -> Response:
        """Return a page of the project's objects, oldest first."""
        request = call.request
        rows = self.table.where("_project", call.caller.project_id)
        name = request.value("name")
        if name:
            rows = [row for row in rows if name in str(row.get("name") or "")]
        offset = int(request.value("offset") or 0)
        limit = min(int(request.value("limit") or PAGE), MAX_PAGE)
        answer: JsonObject = {
            self.path: [self.view(row) for row in rows[offset : offset + limit]],
            "total": len(rows),
        }
        if offset + limit < len(rows):
            answer["next"] = f"{call.base}/v1/{self.path}?limit={limit}&offset={offset + limit}"
        return Response(200, answer)

    def post(self, call: Call) -> Response:
        """Create an object."""
        body = call.body if isinstance(call.body, dict) else {}
        row = self.add(call.caller.project_id, self.checked(call, body))
        status = 202 if self.singular == "order" else 201
        return Response(status, {f"{self.singular}_ref": self.ref(row)})

    def add(self, project_id: str, values: JsonObject) -> JsonObject:
        """Keep a new object."""
        now = precise_timestamp()
        times = {"created": now, "updated": now, "_project": project_id}
        return self.table.save({"id": new_id(), "status": "ACTIVE", **times, **values})

    def show(self, call: Call, id_: str) -> Response:
        """Return the description of an object."""
        return Response(200, self.view(self.found(call, id_)))

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an object."""
        self.table.remove(self.found(call, id_)["id"])
        return Response(204)

    def found(self, call: Call, id_: str) -> JsonObject:
        """Return an object.

        Raises:
            ApiError: there is none.
        """
        row = self.table.get(id_)
        if row is None or row["_project"] != call.caller.project_id:
            title = self.singular.title()
            raise ApiError(404, f"Not Found. Sorry but your {self.singular} is in another castle ({title}).")
        return row

    def ref(self, row: JsonObject) -> str:
        """Return the URL of an object."""
        return f"{self.barbican.base}/v1/{self.path}/{row['id']}"

    def view(self, row: JsonObject) -> JsonObject:
        """Return the description of an object."""
        shown = {key: value for key, value in row.items() if key[0] != "_" and key != "id"}
        return {**shown, f"{self.singular}_ref": self.ref(row)}
