"""Domains, projects, users, groups and roles."""

from __future__ import annotations

from typing import Any, ClassVar

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.keystone.family import CONFLICT, Family, listing
from simulated_openstack.service import Call
from simulated_openstack.state import Table

Keystone = Any  # its module imports this module

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
        for family in (self.keystone.projects, self.keystone.users, self.keystone.groups):
            for item in family.table:
                if item["domain_id"] == row["id"]:
                    family.remove(item)
        super().remove(row)


class Projects(Family):
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

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new project below its parent, by default its domain."""
        if values.get("domain_id") is None:
            values.pop("domain_id", None)
        parent = values.get("parent_id") or values.get("domain_id") or DEFAULT_DOMAIN
        if self.table.get(parent) is None and self.keystone.domains.table.get(parent) is None:
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

    def remove(self, row: JsonObject) -> None:
        """Remove a project with its assignments."""
        self.keystone.assignments.forget("target", f"projects/{row['id']}")
        super().remove(row)


class Users(Family):
    """Users. A password is kept as it is: it protects nothing."""

    singular = "user"
    collection = "users"
    defaults: ClassVar[JsonObject] = {
        "domain_id": DEFAULT_DOMAIN,
        "enabled": True,
        "password_expires_at": None,
        "options": {},
    }

    def __init__(self, keystone: Keystone) -> None:
        """Add the routes."""
        super().__init__(keystone)
        self.keystone.router.add("GET", "/v3/users/{id_}/groups", self.groups)
        self.keystone.router.add("GET", "/v3/users/{id_}/projects", self.projects)

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

    def remove(self, row: JsonObject) -> None:
        """Remove a user with their assignments, memberships, trusts and credentials."""
        self.keystone.assignments.forget("actor", f"users/{row['id']}")
        self.keystone.groups.forget_user(row["id"])
        self.keystone.delegations.forget_user(row["id"])
        super().remove(row)

    def groups(self, call: Call, id_: str) -> Response:
        """List the groups of a user."""
        self.found(id_)
        groups = self.keystone.groups
        rows = [
            {**groups.view(row), "membership_expires_at": None}
            for row in groups.table
            if id_ in groups.members(row["id"])
        ]
        return listing(call, "groups", rows)

    def projects(self, call: Call, id_: str) -> Response:
        """List the projects in which a user has a role."""
        self.found(id_)
        return listing(call, "projects", self.keystone.assignments.projects_of(id_))


class Groups(Family):
    """Groups and their members."""

    singular = "group"
    collection = "groups"
    defaults: ClassVar[JsonObject] = {"domain_id": DEFAULT_DOMAIN, "description": ""}

    def __init__(self, keystone: Keystone) -> None:
        """Add the routes."""
        super().__init__(keystone)
        self._members: Table = self.keystone.cloud.state.table("keystone.membership")
        member = "/v3/groups/{id_}/users/{user_id}"
        self.keystone.router.add("GET", "/v3/groups/{id_}/users", self.users)
        self.keystone.router.add("PUT", member, self.add_user)
        self.keystone.router.add("HEAD", member, self.has_user)
        self.keystone.router.add("DELETE", member, self.remove_user)

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new group."""
        if values.get("domain_id") is None:
            values.pop("domain_id", None)
        return super().create(values)

    def members(self, group_id: str) -> list[str]:
        """Return the ids of the users in a group."""
        row = self._members.get(group_id)
        return list(row["users"]) if row else []

    def users(self, call: Call, id_: str) -> Response:
        """List the users of a group."""
        self.found(id_)
        users = self.keystone.users
        return listing(call, "users", [users.view(users.found(user)) for user in self.members(id_)])

    def add_user(self, call: Call, id_: str, user_id: str) -> Response:
        """Add a user."""
        self.require(call, "add_user_to")
        self.found(id_)
        self.keystone.users.found(user_id)
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
        self.keystone.users.found(user_id)
        self._require_member(id_, user_id)
        self._members.save({"id": id_, "users": [user for user in self.members(id_) if user != user_id]})
        return Response(204)

    def forget_user(self, user_id: str) -> None:
        """Remove a user from all groups."""
        for row in self._members:
            if user_id in row["users"]:
                self._members.save({"id": row["id"], "users": [u for u in row["users"] if u != user_id]})

    def remove(self, row: JsonObject) -> None:
        """Remove a group with its assignments and members."""
        self.keystone.assignments.forget("actor", f"groups/{row['id']}")
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

    def remove(self, row: JsonObject) -> None:
        """Remove a role with its assignments."""
        self.keystone.assignments.forget("role_id", row["id"])
        super().remove(row)
