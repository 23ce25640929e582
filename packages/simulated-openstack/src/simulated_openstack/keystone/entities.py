"""Domains, projects, users, groups and roles."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.keystone.family import CONFLICT, Family, listing
from simulated_openstack.service import Call, Service
from simulated_openstack.state import Table

DEFAULT_DOMAIN = "default"
PASSWORDS = frozenset({"password", "shared_password"})  # of a user: `contents.SHARED_PASSWORDS`


class Domains(Family):
    """Domains."""

    singular = "domain"
    collection = "domains"
    filters: ClassVar[tuple[str, ...]] = ("name", "enabled")
    defaults: ClassVar[JsonObject] = {"description": "", "enabled": True, "tags": [], "options": {}}

    def check(self, row: JsonObject, *, new: bool) -> None:
        """Refuse a name that is taken."""
        del new
        if any(other["name"] == row["name"] and other["id"] != row["id"] for other in self.table):
            raise ApiError(
                409,
                f"{CONFLICT} project - it is not permitted to have two projects acting as domains with the"
                " same"
                f" name: {row['name']}.",
            )

    def reference(self, id_: str) -> JsonObject:
        """Return a domain as tokens name it."""
        row = self.table.get(id_)
        return {"id": id_, "name": row["name"] if row else id_}

    def remove(self, row: JsonObject) -> None:
        """Remove a disabled domain with all that it contains."""
        if row["enabled"]:
            raise ApiError(403, "Cannot delete a domain that is enabled, please disable it first.")
        super().remove(row)


class OfDomain(Family):
    """Objects that end with their domain."""

    def __init__(self, keystone: Service, domains: Domains) -> None:
        """Add the routes."""
        super().__init__(keystone)
        domains.on_remove.append(self._remove_of)

    def _remove_of(self, domain: JsonObject) -> None:
        for item in self.table:
            if item["domain_id"] == domain["id"]:
                self.remove(item)


class Projects(OfDomain):
    """Projects."""

    singular = "project"
    collection = "projects"
    filters: ClassVar[tuple[str, ...]] = ("name", "domain_id", "enabled", "parent_id")
    defaults: ClassVar[JsonObject] = {
        "domain_id": DEFAULT_DOMAIN,
        "description": "",
        "enabled": True,
        "is_domain": False,
        "tags": [],
        "options": {},
    }

    def __init__(self, keystone: Service, domains: Domains) -> None:
        """Add the routes."""
        super().__init__(keystone, domains)
        self._domains = domains

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new project below its parent, by default its domain."""
        if values.get("domain_id") is None:
            values.pop("domain_id", None)
        parent = values.get("parent_id") or values.get("domain_id") or DEFAULT_DOMAIN
        if self.table.get(parent) is None and self._domains.table.get(parent) is None:
            raise ApiError(404, f"Could not find project: {parent}.")
        return super().create({**values, "parent_id": parent})

    def duplicate(self, row: JsonObject, *, new: bool) -> str:
        """Return the reason of a conflict."""
        del new
        return (
            "it is not permitted to have two projects with either the same name or same id in the same"
            " domain:"
            f" name is {row['name']}, project id {row['id']}"
        )

    def changed_view(self, row: JsonObject, before: JsonObject) -> JsonObject:
        """Return a changed project; Keystone adds its further attributes."""
        del before
        return {**self.view(row), "extra": {}}

    def owns(self, call: Call, row: JsonObject) -> bool:
        """The project of the token may be read."""
        return bool(call.caller.project_id == row["id"])


class Users(OfDomain):
    """Users. A password is kept as it is: it protects nothing."""

    singular = "user"
    collection = "users"
    defaults: ClassVar[JsonObject] = {
        "domain_id": DEFAULT_DOMAIN,
        "enabled": True,
        "password_expires_at": None,
        "options": {},
    }

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new user."""
        if values.get("domain_id") is None:
            values.pop("domain_id", None)
        return super().create(values)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a user without its passwords."""
        return {key: value for key, value in super().view(row).items() if key not in PASSWORDS}

    def changed_view(self, row: JsonObject, before: JsonObject) -> JsonObject:
        """Return a changed user; Keystone adds its further attributes."""
        del before
        extra = {name: row[name] for name in ("email", "description") if name in row}
        return {**self.view(row), "extra": extra}

    def owns(self, call: Call, row: JsonObject) -> bool:
        """Users may read themselves."""
        return bool(call.caller.user_id == row["id"])


class Groups(OfDomain):
    """Groups and their members."""

    singular = "group"
    collection = "groups"
    defaults: ClassVar[JsonObject] = {"domain_id": DEFAULT_DOMAIN, "description": ""}

    def __init__(self, keystone: Service, domains: Domains, users: Users) -> None:
        """Add the routes."""
        super().__init__(keystone, domains)
        self._users = users
        users.on_remove.append(self._forget_user)
        self._members: Table = keystone.cloud.state.table("keystone.membership")
        member = "/v3/groups/{id_}/users/{user_id}"
        keystone.router.add("GET", "/v3/users/{id_}/groups", self.of_user)
        keystone.router.add("GET", "/v3/groups/{id_}/users", self.users)
        keystone.router.add("PUT", member, self.add_user)
        keystone.router.add("HEAD", member, self.has_user)
        keystone.router.add("DELETE", member, self.remove_user)

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new group."""
        if values.get("domain_id") is None:
            values.pop("domain_id", None)
        return super().create(values)

    def members(self, group_id: str) -> list[str]:
        """Return the ids of the users in a group."""
        row = self._members.get(group_id)
        return list(row["users"]) if row else []

    def of_user(self, call: Call, id_: str) -> Response:
        """List the groups of a user."""
        self._users.found(id_)
        rows = [row for row in self.table if id_ in self.members(row["id"])]
        return listing(call, "groups", [{**self.view(row), "membership_expires_at": None} for row in rows])

    def users(self, call: Call, id_: str) -> Response:
        """List the users of a group."""
        self.found(id_)
        users = [self._users.found(user) for user in self.members(id_)]
        return listing(call, "users", map(self._users.view, users))

    def add_user(self, call: Call, id_: str, user_id: str) -> Response:
        """Add a user."""
        self.require(call, "add_user_to")
        self.found(id_)
        self._users.found(user_id)
        self._members.save({"id": id_, "users": sorted({*self.members(id_), user_id})})
        return Response(204)

    def has_user(self, call: Call, id_: str, user_id: str) -> Response:
        """Answer whether a user is in a group."""
        del call
        self._require_member(id_, user_id)
        return Response(204)

    def remove_user(self, call: Call, id_: str, user_id: str) -> Response:
        """Remove a user from a group."""
        self.require(call, "remove_user_from")
        self.found(id_)
        self._users.found(user_id)
        self._require_member(id_, user_id)
        self._members.save({"id": id_, "users": [user for user in self.members(id_) if user != user_id]})
        return Response(204)

    def _forget_user(self, user: JsonObject) -> None:
        """Remove a user from all groups."""
        user_id = user["id"]
        for row in self._members:
            if user_id in row["users"]:
                self._members.save({"id": row["id"], "users": [u for u in row["users"] if u != user_id]})

    def remove(self, row: JsonObject) -> None:
        """Remove a group with its members."""
        self._members.remove(row["id"])
        super().remove(row)

    def _require_member(self, id_: str, user_id: str) -> None:
        if user_id not in self.members(id_):
            raise ApiError(404, f"User '{user_id}' not found in group '{id_}'")


class Roles(Family):
    """Roles."""

    singular = "role"
    collection = "roles"
    filters: ClassVar[tuple[str, ...]] = ("name", "domain_id")
    defaults: ClassVar[JsonObject] = {"domain_id": None, "description": None, "options": {}}
