"""Trusts and application credentials."""

from __future__ import annotations

import secrets
from typing import Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonMapping, JsonObject
from simulated_openstack.keystone.entities import Roles, Users
from simulated_openstack.keystone.family import CONFLICT, forbid, link, listing
from simulated_openstack.service import Call, Service, new_hex
from simulated_openstack.state import Table

TRUST_FIELDS: Final = (
    "trustor_user_id",
    "trustee_user_id",
    "project_id",
    "impersonation",
    "expires_at",
    "remaining_uses",
)
NOT_AUTHORIZED: Final = "You are not authorized to perform the requested action."
RESTRICTED: Final = (
    "Using method 'application_credential' is not allowed for managing additional application credentials."
)
CREDENTIALS: Final = "/v3/users/{user_id}/application_credentials"


class Delegations:
    """Rights that users delegate: trusts to another user, application credentials to the owner of a
    secret.
    """

    def __init__(self, keystone: Service, users: Users, roles: Roles) -> None:
        """Add the routes."""
        self.keystone = keystone
        self._users, self._roles = users, roles
        self._users.on_remove.append(self._forget_user)
        self.trusts: Table = keystone.cloud.state.table("keystone.trust")
        self.credentials: Table = keystone.cloud.state.table("keystone.application_credential", "user_id")
        add = keystone.router.add
        add("POST", "/v3/OS-TRUST/trusts", self.create_trust)
        add("GET", "/v3/OS-TRUST/trusts", self.list_trusts)
        add("GET", "/v3/OS-TRUST/trusts/{id_}", self.show_trust)
        add("GET", "/v3/OS-TRUST/trusts/{id_}/roles", self.trust_roles)
        add("DELETE", "/v3/OS-TRUST/trusts/{id_}", self.delete_trust)
        add("POST", CREDENTIALS, self.create_credential)
        add("GET", CREDENTIALS, self.list_credentials)
        add("GET", CREDENTIALS + "/{id_}", self.show_credential)
        add("DELETE", CREDENTIALS + "/{id_}", self.delete_credential)

    def create_trust(self, call: Call) -> Response:
        """Create a trust; unknown attributes are kept."""
        given = dict((call.body or {}).get("trust") or {})
        if given.get("trustor_user_id") != call.caller.user_id:
            forbid("identity:create_trust")
        self._require_redelegation(call)
        self._users.found(given.get("trustee_user_id", ""))
        role_ids = self._roles_of(call, given.pop("roles", None) or [])
        if not role_ids:
            forbid("At least one role should be specified")
        redelegable = given.pop("allow_redelegation", False)
        count = given.pop("redelegation_count", 3 if redelegable else 0)
        row = {
            **given,
            "id": new_hex(),
            **{name: given.get(name) for name in TRUST_FIELDS},
            "deleted_at": None,
            "redelegated_trust_id": call.caller.trust_id or None,
            "redelegation_count": count,
            "role_ids": role_ids,
        }
        return Response(201, {"trust": self._trust(self.trusts.save(row))})

    def _require_redelegation(self, call: Call) -> None:
        """Refuse tokens of application credentials, and of trusts that do not permit it, as Keystone does."""
        if call.caller.by_credential:
            forbid("Delegated tokens cannot manage trusts.")
        trust = self.trusts.get(call.caller.trust_id)
        if trust is not None and not trust["redelegation_count"]:
            raise ApiError(403, NOT_AUTHORIZED)

    def list_trusts(self, call: Call) -> Response:
        """List trusts by trustor or trustee."""
        wanted = [(k, v) for k, v in call.request.query if k in {"trustor_user_id", "trustee_user_id"}]
        if not call.caller.is_admin and call.caller.user_id not in {value for _, value in wanted}:
            forbid("identity:list_trusts")
        rows = [row for row in self.trusts if all(row[key] == value for key, value in wanted)]
        hidden = {"roles", "roles_links"}
        views = [{k: v for k, v in self._trust(row).items() if k not in hidden} for row in rows]
        return listing(call, "trusts", views)

    def show_trust(self, call: Call, id_: str) -> Response:
        """Show a trust."""
        return Response(200, {"trust": self._trust(self._found_trust(call, id_))})

    def trust_roles(self, call: Call, id_: str) -> Response:
        """List the roles of a trust."""
        return listing(call, "roles", self._trust(self._found_trust(call, id_))["roles"])

    def delete_trust(self, call: Call, id_: str) -> Response:
        """Delete a trust; its tokens end."""
        self.trusts.remove(self._found_trust(call, id_)["id"])
        return Response(204)

    def create_credential(self, call: Call, user_id: str) -> Response:
        """Create an application credential for the caller's project."""
        if user_id != call.caller.user_id:
            forbid("identity:create_application_credential")
        if call.caller.restricted:
            forbid(RESTRICTED)
        if call.caller.trust_id:
            raise ApiError(403, NOT_AUTHORIZED)
        given = dict((call.body or {}).get("application_credential") or {})
        if any(row["name"] == given.get("name") for row in self.credentials.where("user_id", user_id)):
            raise ApiError(
                409,
                f"{CONFLICT} application_credential - Duplicate entry found with name {given.get('name')}.",
            )
        row = {
            "id": new_hex(),
            "name": given.get("name"),
            "description": given.get("description"),
            "user_id": user_id,
            "project_id": call.caller.project_id,
            "system": None,
            "expires_at": given.get("expires_at"),
            "unrestricted": bool(given.get("unrestricted", False)),
            "role_ids": self._roles_of(call, given.get("roles") or []) or self._caller_roles(call),
            "secret": given.get("secret") or secrets.token_urlsafe(64),
        }
        self.credentials.save(row)
        return Response(201, {"application_credential": {**self._credential(row), "secret": row["secret"]}})

    def list_credentials(self, call: Call, user_id: str) -> Response:
        """List a user's application credentials."""
        self._require_self(call, user_id, "list_application_credentials")
        name = call.request.value("name")
        rows = [row for row in self.credentials.where("user_id", user_id) if name in (None, row["name"])]
        return listing(call, "application_credentials", map(self._credential, rows))

    def show_credential(self, call: Call, user_id: str, id_: str) -> Response:
        """Show an application credential."""
        self._require_self(call, user_id, "get_application_credential")
        return Response(200, {"application_credential": self._credential(self._found_credential(id_))})

    def delete_credential(self, call: Call, user_id: str, id_: str) -> Response:
        """Delete an application credential; its tokens end."""
        self._require_self(call, user_id, "delete_application_credential")
        self.credentials.remove(self._found_credential(id_)["id"])
        return Response(204)

    def _forget_user(self, user: JsonObject) -> None:
        """Remove the delegations of a user."""
        user_id = user["id"]
        for row in self.credentials.where("user_id", user_id):
            self.credentials.remove(row["id"])
        for row in self.trusts:
            if user_id in {row["trustor_user_id"], row["trustee_user_id"]}:
                self.trusts.remove(row["id"])

    def _roles_of(self, call: Call, roles: list[JsonMapping]) -> list[str]:
        """Return the ids of the roles to delegate; the caller must have each of them."""
        own = self._caller_roles(call)
        ids = []
        for role in roles:
            row = self._roles.table.get(role["id"]) if "id" in role else None
            row = row or self._roles.named(role.get("name", ""))
            if row is None or row["id"] not in own:
                missing = role.get("name") if row is None else row["id"]
                raise ApiError(404, f"Could not find role: {missing or role.get('id')}.")
            ids.append(row["id"])
        return ids

    def _caller_roles(self, call: Call) -> list[str]:
        return [row["id"] for row in self._roles.table if row["name"] in call.caller.roles]

    def _role_views(self, row: JsonObject) -> list[JsonObject]:
        roles = self._roles
        return [roles.view(role) for id_ in row["role_ids"] if (role := roles.table.get(id_)) is not None]

    def _trust(self, row: JsonObject) -> JsonObject:
        body = {key: value for key, value in row.items() if key != "role_ids"}
        return {
            "roles": self._role_views(row),
            **body,
            "roles_links": {
                "self": link(self.keystone, f"/{row['id']}/roles"),
                "next": None,
                "previous": None,
            },
            "links": {"self": link(self.keystone, f"/OS-TRUST/trusts/{row['id']}")},
        }

    def _credential(self, row: JsonObject) -> JsonObject:
        body = {key: value for key, value in row.items() if key not in {"role_ids", "secret"}}
        links = {"self": link(self.keystone, f"/application_credentials/{row['id']}")}
        roles = self._role_views(row)
        for role in roles:
            role.pop("links")
        return {**body, "roles": roles, "links": links}

    def _found_trust(self, call: Call, id_: str) -> JsonObject:
        row = self.trusts.get(id_)
        if row is None:
            raise ApiError(404, f"Could not find trust: {id_}.")
        if not call.caller.is_admin and call.caller.user_id not in {
            row["trustor_user_id"],
            row["trustee_user_id"],
        }:
            forbid("identity:get_trust")
        return row

    def _found_credential(self, id_: str) -> JsonObject:
        row = self.credentials.get(id_)
        if row is None:
            raise ApiError(404, f"Could not find Application Credential: {id_}.")
        return row

    def _require_self(self, call: Call, user_id: str, verb: str) -> None:
        if user_id != call.caller.user_id and not call.caller.is_admin:
            forbid(f"identity:{verb}")
