"""QoS specs and their associations with types."""

from __future__ import annotations

from simulated_openstack.cinder.types import Types
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id
from simulated_openstack.state import Table


class QosSpecs:
    """All QoS specs."""

    def __init__(self, cinder: Service, types: Types) -> None:
        """Add the routes."""
        self._types = types
        self.table: Table = cinder.cloud.state.table("cinder.qos_specs")
        add = cinder.router.add
        one = "/v3/qos-specs/{id_}"
        add("GET", "/v3/qos-specs", self.index)
        add("POST", "/v3/qos-specs", self.post)
        add("GET", one, self.show)
        add("PUT", one, self.put)
        add("DELETE", one, self.delete)
        add("PUT", f"{one}/delete_keys", self.remove_keys)
        add("GET", f"{one}/associations", self.associations)
        add("GET", f"{one}/associate", self.associate)
        add("GET", f"{one}/disassociate", self.disassociate)
        add("GET", f"{one}/disassociate_all", self.disassociate_all)

    def index(self, call: Call) -> Response:
        """List all specs."""
        del call
        return Response(200, {"qos_specs": list(self.table)})

    def post(self, call: Call) -> Response:
        """Create specs; all fields but name and consumer are specs."""
        if not call.caller.is_admin:
            raise ApiError(
                403, "Policy doesn't allow volume_extension:qos_specs_manage:create to be performed."
            )
        given = dict((call.body or {}).get("qos_specs") or {})
        name, consumer = given.pop("name", ""), given.pop("consumer", "back-end")
        if any(row["name"] == name for row in self.table):
            raise ApiError(409, f"QoS Specs {name} already exists.")
        row = {"id": new_id(), "name": name, "consumer": consumer, "specs": given}
        return self._answer(call, self.table.save(row))

    def show(self, call: Call, id_: str) -> Response:
        """Show specs."""
        return self._answer(call, self.found(id_))

    def put(self, call: Call, id_: str) -> Response:
        """Add or change specs."""
        row = self.found(id_)
        given = dict((call.body or {}).get("qos_specs") or {})
        row["consumer"] = given.pop("consumer", row["consumer"])
        row["specs"] = {**row["specs"], **given}
        self.table.save(row)
        return Response(200, {"qos_specs": (call.body or {}).get("qos_specs")})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete unused specs."""
        self.found(id_)
        if call.request.value("force") != "True" and self._types_with(id_):
            raise ApiError(400, "Qos specs still in use.")
        for type_ in self._types_with(id_):
            self._set(type_, None)
        self.table.remove(id_)
        return Response(202)

    def remove_keys(self, call: Call, id_: str) -> Response:
        """Remove specs."""
        row = self.found(id_)
        for key in (call.body or {}).get("keys") or []:
            if key not in row["specs"]:
                text = f"QoS Spec {id_} has no spec with key {key}."
                raise ApiError(400, text)
            row["specs"] = {name: value for name, value in row["specs"].items() if name != key}
        self.table.save(row)
        return Response(202)

    def associations(self, call: Call, id_: str) -> Response:
        """List the types with these specs."""
        del call
        self.found(id_)
        found = [
            {"association_type": "volume_type", "name": row["name"], "id": row["id"]}
            for row in self._types_with(id_)
        ]
        return Response(200, {"qos_associations": found})

    def associate(self, call: Call, id_: str) -> Response:
        """Give a type these specs."""
        self.found(id_)
        type_ = self._types.found(call.request.value("vol_type_id") or "")
        if type_["qos_specs_id"] not in (None, id_):
            text = f"Type {type_['id']} is already associated with another qos specs: {type_['qos_specs_id']}"
            raise ApiError(400, f"Invalid volume type: {text}")
        self._set(type_, id_)
        return Response(202)

    def disassociate(self, call: Call, id_: str) -> Response:
        """Take the specs from a type."""
        self.found(id_)
        self._set(self._types.found(call.request.value("vol_type_id") or ""), None)
        return Response(202)

    def disassociate_all(self, call: Call, id_: str) -> Response:
        """Take the specs from all types."""
        del call
        for type_ in self._types_with(id_):
            self._set(type_, None)
        return Response(202)

    def found(self, id_: str) -> JsonObject:
        """Return specs.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(id_)
        if row is None:
            raise ApiError(404, f"No such QoS spec {id_}.")
        return row

    def _types_with(self, id_: str) -> list[JsonObject]:
        return [row for row in self._types.table if row["qos_specs_id"] == id_]

    def _set(self, type_: JsonObject, id_: str | None) -> None:
        type_["qos_specs_id"] = id_
        self._types.table.save(type_)

    def _answer(self, call: Call, row: JsonObject) -> Response:
        links = [
            {"rel": "self", "href": f"{call.base}/v3/qos-specs/{row['id']}"},
            {"rel": "bookmark", "href": f"{call.base}/qos-specs/{row['id']}"},
        ]
        return Response(200, {"qos_specs": row, "links": links})
