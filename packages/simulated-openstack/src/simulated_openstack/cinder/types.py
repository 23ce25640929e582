"""Volume types: their extra specs, encryption and access."""

from __future__ import annotations

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

PUBLIC = "os-volume-type-access:is_public"


class Types:
    """All volume types."""

    def __init__(self, cinder: Service) -> None:
        """Add the routes."""
        self.cinder = cinder
        self.table: Table = cinder.cloud.state.table("cinder.type")
        add = cinder.router.add
        one = "/v3/types/{id_}"
        add("GET", "/v3/types", self.index)
        add("POST", "/v3/types", self.post)
        add("GET", "/v3/types/default", self.default)
        add("GET", one, self.show)
        add("PUT", one, self.put)
        add("DELETE", one, self.delete)
        add("POST", f"{one}/action", self.act)
        add("GET", f"{one}/os-volume-type-access", self.access)
        add("GET", f"{one}/extra_specs", self.specs)
        add("POST", f"{one}/extra_specs", self.add_specs)
        add("GET", f"{one}/extra_specs/{{key}}", self.spec)
        add("PUT", f"{one}/extra_specs/{{key}}", self.add_spec)
        add("DELETE", f"{one}/extra_specs/{{key}}", self.remove_spec)
        add("GET", f"{one}/encryption", self.encryption)
        add("POST", f"{one}/encryption", self.add_encryption)
        add("PUT", f"{one}/encryption/{{encryption_id}}", self.change_encryption)
        add("DELETE", f"{one}/encryption/{{encryption_id}}", self.remove_encryption)

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new type."""
        row = {
            "id": new_id(),
            "name": values.get("name"),
            "description": values.get("description"),
            "is_public": values.get(PUBLIC, True),
            "extra_specs": dict(values.get("extra_specs") or {}),
            "qos_specs_id": None,
            "access": [],
            "encryption": None,
        }
        return self.table.save(row)

    def named(self, name: str) -> JsonObject:
        """Return a type by name or id.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(name) or next((row for row in self.table if row["name"] == name), None)
        if row is None:
            raise ApiError(404, f"Volume type with name {name} could not be found.")
        return row

    def found(self, id_: str) -> JsonObject:
        """Return a type.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(id_)
        if row is None:
            raise ApiError(404, f"Volume type {id_} could not be found.")
        return row

    def index(self, call: Call) -> Response:
        """List the types that the caller may use."""
        rows = [row for row in self.table if self._is_visible(call, row)]
        name = call.request.value("name")
        rows = [row for row in rows if name in (None, row["name"])]
        return Response(200, {"volume_types": [_view(call, row) for row in rows]})

    def default(self, call: Call) -> Response:
        """Show the default type."""
        return Response(200, {"volume_type": _view(call, self.named("fake"))})

    def post(self, call: Call) -> Response:
        """Create a type."""
        _require_admin(call, "create")
        values = (call.body or {}).get("volume_type") or {}
        if any(row["name"] == values.get("name") for row in self.table):
            raise ApiError(409, f"Volume Type {values['name']} already exists.")
        return Response(200, {"volume_type": _created(call, self.create(values))})

    def show(self, call: Call, id_: str) -> Response:
        """Show a type."""
        row = self.found(id_)
        if not self._is_visible(call, row):
            self.found("")
        return Response(200, {"volume_type": _view(call, row)})

    def put(self, call: Call, id_: str) -> Response:
        """Change a type."""
        _require_admin(call, "update")
        row = self.found(id_)
        given = (call.body or {}).get("volume_type") or {}
        if any(other["name"] == given.get("name") for other in self.table if other["id"] != id_):
            raise ApiError(409, f"Volume Type {given['name']} already exists.")
        volumes = self._volumes()
        for volume in volumes:
            if volume["volume_type"] == row["name"] and "name" in given:
                volume["volume_type"] = given["name"]
                volumes.save(volume)
        row |= {key: given[key] for key in ("name", "description", "is_public") if key in given}
        return Response(200, {"volume_type": _changed(call, self.table.save(row))})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete a type that no volume has."""
        _require_admin(call, "delete")
        row = self.found(id_)
        if any(volume["volume_type"] == row["name"] for volume in self._volumes()):
            text = "Target volume type is still in use."
            raise ApiError(400, text)
        self.table.remove(id_)
        return Response(202)

    def _volumes(self) -> Table:
        """Return all volumes; their module depends on the types."""
        return self.cinder.cloud.state.table("cinder.volume")

    def act(self, call: Call, id_: str) -> Response:
        """Permit or forbid a project to use a private type."""
        _require_admin(call, "access")
        row = self.found(id_)
        body = call.body or {}
        if row["is_public"]:
            raise ApiError(409, "Type access modification is not applicable to public volume type.")
        if "addProjectAccess" in body:
            project = body["addProjectAccess"]["project"]
            if project in row["access"]:
                text = f"Volume type access for {id_} / {project} combination already exists."
                raise ApiError(409, text)
            row["access"] = [*row["access"], project]
        else:
            project = body["removeProjectAccess"]["project"]
            if project not in row["access"]:
                text = f"Volume type access not found for {id_} / {project} combination."
                raise ApiError(404, text)
            row["access"] = [item for item in row["access"] if item != project]
        self.table.save(row)
        return Response(202)

    def access(self, call: Call, id_: str) -> Response:
        """List the projects that may use a private type."""
        del call
        row = self.found(id_)
        if row["is_public"]:
            raise ApiError(404, "Access list not available for public volume types.")
        access = [{"volume_type_id": id_, "project_id": project} for project in row["access"]]
        return Response(200, {"volume_type_access": access})

    # extra specs

    def specs(self, call: Call, id_: str) -> Response:
        """Show the extra specs."""
        del call
        return Response(200, {"extra_specs": self.found(id_)["extra_specs"]})

    def add_specs(self, call: Call, id_: str) -> Response:
        """Add extra specs."""
        _require_admin(call, "extra_specs")
        row = self.found(id_)
        given = (call.body or {}).get("extra_specs") or {}
        row["extra_specs"] = {**row["extra_specs"], **given}
        self.table.save(row)
        return Response(200, {"extra_specs": given})

    def spec(self, call: Call, id_: str, key: str) -> Response:
        """Show an extra spec."""
        del call
        specs = self.found(id_)["extra_specs"]
        self._require_spec(specs, id_, key)
        return Response(200, {key: specs[key]})

    def add_spec(self, call: Call, id_: str, key: str) -> Response:
        """Set an extra spec."""
        _require_admin(call, "extra_specs")
        row = self.found(id_)
        row["extra_specs"] = {**row["extra_specs"], key: (call.body or {}).get(key)}
        self.table.save(row)
        return Response(200, {key: row["extra_specs"][key]})

    def remove_spec(self, call: Call, id_: str, key: str) -> Response:
        """Remove an extra spec."""
        _require_admin(call, "extra_specs")
        row = self.found(id_)
        self._require_spec(row["extra_specs"], id_, key)
        row["extra_specs"] = {name: value for name, value in row["extra_specs"].items() if name != key}
        self.table.save(row)
        return Response(202)

    # encryption

    def encryption(self, call: Call, id_: str) -> Response:
        """Show the encryption, {} without one."""
        del call
        return Response(200, self.found(id_)["encryption"] or {})

    def add_encryption(self, call: Call, id_: str) -> Response:
        """Encrypt the volumes of a type."""
        _require_admin(call, "encryption")
        row = self.found(id_)
        if row["encryption"]:
            raise ApiError(400, f"Volume type encryption for type {id_} already exists.")
        given = (call.body or {}).get("encryption") or {}
        names = ("provider", "control_location", "cipher", "key_size")
        shown = {
            "volume_type_id": id_,
            **{name: given.get(name) for name in names},
            "encryption_id": new_id(),
        }
        row["encryption"] = {
            **shown,
            "deleted": False,
            "created_at": precise_timestamp(),
            "updated_at": None,
            "deleted_at": None,
        }
        self.table.save(row)
        return Response(200, {"encryption": shown})

    def change_encryption(self, call: Call, id_: str, encryption_id: str) -> Response:
        """Change the encryption."""
        del encryption_id
        _require_admin(call, "encryption")
        row = self.found(id_)
        given = (call.body or {}).get("encryption") or {}
        row["encryption"] = {**(row["encryption"] or {}), **given}
        self.table.save(row)
        return Response(200, {"encryption": given})

    def remove_encryption(self, call: Call, id_: str, encryption_id: str) -> Response:
        """Remove the encryption."""
        del encryption_id
        _require_admin(call, "encryption")
        row = self.found(id_)
        if row["encryption"] is None:
            raise ApiError(404, f"Volume type encryption for type {id_} does not exist.")
        row["encryption"] = None
        self.table.save(row)
        return Response(202)

    def _is_visible(self, call: Call, row: JsonObject) -> bool:
        return call.caller.is_admin or row["is_public"] or call.caller.project_id in row["access"]

    def _require_spec(self, specs: JsonObject, id_: str, key: str) -> None:
        if key not in specs:
            text = f"Volume Type {id_} has no extra specs with key {key}."
            raise ApiError(404, text)


def _view(call: Call, row: JsonObject) -> JsonObject:
    view = {
        "id": row["id"],
        "name": row["name"],
        "is_public": row["is_public"],
        "description": row["description"],
        PUBLIC: row["is_public"],
    }
    if call.caller.is_admin:
        view |= {"extra_specs": row["extra_specs"], "qos_specs_id": row["qos_specs_id"]}
    return view


def _require_admin(call: Call, verb: str) -> None:
    if not call.caller.is_admin:
        rule = f"volume_extension:type_{verb}"
        raise ApiError(403, f"Policy doesn't allow {rule} to be performed.")


def _created(call: Call, row: JsonObject) -> JsonObject:
    view = _view(call, row)
    view.pop("qos_specs_id", None)
    return view


def _changed(call: Call, row: JsonObject) -> JsonObject:
    view = _created(call, row)
    view.pop(PUBLIC)
    return view
