"""Key pairs and server groups."""

from __future__ import annotations

import base64
import binascii
import hashlib

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.nova.quotas import Quotas
from simulated_openstack.nova.servers import Servers
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

PRIVATE = "-----BEGIN RSA PRIVATE KEY-----\nc2ltdWxhdGVk\n-----END RSA PRIVATE KEY-----\n"


class KeyPairs:
    """The key pairs of all users."""

    def __init__(self, nova: Service, quotas: Quotas) -> None:
        """Add the routes."""
        self._quotas = quotas
        self.table: Table = nova.cloud.state.table("nova.key_pair", "user_id")
        add = nova.router.add
        add("GET", "/v2.1/os-keypairs", self.index)
        add("POST", "/v2.1/os-keypairs", self.post)
        add("GET", "/v2.1/os-keypairs/{name}", self.show)
        add("DELETE", "/v2.1/os-keypairs/{name}", self.delete)

    def find(self, user_id: str, name: str) -> JsonObject | None:
        """Return a key pair of a user."""
        return self.table.get(f"{user_id}/{name}")

    def index(self, call: Call) -> Response:
        """List the caller's key pairs."""
        user = self._user(call, call.request.value("user_id"))
        names = ("name", "public_key", "fingerprint", *(("type",) if call.version >= (2, 2) else ()))
        rows = sorted(self.table.where("user_id", user), key=lambda row: str(row["name"]))
        return Response(200, {"keypairs": [{"keypair": {name: row[name] for name in names}} for row in rows]})

    def post(self, call: Call) -> Response:
        """Keep a public key; before version 2.92 a missing key is made."""
        given = (call.body or {}).get("keypair") or {}
        user = self._user(call, given.get("user_id"))
        name, key = given.get("name") or "", given.get("public_key")
        if not name:
            raise ApiError(
                400, f"Invalid input for field/attribute name. Value: {name}. '{name}' is too short"
            )
        if key is None and call.version >= (2, 92):
            text = (
                f"Invalid input for field/attribute keypair. Value: {given}. 'public_key' is a required"
                " property"
            )
            raise ApiError(400, text)
        if self.find(user, name) is not None:
            raise ApiError(409, f"Key pair '{name}' already exists.")
        if self._quotas.of(call.caller.project_id)["key_pairs"] <= self.table.count("user_id", user):
            raise ApiError(403, "Quota exceeded, too many key pairs.")
        made = key is None
        key = key if key is not None else f"ssh-rsa {base64.b64encode(new_id().encode()).decode()} simulated"
        row = {
            "id": f"{user}/{name}",
            "number": len(self.table) + 1,
            "name": name,
            "public_key": key,
            "fingerprint": _fingerprint(key),
            "type": given.get("type") or "ssh",
            "user_id": user,
            "created_at": precise_timestamp(),
        }
        self.table.save(row)
        names = [
            "name",
            "public_key",
            "fingerprint",
            "user_id",
            *(["type"] if call.version >= (2, 2) else []),
        ]
        view = {field: row[field] for field in names} | ({"private_key": PRIVATE} if made else {})
        return Response(201 if call.version >= (2, 2) else 200, {"keypair": view})

    def show(self, call: Call, name: str) -> Response:
        """Show a key pair."""
        row = self._found(call, name)
        names = ("name", "public_key", "fingerprint", "user_id", "created_at")
        view = {field: row[field] for field in names}
        view |= {"id": row["number"], "deleted": False, "deleted_at": None, "updated_at": None}
        if call.version >= (2, 2):
            view["type"] = row["type"]
        return Response(200, {"keypair": view})

    def delete(self, call: Call, name: str) -> Response:
        """Delete a key pair."""
        self.table.remove(self._found(call, name)["id"])
        return Response(204 if call.version >= (2, 2) else 202)

    def _found(self, call: Call, name: str) -> JsonObject:
        user = self._user(call, call.request.value("user_id"))
        row = self.find(user, name)
        if row is None:
            raise ApiError(404, f"Keypair {name} not found for user {user}")
        return row

    def _user(self, call: Call, user_id: str | None) -> str:
        if user_id and user_id != call.caller.user_id and not call.caller.is_admin:
            raise ApiError(403, "Policy doesn't allow os_compute_api:os-keypairs:show to be performed.")
        return user_id or call.caller.user_id


class ServerGroups:
    """Groups of servers with a policy of placement, which is kept and not applied."""

    def __init__(self, nova: Service, quotas: Quotas, servers: Servers) -> None:
        """Add the routes."""
        self._quotas, self._servers = quotas, servers
        self.table: Table = nova.cloud.state.table("nova.server_group", "project_id")
        add = nova.router.add
        add("GET", "/v2.1/os-server-groups", self.index)
        add("POST", "/v2.1/os-server-groups", self.post)
        add("GET", "/v2.1/os-server-groups/{id_}", self.show)
        add("DELETE", "/v2.1/os-server-groups/{id_}", self.delete)

    def found(self, id_: str, *, status: int = 404) -> JsonObject:
        """Return a group."""
        row = self.table.get(id_)
        if row is None:
            raise ApiError(status, f"Instance group {id_} could not be found.")
        return row

    def index(self, call: Call) -> Response:
        """List the groups of the project."""
        rows = self.table.where("project_id", call.caller.project_id)
        return Response(200, {"server_groups": [self._view(call, row) for row in rows]})

    def post(self, call: Call) -> Response:
        """Create a group."""
        given = (call.body or {}).get("server_group") or {}
        policy = given.get("policy") or next(iter(given.get("policies") or ()), None)
        allowed = ["anti-affinity", "affinity"]
        if call.version >= (2, 15):
            allowed += ["soft-anti-affinity", "soft-affinity"]
        if policy not in allowed:
            field = "policy" if call.version >= (2, 64) else "0"
            text = (
                f"Invalid input for field/attribute {field}. Value: {policy}. '{policy}' is not one of"
                f" {allowed}"
            )
            raise ApiError(400, text)
        project = call.caller.project_id
        if self._quotas.of(project)["server_groups"] <= self.table.count("project_id", project):
            raise ApiError(403, "Quota exceeded, too many server groups.")
        row = {
            "id": new_id(),
            "name": given.get("name"),
            "policy": policy,
            "rules": dict(given.get("rules") or {}),
            "project_id": project,
            "user_id": call.caller.user_id,
        }
        return Response(200, {"server_group": self._view(call, self.table.save(row))})

    def show(self, call: Call, id_: str) -> Response:
        """Show a group."""
        return Response(200, {"server_group": self._view(call, self.found(id_))})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete a group."""
        del call
        self.table.remove(self.found(id_)["id"])
        return Response(204)

    def _view(self, call: Call, row: JsonObject) -> JsonObject:
        servers = self._servers.table.where("group_id", row["id"])
        view = {"id": row["id"], "name": row["name"], "members": [server["id"] for server in servers]}
        if call.version >= (2, 13):
            view |= {"project_id": row["project_id"], "user_id": row["user_id"]}
        if call.version >= (2, 64):
            return {**view, "policy": row["policy"], "rules": row["rules"]}
        return {**view, "policies": [row["policy"]], "metadata": {}}


def _fingerprint(key: str) -> str:
    """Return the MD5 fingerprint of a public key."""
    parts = key.split()
    try:
        data = base64.b64decode(parts[1], validate=True)
    except (IndexError, binascii.Error) as error:
        raise ApiError(400, "Keypair data is invalid: failed to generate fingerprint") from error
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return ":".join(digest[i : i + 2] for i in range(0, 32, 2))
