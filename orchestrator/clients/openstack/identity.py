"""Keystone's API: objects, memberships of groups, and role assignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple
from urllib.parse import quote

from orchestrator.clients.openstack.object_collections import Collection, Collections
from orchestrator.json_types import JsonMapping, JsonObject

# The request token of an object: Keystone stores attributes that it does not know.
TOKEN_ATTRIBUTE: Final = "orchestrator_token"  # noqa: S105


def _objects(kind: str, *, unnamed: bool = False) -> Collection:
    path = f"{kind}s"
    return Collection(f"/{path}", kind, path, update_verb="PATCH", page=None, only_ids=False, unnamed=unnamed)


PROJECTS: Final = _objects("project")
USERS: Final = _objects("user")
GROUPS: Final = _objects("group")
ROLES: Final = _objects("role")
DOMAINS: Final = _objects("domain")
REGIONS: Final = _objects("region", unnamed=True)
SERVICES: Final = _objects("service")
ENDPOINTS: Final = _objects("endpoint")


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
