"""Objects with the same five requests: users, projects, roles, services …"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_hex
from simulated_openstack.state import Table

CONFLICT: Final = "Conflict occurred attempting to store"


def link(keystone: Service, path: str) -> str:
    """Return the URL of a path of the API."""
    return f"{keystone.base}/v3{path}"


class Family:
    """The objects of a kind; subclasses declare their names, fields and rules."""

    singular: ClassVar[str]
    collection: ClassVar[str]
    indexes: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[tuple[str, ...]] = ("name",)
    filters: ClassVar[tuple[str, ...]] = ("name", "domain_id", "enabled")
    defaults: ClassVar[JsonObject] = {}
    admin_reads: ClassVar[bool] = True  # whether only an admin may read them

    def __init__(self, keystone: Service) -> None:
        """Add the routes."""
        self.keystone = keystone
        self.table: Table = keystone.cloud.state.table(f"keystone.{self.singular}", *self.indexes)
        # Called with an object before it is removed: they remove what belongs to it, or refuse.
        self.on_remove: list[Callable[[JsonObject], None]] = []
        root, one = f"/v3/{self.collection}", f"/v3/{self.collection}/{{id_}}"
        add = keystone.router.add
        add("GET", root, self.index)
        add("POST", root, self.post)
        add("GET", one, self.show)
        add("PATCH", one, self.patch)
        add("DELETE", one, self.delete)

    def index(self, call: Call) -> Response:
        """List the objects that match the query."""
        self.require(call, "list", plural=True, admin=self.admin_reads)
        wanted = [(key, value) for key, value in call.request.query if key in self.filters]
        rows = [
            self.view(row)
            for row in self.table
            if all(_text(row.get(key)) == _text(value) for key, value in wanted)
        ]
        return listing(call, self.collection, rows)

    def post(self, call: Call) -> Response:
        """Create an object."""
        self.require(call, "create")
        return Response(201, {self.singular: self.view(self.create(self.values(call, create=True)))})

    def show(self, call: Call, id_: str) -> Response:
        """Show an object."""
        row = self.found(id_)
        self.require(call, "get", admin=self.admin_reads and not self.owns(call, row))
        return Response(200, {self.singular: self.view(row)})

    def patch(self, call: Call, id_: str) -> Response:
        """Change an object."""
        row = self.found(id_)
        self.require(call, "update")
        return Response(200, {self.singular: self.changed_view(self.change(row, self.values(call)), row)})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an object."""
        row = self.found(id_)
        self.require(call, "delete")
        self.remove(row)
        return Response(204)

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new object."""
        row = {"id": new_hex(), **self.defaults, **values}
        self.check(row, new=True)
        return self.table.save(row)

    def change(self, row: JsonObject, values: JsonObject) -> JsonObject:
        """Keep a change."""
        values.pop("id", None)
        self.check({**row, **values}, new=False)
        row.update(values)
        return self.table.save(row)

    def remove(self, row: JsonObject) -> None:
        """Remove an object, after all that belongs to it."""
        for act in self.on_remove:
            act(row)
        self.table.remove(row["id"])

    def check(self, row: JsonObject, *, new: bool) -> None:
        """Refuse a name that is taken."""
        for other in self.table:
            if other["id"] != row["id"] and self.is_same(other, row):
                raise ApiError(409, f"{CONFLICT} {self.singular} - {self.duplicate(row, new=new)}.")

    def is_same(self, first: JsonObject, other: JsonObject) -> bool:
        """Whether two objects may not exist together."""
        return first["name"] == other["name"] and first.get("domain_id") == other.get("domain_id")

    def duplicate(self, row: JsonObject, *, new: bool) -> str:
        """Return the reason of a conflict."""
        where = f" at domain ID {row['domain_id']}" if new and row.get("domain_id") else ""
        return f"Duplicate entry found with name {row['name']}{where}"

    def view(self, row: JsonObject) -> JsonObject:
        """Return an object as the API shows it."""
        return {**row, "links": {"self": link(self.keystone, f"/{self.collection}/{row['id']}")}}

    def changed_view(self, row: JsonObject, _before: JsonObject) -> JsonObject:
        """Return a changed object as the API shows it."""
        return self.view(row)

    def found(self, id_: str) -> JsonObject:
        """Return an object.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(id_)
        if row is None:
            raise ApiError(404, f"Could not find {self.singular}: {id_}.")
        return row

    def named(self, name: str) -> JsonObject | None:
        """Return the first object of a name."""
        return next((row for row in self.table if row.get("name") == name), None)

    def values(self, call: Call, *, create: bool = False) -> JsonObject:
        """Return the fields in the body of a request.

        Raises:
            ApiError: 400, they are missing.
        """
        given = call.body.get(self.singular) if isinstance(call.body, dict) else None
        if not isinstance(given, dict):
            raise ApiError(400, f"'{self.singular}' is a required property")
        for name in self.required if create else ():
            if name not in given:
                raise ApiError(
                    400,
                    f"Invalid input for field/attribute {self.singular}. Value: {given}. "
                    f"'{name}' is a required property",
                )
        return dict(given)

    def owns(self, call: Call, row: JsonObject) -> bool:
        """Whether the caller may read an object without being an admin."""
        del call, row
        return False

    def require(self, call: Call, verb: str, *, plural: bool = False, admin: bool = True) -> None:
        """Refuse callers without the right."""
        if admin and not call.caller.is_admin:
            forbid(f"identity:{verb}_{self.collection if plural else self.singular}")


def forbid(what: str) -> None:
    """Refuse a caller.

    Raises:
        ApiError: always.
    """
    raise ApiError(403, f"You are not authorized to perform the requested action: {what}.")


def listing(call: Call, key: str, rows: Iterable[JsonObject]) -> Response:
    """Return the answer with a list."""
    query = call.request.target.partition("?")[2]
    link = f"{call.base}{call.request.path}" + (f"?{query}" if query else "")
    return Response(200, {key: list(rows), "links": {"next": None, "self": link, "previous": None}})


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value in ("True", "False") else str(value)
