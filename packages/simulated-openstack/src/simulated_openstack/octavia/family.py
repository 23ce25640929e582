"""Objects of the load balancing API: their requests, the checks of bodies, lists in pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.fields import TAG_FILTERS, has_tags, only_fields, page
from simulated_openstack.octavia.fields import FORBIDDEN, REQUIRED, ROOT, Field, checked_value, invalid
from simulated_openstack.octavia.quotas import Quotas
from simulated_openstack.service import Call, Service, new_id, project_of, timestamp
from simulated_openstack.state import Table

LIST_WORDS: Final = (
    "fields",
    "limit",
    "marker",
    "page_reverse",
    "sort",
    "sort_key",
    "sort_dir",
    "project_id",
)
PARENT: Final = "parent"  # kind of error


class Family:
    """The objects of a kind; subclasses declare their fields and rules."""

    singular: ClassVar[str]
    plural: ClassVar[str]
    path: ClassVar[str]  # of the collection, below ROOT
    argument: ClassVar[str]  # in errors: the name of a body
    label: ClassVar[str]  # in errors: `Listener X not found.`
    fields: ClassVar[dict[str, Field]]
    indexes: ClassVar[tuple[str, ...]] = ()
    quota: ClassVar[str] = ""  # name of its quota
    admin_only: ClassVar[bool] = False
    update_status: ClassVar[int] = 200

    def __init__(self, octavia: Service, quotas: Quotas) -> None:
        """Add the routes."""
        self.octavia, self.quotas = octavia, quotas
        self.table: Table = octavia.cloud.state.table(f"octavia.{self.singular}", "project_id", *self.indexes)
        root, one = f"{ROOT}/{self.path}", f"{ROOT}/{self.path}/{{id_}}"
        add = octavia.router.add
        add("GET", root, self.index)
        add("POST", root, self.post)
        add("GET", one, self.show)
        add("PUT", one, self.put)
        add("DELETE", one, self.delete)

    def rows(self, kind: str) -> Table:
        """Return all objects of another kind."""
        return self.octavia.cloud.state.table(f"octavia.{kind}")

    # requests

    def index(self, call: Call, **parents: str) -> Response:
        """List objects: filtered, sorted, in pages."""
        shown, links = page(call, self._matching(call, self.candidates(call, **parents)))
        following = [] if not any(link["rel"] == "next" for link in links) else [_next_link(call, shown)]
        views = only_fields(call, [self.view(row) for row in shown])
        return Response(200, {self.plural: views, f"{self.plural}_links": following})

    def post(self, call: Call, **parents: str) -> Response:
        """Create an object."""
        self._require_role(call)
        row = self.create(call, self.checked(call, new=True), **parents)
        return Response(201, {self.singular: self.view(row)})

    def show(self, call: Call, id_: str, **parents: str) -> Response:
        """Show an object."""
        view = self.view(self.visible(call, id_, **parents))
        return Response(200, {self.singular: only_fields(call, [view])[0]})

    def put(self, call: Call, id_: str, **parents: str) -> Response:
        """Change an object."""
        self._require_role(call)
        row = self.visible(call, id_, **parents)
        self.change(call, row, self.checked(call, new=False))
        return Response(200, {self.singular: self.view(row)})

    def delete(self, call: Call, id_: str, **parents: str) -> Response:
        """Delete an object."""
        self._require_role(call)
        self.remove(call, self.visible(call, id_, **parents))
        return Response(204)

    # for the families

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Keep a new object."""
        del parents
        return self.save_new(project_of(call, values), values)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change to an object."""
        del call
        self.touch(row, values)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove an object."""
        del call
        self.table.remove(row["id"])

    def view(self, row: JsonObject) -> JsonObject:
        """Return an object as the API shows it."""
        shown = {key: value for key, value in row.items() if key[0] != "_"}
        return {**shown, "tenant_id": row.get("project_id")}

    def candidates(self, call: Call, **parents: str) -> Iterable[JsonObject]:
        """Return the objects of a list before it is filtered."""
        del parents
        if call.caller.is_admin or self.admin_only:
            project = call.request.value("project_id")
            return self.table.where("project_id", project) if project else self.table
        return self.table.where("project_id", call.caller.project_id)

    def found(self, id_: str) -> JsonObject:
        """Return an object.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(id_)
        if row is None:
            raise ApiError(404, f"{self.label} {id_} not found.")
        return row

    def visible(self, call: Call, id_: str, **parents: str) -> JsonObject:
        """Return an object that the caller may use."""
        del parents
        row = self.found(id_)
        if not (call.caller.is_admin or self.admin_only or row["project_id"] == call.caller.project_id):
            raise ApiError(403, FORBIDDEN)
        return row

    def save_new(self, project: str, values: JsonObject) -> JsonObject:
        """Keep a new object with the fields that all objects have."""
        self.quotas.require(self.quota, self.label, self.table, project)
        row = {"id": new_id(), **values, "project_id": project}
        row |= {"created_at": timestamp(zone=""), "updated_at": None}
        return self.table.save(row)

    def touch(self, row: JsonObject, values: JsonObject) -> JsonObject:
        """Keep a changed object."""
        row.update(values)
        row["updated_at"] = timestamp(zone="")
        return self.table.save(row)

    def _require_role(self, call: Call) -> None:
        if self.admin_only and not call.caller.is_admin:
            raise ApiError(403, FORBIDDEN)

    # bodies

    def checked(self, call: Call, *, new: bool) -> JsonObject:
        """Return the values of a body, complete for a new object; null stands for the default."""
        body = call.body
        given = body.get(self.singular) if isinstance(body, dict) else None
        return self.checked_values(given, new=new)

    def checked_values(self, given: Any, *, new: bool) -> JsonObject:
        """Return the values of an object in a body."""
        if not isinstance(given, dict):
            raise invalid(self.singular, given, "Mandatory field missing.")
        known = {**self.fields, "project_id": Field(put=False), "tenant_id": Field(put=False)}
        unknown = [name for name in given if name not in known or not (new or known[name].put)]
        if unknown:
            place = f"{self.argument}.{self.singular}"
            raise ApiError(400, f"Unknown attribute for argument {place}: {', '.join(unknown)}")
        values = {
            name: value if value is None else checked_value(name, known[name], value)
            for name, value in given.items()
        }
        for name, field in self.fields.items():
            if values.get(name) is None and (new or name in values):
                if field.default is REQUIRED:
                    raise invalid(name, None, "Mandatory field missing.")
                values[name] = field.default() if callable(field.default) else field.default
        return values

    # lists

    def _matching(self, call: Call, rows: Iterable[JsonObject]) -> list[JsonObject]:
        found = list(rows)
        for name, text in call.request.query:
            if name in TAG_FILTERS:
                found = [row for row in found if has_tags(row, name, set(text.split(",")))]
            elif name not in LIST_WORDS:
                found = [row for row in found if _text(self.view(row).get(name)) == text]
        return found


@contextmanager
def as_parent() -> Iterator[None]:
    """Mark the refusal of an object in the middle of a path, whose answer has another form."""
    try:
        yield
    except ApiError as error:
        raise ApiError(error.status, error.message, PARENT) from error


def _next_link(call: Call, shown: list[JsonObject]) -> JsonObject:
    """Return the link to the next page, which omits the filters."""
    query = f"limit={call.request.value('limit')}&marker={shown[-1]['id']}"
    return {"rel": "next", "href": f"{call.base}{call.request.path}?{query}"}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
