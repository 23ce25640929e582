"""Keystone's API: objects, memberships of groups, and role assignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, NamedTuple
from urllib.parse import quote

from orchestrator.clients.openstack.object_collections import Collections
from orchestrator.json_types import JsonMapping, JsonObject

# The request token of an object: Keystone stores attributes that it does not know.
TOKEN_ATTRIBUTE: Final = "orchestrator_token"  # noqa: S105


class RoleAssignment(NamedTuple):
    """A role of a user or of a group, in a project or else in a domain."""

    role: str
    project: str = ""
    domain: str = ""

    @property
    def scope_path(self) -> str:
        """The path of the project or domain."""
        if self.project:
            return f"/projects/{_segment(self.project)}"
        return f"/domains/{_segment(self.domain)}"


class Identity(Collections):
    """Keystone, called as a credential."""

    service: ClassVar[str] = "keystone"
    service_type: ClassVar[str] = "identity"

    @property
    def projects(self) -> IdentityObjects:
        """The projects."""
        return IdentityObjects(self, "project")

    @property
    def users(self) -> IdentityObjects:
        """The users."""
        return IdentityObjects(self, "user")

    @property
    def groups(self) -> IdentityObjects:
        """The groups."""
        return IdentityObjects(self, "group")

    @property
    def roles(self) -> IdentityObjects:
        """The roles."""
        return IdentityObjects(self, "role")

    @property
    def domains(self) -> IdentityObjects:
        """The domains."""
        return IdentityObjects(self, "domain")

    @property
    def regions(self) -> IdentityObjects:
        """The regions."""
        return IdentityObjects(self, "region")

    @property
    def services(self) -> IdentityObjects:
        """The services of the catalog."""
        return IdentityObjects(self, "service")

    @property
    def endpoints(self) -> IdentityObjects:
        """The endpoints of the catalog."""
        return IdentityObjects(self, "endpoint")

    def group_ids(self, user_id: str) -> list[str]:
        """Return the groups of a user; of a user that does not exist, none."""
        return [group["id"] for group in self._of_user(user_id, "groups")]

    def add_to_group(self, group_id: str, user_id: str) -> None:
        """Make a user a member of a group; may be repeated."""
        self.put(f"/groups/{_segment(group_id)}/users/{_segment(user_id)}")

    def remove_from_group(self, group_id: str, user_id: str) -> None:
        """End the membership of a user in a group; may be repeated."""
        self.delete(f"/groups/{_segment(group_id)}/users/{_segment(user_id)}")

    def role_assignments(self, subject: str, subject_id: str) -> list[RoleAssignment]:
        """Return the roles of a `user` or a `group` (the subject) in projects and domains.

        Inherited roles and roles in the system are left out: types assign none.
        """
        query = {f"{subject}.id": subject_id}
        found = self.listed("/role_assignments", "role_assignments", query, page=None)
        return [assignment for one in found if (assignment := _assignment(one)) is not None]

    def assign_role(self, subject: str, subject_id: str, assignment: RoleAssignment) -> None:
        """Give a role to a `user` or a `group`; may be repeated."""
        self.put(_assignment_path(subject, subject_id, assignment))

    def revoke_role(self, subject: str, subject_id: str, assignment: RoleAssignment) -> None:
        """Take a role from a `user` or a `group`; may be repeated."""
        self.delete(_assignment_path(subject, subject_id, assignment))

    def _of_user(self, user_id: str, key: str) -> Sequence[JsonObject]:
        page = self.find_one(f"/users/{_segment(user_id)}/{key}") or {}
        return page.get(key) or ()


class IdentityObjects:
    """The objects of a kind: `project`, `user` …"""

    def __init__(self, api: Identity, kind: str) -> None:
        """Send no request."""
        self._api, self._kind, self._path = api, kind, f"/{kind}s"

    def create(self, values: JsonMapping, token: str) -> JsonObject:
        """Create an object that `with_token` finds."""
        answer = self._api.post(self._path, {self._kind: {**values, TOKEN_ATTRIBUTE: token}})
        created: JsonObject = answer[self._kind]
        return created

    def find(self, object_id: str) -> JsonObject | None:
        """Return an object, None if it does not exist."""
        answer = self._api.find_one(self._object_path(object_id))
        return None if answer is None else answer[self._kind]

    def matching(self, **filters: str) -> Iterator[JsonObject]:
        """Yield the objects whose attributes have these values."""
        return self._api.listed(self._path, f"{self._kind}s", filters, page=None)

    def with_token(self, token: str, **filters: str) -> list[str]:
        """Return the ids of the objects that were created with the token."""
        return [found["id"] for found in self.matching(**filters) if found.get(TOKEN_ATTRIBUTE) == token]

    def update(self, object_id: str, values: JsonMapping) -> None:
        """Change attributes of an object."""
        self._api.patch(self._object_path(object_id), {self._kind: values})

    def remove(self, object_id: str) -> None:
        """Delete an object; an object that does not exist is no error."""
        self._api.delete(self._object_path(object_id))

    def _object_path(self, object_id: str) -> str:
        return f"{self._path}/{_segment(object_id)}"


def _segment(text: str) -> str:
    """Return a text as a segment of a path: the id of a region may contain any character."""
    return quote(text, safe="")


def _assignment_path(subject: str, subject_id: str, assignment: RoleAssignment) -> str:
    return f"{assignment.scope_path}/{subject}s/{_segment(subject_id)}/roles/{_segment(assignment.role)}"


def _assignment(listed: JsonMapping) -> RoleAssignment | None:
    scope = listed.get("scope") or {}
    if "OS-INHERIT:inherited_to" in scope:
        return None
    project, domain = (scope.get(kind, {}).get("id", "") for kind in ("project", "domain"))
    return RoleAssignment(listed["role"]["id"], project, domain) if project or domain else None
