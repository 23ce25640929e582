"""Objects of the network API: their requests, the checks of bodies and queries, lists in pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.fields import (
    REQUIRED,
    TAG_FILTERS,
    TRUE,
    Field,
    bad_request,
    checked_value,
    has_tags,
    only_fields,
    page,
)
from simulated_openstack.neutron.quotas import Quotas
from simulated_openstack.neutron.tags import Tags
from simulated_openstack.service import Call, Service, new_id, project_of, timestamp
from simulated_openstack.state import Table

FOREIGN_PROJECT: Final = (
    "Specifying 'project_id' other than the authenticated project in request is not allowed for the current "
    "user."
)
STANDARD: Final = ("id", "created_at", "updated_at", "revision_number", "status")
LIST_WORDS: Final = ("fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir")


@dataclasses.dataclass
class Families:
    """All families of the service by `singular`, and the quotas of their objects."""

    quotas: Quotas
    by_kind: dict[str, Family] = dataclasses.field(default_factory=dict)


class Family:
    """The objects of a kind; subclasses declare their fields and rules."""

    singular: ClassVar[str]
    collection: ClassVar[str]
    path: ClassVar[str] = ""  # of the collection, if it is not `collection` with hyphens
    label: ClassVar[str]  # in errors: `Network X could not be found.`
    not_found: ClassVar[str] = "{label} {id} could not be found."
    not_found_kind: ClassVar[str]
    quota: ClassVar[str] = ""  # name of its quota
    fields: ClassVar[dict[str, Field]]
    indexes: ClassVar[tuple[str, ...]] = ()
    taggable: ClassVar[bool] = True
    admin_only: ClassVar[bool] = False
    extra_filters: ClassVar[tuple[str, ...]] = ()
    admin_fields: ClassVar[frozenset[str]] = frozenset()  # shown to administrators only

    def __init__(self, neutron: Service, families: Families) -> None:
        """Add the routes."""
        self.neutron, self.quotas, self._families = neutron, families.quotas, families
        self.table: Table = neutron.cloud.state.table(f"neutron.{self.singular}", "project_id", *self.indexes)
        families.by_kind[self.singular] = self
        if self.quota:
            self.quotas.tables[self.quota] = self.table
        root = f"/v2.0/{self.path or self.collection.replace('_', '-')}"
        one = f"{root}/{{id_}}"
        add = neutron.router.add
        add("GET", root, self.index)
        add("POST", root, self.post)
        add("GET", one, self.show)
        add("PUT", one, self.put)
        add("DELETE", one, self.delete)
        if self.taggable:
            Tags(neutron.router, self, one)

    def family(self, kind: str) -> Family:
        """Return the objects of another kind, for the methods that all families have."""
        return self._families.by_kind[kind]

    # requests

    def index(self, call: Call) -> Response:
        """List objects: filtered, sorted, in pages."""

        def shown(rows: Iterable[JsonObject]) -> list[JsonObject]:
            return [self.view_for(call, self.view(row)) for row in rows]

        if call.request.values("sort_key"):  # perhaps of a field that only views have
            views, links = page(call, shown(self._matching(call)))
        else:
            rows, links = page(call, list(self._matching(call)))
            views = shown(rows)
        body: JsonObject = {self.collection: only_fields(call, views)}
        if links:
            body[f"{self.collection}_links"] = links
        return Response(200, body)

    def post(self, call: Call) -> Response:
        """Create an object, or several."""
        many = (call.body or {}).get(self.collection) if isinstance(call.body, dict) else None
        if isinstance(many, list):
            rows = [self.create(call, self.checked(call, values, new=True)) for values in many]
            return Response(201, {self.collection: [self.view_for(call, self.view(row)) for row in rows]})
        row = self.create(call, self.checked(call, self.given(call), new=True))
        return Response(201, {self.singular: self.view_for(call, self.created_view(row))})

    def show(self, call: Call, id_: str) -> Response:
        """Show an object."""
        view = self.view_for(call, self.view(self.visible(call, id_)))
        return Response(200, {self.singular: only_fields(call, [view])[0]})

    def put(self, call: Call, id_: str) -> Response:
        """Change an object."""
        given = self.checked(call, self.given(call), new=False)
        row = self.owned(call, id_, "update")
        require_revision(call, row)
        self.change(call, row, given)
        return Response(200, {self.singular: self.view_for(call, self.view(self.touch(row)))})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an object."""
        self.remove(call, self.owned(call, id_, "delete"))
        return Response(204)

    # for the families

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new object."""
        return self.save_new(call, values)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change to an object, which is then kept."""
        del call
        row.update(values)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove an object."""
        del call
        self.table.remove(row["id"])

    def view(self, row: JsonObject) -> JsonObject:
        """Return an object as the API shows it."""
        return {key: value for key, value in row.items() if key[0] != "_"}

    def created_view(self, row: JsonObject) -> JsonObject:
        """Return a new object as the answer to its creation shows it."""
        return self.view(row)

    def view_for(self, call: Call, view: JsonObject) -> JsonObject:
        """Return the part of a view that the caller may see."""
        if call.caller.is_admin:
            return view
        return {key: value for key, value in view.items() if key not in self.admin_fields}

    def is_visible(self, call: Call, row: JsonObject) -> bool:
        """Whether the caller may read an object."""
        return call.caller.is_admin or row["project_id"] == call.caller.project_id

    def save_new(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new object with the fields that all objects have."""
        project = project_of(call, values)
        self.quotas.require(self.quota, project)
        now = timestamp()
        row = {"id": new_id(), **values, "project_id": project, "tenant_id": project}
        row |= {"created_at": now, "updated_at": now, "revision_number": row.get("revision_number", 0)}
        if self.taggable:
            row["tags"] = []
        return self.table.save(row)

    def touch(self, row: JsonObject) -> JsonObject:
        """Keep a changed object."""
        row["updated_at"] = timestamp()
        row["revision_number"] = row.get("revision_number", 0) + 1
        return self.table.save(row)

    def found(self, id_: str) -> JsonObject:
        """Return an object.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(id_)
        if row is None:
            raise ApiError(404, self.not_found.format(label=self.label, id=id_), self.not_found_kind)
        return row

    def visible(self, call: Call, id_: str) -> JsonObject:
        """Return an object that the caller may read."""
        row = self.table.get(id_)
        return row if row is not None and self.is_visible(call, row) else self.found("" if row else id_)

    def owned(self, call: Call, id_: str, verb: str) -> JsonObject:
        """Return an object that the caller may change."""
        row = self.visible(call, id_)
        own = row["project_id"] == call.caller.project_id and not self.admin_only
        if not own and not call.caller.is_admin:
            self.disallow(verb)
        return row

    def disallow(self, verb: str, field: str = "") -> None:
        """Refuse a caller by policy."""
        rule = f"rule:{verb}_{self.singular}"
        text = f"({rule} and {rule}:{field})" if field else rule
        raise ApiError(403, f"{text} is disallowed by policy", "PolicyNotAuthorized")

    # bodies

    def given(self, call: Call) -> JsonObject:
        """Return the object in the body of a request."""
        body = call.body
        if not isinstance(body, dict) or not isinstance(body.get(self.singular), dict):
            raise bad_request(f"Unable to find '{self.singular}' in request body")
        return dict(body[self.singular])

    def checked(self, call: Call, given: JsonObject, *, new: bool) -> JsonObject:
        """Return the values of a body, complete for a new object."""
        project = {"project_id": Field(None, "any", put=False), "tenant_id": Field(None, "any", put=False)}
        known = {**project, **self.fields}
        unknown = [name for name in given if name not in known and name not in STANDARD]
        if "tags" in unknown and self.taggable:
            if new:
                raise bad_request("Attribute 'tags' not allowed in POST")
            raise bad_request("Cannot update read-only attribute tags")
        if unknown:
            raise bad_request(f"Unrecognized attribute(s) '{', '.join(unknown)}'")
        for name in given:
            field = known.get(name)
            if field is None or not (field.post if new else field.put):
                text = (
                    f"Attribute '{name}' not allowed in POST"
                    if new
                    else f"Cannot update read-only attribute {name}"
                )
                raise bad_request(text)
        values = _with_defaults(self.fields, given) if new else given
        checked = {name: checked_value(name, known[name], value) for name, value in values.items()}
        if new and not call.caller.is_admin:
            projects = {given.get(name) for name in project} - {None, call.caller.project_id}
            if projects:
                raise bad_request(FOREIGN_PROJECT)
        verb = "create" if new else "update"
        if self.admin_only and not call.caller.is_admin:
            self.disallow(verb)
        for name in given:
            is_default = new and checked[name] == known[name].default  # permitted to everyone
            if known[name].admin and not is_default and not call.caller.is_admin:
                self.disallow(verb, name)
        return checked

    # lists

    def _matching(self, call: Call) -> Iterable[JsonObject]:
        """Return the visible objects that match the filters of the query."""
        query: dict[str, list[str]] = {}
        for key, value in call.request.query:
            query.setdefault(key, []).append(value)
        filters = {k: v for k, v in query.items() if k not in LIST_WORDS and k not in TAG_FILTERS}
        known = {*self.fields, *STANDARD, "project_id", "tenant_id", *self.extra_filters}
        unknown = [name for name in filters if name not in known]
        if unknown:
            raise bad_request(f"{unknown} is invalid attribute for filtering")
        rows = [row for row in self._candidates(filters) if self.is_visible(call, row)]
        for name, values in filters.items():
            rows = [row for row in rows if self.matches(row, name, values)]
        for name in TAG_FILTERS:
            for value in query.get(name, ()):
                rows = [row for row in rows if has_tags(row, name, set(value.split(",")))]
        return rows

    def _candidates(self, filters: dict[str, list[str]]) -> Iterable[JsonObject]:
        if filters.get("id"):
            return [row for id_ in filters["id"] if (row := self.table.get(id_)) is not None]
        for name in self.indexes:
            if len(filters.get(name, ())) == 1:
                return self.table.where(name, filters[name][0])
        return self.table

    def matches(self, row: JsonObject, name: str, values: list[str]) -> bool:
        """Whether a field has any of the values."""
        value = self.view(row).get(name) if name not in row else row[name]
        if isinstance(value, bool):
            return any((text in TRUE) == value for text in values)
        if isinstance(value, list):
            return any(text in value for text in values)
        return ("" if value is None else str(value)) in values


def _with_defaults(fields: Mapping[str, Field], given: JsonObject) -> JsonObject:
    for name, field in fields.items():
        if field.default is REQUIRED and name not in given:
            raise bad_request(f"Failed to parse request. Required attribute '{name}' not specified")
    defaults = {
        name: field.default() if callable(field.default) else field.default
        for name, field in fields.items()
        if field.default is not REQUIRED
    }
    return {**defaults, **given}


def require_revision(call: Call, row: JsonObject) -> None:
    """Refuse a conditional request that is based on another revision."""
    name, _, wanted = call.request.headers.get("if-match", "").partition("=")
    if name == "revision_number" and wanted != str(row.get("revision_number")):
        message = f"Constrained to {wanted}, but current revision is {row.get('revision_number')}"
        raise ApiError(412, message, "RevisionNumberConstraintFailed")
