"""Flavors: their extra specs and access."""

from __future__ import annotations

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.nova.pages import links_of, listing
from simulated_openstack.service import Call, Service, new_id
from simulated_openstack.state import Table

PUBLIC = "os-flavor-access:is_public"


class Flavors:
    """All flavors."""

    def __init__(self, nova: Service) -> None:
        """Add the routes."""
        self.table: Table = nova.cloud.state.table("nova.flavor")
        add = nova.router.add
        one = "/v2.1/flavors/{id_}"
        add("GET", "/v2.1/flavors", self.index)
        add("POST", "/v2.1/flavors", self.post)
        add("GET", "/v2.1/flavors/detail", self.detail)
        add("GET", one, self.show)
        add("PUT", one, self.put)
        add("DELETE", one, self.delete)
        add("POST", f"{one}/action", self.act)
        add("GET", f"{one}/os-flavor-access", self.access)
        add("GET", f"{one}/os-extra_specs", self.specs)
        add("POST", f"{one}/os-extra_specs", self.add_specs)
        add("GET", f"{one}/os-extra_specs/{{key}}", self.spec)
        add("PUT", f"{one}/os-extra_specs/{{key}}", self.add_specs_by_key)
        add("DELETE", f"{one}/os-extra_specs/{{key}}", self.remove_spec)

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new flavor."""
        row = {
            "id": str(values.get("id") or values.get("flavorid") or new_id()),
            "name": values["name"],
            "ram": int(values["ram"]),
            "vcpus": int(values["vcpus"]),
            "disk": int(values["disk"]),
            "ephemeral": int(values.get("OS-FLV-EXT-DATA:ephemeral") or 0),
            "swap": int(values.get("swap") or 0),
            "rxtx_factor": float(values.get("rxtx_factor") or 1.0),
            "is_public": values.get(PUBLIC, True),
            "description": values.get("description"),
            "extra_specs": {},
            "access": [],
        }
        return self.table.save(row)

    def usable(self, call: Call, id_: str, *, status: int = 404) -> JsonObject:
        """Return a flavor that the caller may use."""
        row = self.table.get(str(id_))
        private = row is not None and not row["is_public"] and call.caller.project_id not in row["access"]
        if row is None or (private and not call.caller.is_admin):
            raise ApiError(status, f"Flavor {id_} could not be found.")
        return row

    def index(self, call: Call) -> Response:
        """List flavors with their names only."""
        rows = [
            {"id": row["id"], "name": row["name"], "links": links_of(call, "flavors", row["id"])}
            | ({"description": row["description"]} if call.version >= (2, 55) else {})
            for row in self._visible(call)
        ]
        return listing(call, "flavors", rows)

    def detail(self, call: Call) -> Response:
        """List flavors."""
        return listing(call, "flavors", [self.view(call, row) for row in self._visible(call)])

    def post(self, call: Call) -> Response:
        """Create a flavor."""
        _require_admin(call, "os-flavor-manage:create")
        values = (call.body or {}).get("flavor") or {}
        for name in ("name", "ram", "vcpus", "disk"):
            if name not in values:
                text = (
                    f"Invalid input for field/attribute flavor. Value: {values}. '{name}' is a required"
                    " property"
                )
                raise ApiError(400, text)
        for row in self.table:
            if row["name"] == values["name"]:
                raise ApiError(409, f"Flavor with name {values['name']} already exists.")
            if row["id"] == str(values.get("id")):
                raise ApiError(409, f"Flavor with ID {values['id']} already exists.")
        return Response(200, {"flavor": self.view(call, self.create(values))})

    def show(self, call: Call, id_: str) -> Response:
        """Show a flavor."""
        return Response(200, {"flavor": self.view(call, self.usable(call, id_))})

    def put(self, call: Call, id_: str) -> Response:
        """Change the description."""
        _require_admin(call, "os-flavor-manage:update")
        row = self.usable(call, id_)
        row["description"] = ((call.body or {}).get("flavor") or {}).get("description")
        return Response(200, {"flavor": self.view(call, self.table.save(row))})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete a flavor."""
        _require_admin(call, "os-flavor-manage:delete")
        self.table.remove(self.usable(call, id_)["id"])
        return Response(202)

    def act(self, call: Call, id_: str) -> Response:
        """Permit or forbid a project to use a private flavor."""
        _require_admin(call, "os-flavor-access:add_tenant_access")
        row, body = self.usable(call, id_), call.body or {}
        if "addTenantAccess" in body:
            project = body["addTenantAccess"]["tenant"]
            if project in row["access"]:
                text = f"Flavor access already exists for flavor {id_} and project {project} combination."
                raise ApiError(409, text)
            row["access"] = [*row["access"], project]
        else:
            project = body["removeTenantAccess"]["tenant"]
            if project not in row["access"]:
                raise ApiError(404, f"Flavor access not found for {id_} / {project} combination.")
            row["access"] = [item for item in row["access"] if item != project]
        self.table.save(row)
        return self._access(row)

    def access(self, call: Call, id_: str) -> Response:
        """List the projects that may use a private flavor."""
        row = self.usable(call, id_)
        if row["is_public"]:
            raise ApiError(404, "Access list not available for public flavors.")
        return self._access(row)

    def specs(self, call: Call, id_: str) -> Response:
        """Show the extra specs."""
        return Response(200, {"extra_specs": self.usable(call, id_)["extra_specs"]})

    def add_specs(self, call: Call, id_: str) -> Response:
        """Add extra specs."""
        _require_admin(call, "os-flavor-extra-specs:create")
        row, given = self.usable(call, id_), (call.body or {}).get("extra_specs") or {}
        row["extra_specs"] = {**row["extra_specs"], **given}
        self.table.save(row)
        return Response(200, {"extra_specs": given})

    def spec(self, call: Call, id_: str, key: str) -> Response:
        """Show an extra spec."""
        specs = self.usable(call, id_)["extra_specs"]
        _require_spec(specs, id_, key)
        return Response(200, {key: specs[key]})

    def add_specs_by_key(self, call: Call, id_: str, key: str) -> Response:
        """Set an extra spec."""
        _require_admin(call, "os-flavor-extra-specs:update")
        row = self.usable(call, id_)
        row["extra_specs"] = {**row["extra_specs"], key: (call.body or {}).get(key)}
        self.table.save(row)
        return Response(200, {key: row["extra_specs"][key]})

    def remove_spec(self, call: Call, id_: str, key: str) -> Response:
        """Remove an extra spec."""
        _require_admin(call, "os-flavor-extra-specs:delete")
        row = self.usable(call, id_)
        _require_spec(row["extra_specs"], id_, key)
        row["extra_specs"] = {name: value for name, value in row["extra_specs"].items() if name != key}
        self.table.save(row)
        return Response(200)

    def view(self, call: Call, row: JsonObject) -> JsonObject:
        """Return a flavor as the API shows it."""
        view = {
            "OS-FLV-DISABLED:disabled": False,
            "OS-FLV-EXT-DATA:ephemeral": row["ephemeral"],
            PUBLIC: row["is_public"],
            "links": links_of(call, "flavors", row["id"]),
            "swap": row["swap"] if call.version >= (2, 75) else row["swap"] or "",
            **{name: row[name] for name in ("id", "name", "ram", "vcpus", "disk", "rxtx_factor")},
        }
        if call.version >= (2, 55):
            view["description"] = row["description"]
        if call.version >= (2, 61):
            view["extra_specs"] = row["extra_specs"]
        return view

    def _visible(self, call: Call) -> list[JsonObject]:
        every = call.caller.is_admin and call.request.value("is_public") == "None"
        project = call.caller.project_id
        return [row for row in self.table if every or row["is_public"] or project in row["access"]]

    def _access(self, row: JsonObject) -> Response:
        access = [{"flavor_id": row["id"], "tenant_id": project} for project in row["access"]]
        return Response(200, {"flavor_access": access})


def _require_spec(specs: JsonObject, id_: str, key: str) -> None:
    if key not in specs:
        raise ApiError(404, f"Flavor {id_} has no extra specs with key {key}.")


def _require_admin(call: Call, rule: str) -> None:
    if not call.caller.is_admin:
        raise ApiError(403, f"Policy doesn't allow os_compute_api:{rule} to be performed.")
