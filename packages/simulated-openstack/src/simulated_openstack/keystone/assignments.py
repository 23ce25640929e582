"""Roles of users and groups in projects, in domains and in the whole system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.keystone.entities import Domains, Groups, Projects, Roles, Users
from simulated_openstack.keystone.family import forbid, link, listing
from simulated_openstack.service import Call, Service
from simulated_openstack.state import Table

IMPLIED: Final = {"admin": ("manager",), "manager": ("member",), "member": ("reader",)}
SYSTEM: Final = "system"


class Assignments:
    """The roles: each an actor (`users/ID`), a target (`projects/ID`, `domains/ID`, `system`) and a role."""

    def __init__(
        self,
        keystone: Service,
        projects: Projects,
        users: Users,
        groups: Groups,
        roles: Roles,
        domains: Domains,
    ) -> None:
        """Add the routes."""
        self.keystone = keystone
        self._projects, self._users, self._groups, self._roles = projects, users, groups, roles
        self._domains = domains
        self._projects.on_remove.append(lambda row: self._forget("target", f"projects/{row['id']}"))
        self._users.on_remove.append(lambda row: self._forget("actor", f"users/{row['id']}"))
        self._groups.on_remove.append(lambda row: self._forget("actor", f"groups/{row['id']}"))
        self._roles.on_remove.append(lambda row: self._forget("role_id", row["id"]))
        self.table: Table = keystone.cloud.state.table("keystone.assignment", "actor", "target", "role_id")
        for target in ("projects/{project_id}", "domains/{domain_id}", "system"):
            for actor in ("users/{user_id}", "groups/{group_id}"):
                root = f"/v3/{target}/{actor}/roles"
                keystone.router.add("GET", root, self.index)
                for method, handler in (
                    ("PUT", self.put),
                    ("GET", self.show),
                    ("HEAD", self.show),
                    ("DELETE", self.delete),
                ):
                    keystone.router.add(method, root + "/{role_id}", handler)
        keystone.router.add("GET", "/v3/role_assignments", self.all)
        keystone.router.add("GET", "/v3/users/{id_}/projects", self.projects)

    def grant(self, actor: str, target: str, role_id: str) -> None:
        """Give a role."""
        row = {"id": f"{actor}|{target}|{role_id}", "actor": actor, "target": target, "role_id": role_id}
        self.table.save(row)

    def _forget(self, field: str, value: str) -> None:
        """Remove all roles of an actor, on a target, or of a kind."""
        for row in self.table.where(field, value):
            self.table.remove(row["id"])

    def role_ids(self, user_id: str, target: str) -> list[str]:
        """Return the roles of a user on a target, with those of their groups and those implied."""
        groups = self._groups
        actors = {f"users/{user_id}"}
        actors |= {f"groups/{row['id']}" for row in groups.table if user_id in groups.members(row["id"])}
        rows = [row for actor in actors for row in self.table.where("actor", actor)]
        return self.with_implied([row["role_id"] for row in rows if row["target"] == target])

    def with_implied(self, role_ids: list[str]) -> list[str]:
        """Return roles with the roles that they imply."""
        roles = self._roles
        found = dict.fromkeys(role_ids)
        pending = list(found)
        while pending:
            role = roles.table.get(pending.pop())
            for name in IMPLIED.get(role["name"], ()) if role else ():
                implied = roles.named(name)
                if implied is not None and implied["id"] not in found:
                    found[implied["id"]] = None
                    pending.append(implied["id"])
        return [id_ for id_ in found if roles.table.get(id_) is not None]

    def projects_of(self, user_id: str) -> list[JsonObject]:
        """Return the projects in which a user has a role."""
        projects = self._projects
        return [
            projects.view(row) for row in projects.table if self.role_ids(user_id, f"projects/{row['id']}")
        ]

    def projects(self, call: Call, id_: str) -> Response:
        """List the projects in which a user has a role."""
        self._users.found(id_)
        return listing(call, "projects", self.projects_of(id_))

    def index(self, call: Call, **names: str) -> Response:
        """List the roles of an actor on a target."""
        actor, target = self._parties(names)
        roles = self._roles
        rows = [row for row in self.table.where("actor", actor) if row["target"] == target]
        return listing(call, "roles", [roles.view(roles.found(row["role_id"])) for row in rows])

    def put(self, call: Call, role_id: str, **names: str) -> Response:
        """Give a role."""
        if not call.caller.is_admin:
            forbid("identity:create_grant")
        actor, target = self._parties(names)
        self.grant(actor, target, self._roles.found(role_id)["id"])
        return Response(204)

    def show(self, call: Call, role_id: str, **names: str) -> Response:
        """Answer whether an actor has a role."""
        del call
        self._found(role_id, names)
        return Response(204)

    def delete(self, call: Call, role_id: str, **names: str) -> Response:
        """Take a role away."""
        if not call.caller.is_admin:
            forbid("identity:revoke_grant")
        self.table.remove(self._found(role_id, names)["id"])
        return Response(204)

    def all(self, call: Call) -> Response:
        """List roles of all actors, filtered."""
        if not call.caller.is_admin:
            forbid("identity:list_role_assignments")
        wanted: dict[str, Callable[[JsonObject, str], bool]] = {
            "user.id": lambda row, value: row["actor"] == f"users/{value}",
            "group.id": lambda row, value: row["actor"] == f"groups/{value}",
            "role.id": lambda row, value: row["role_id"] == value,
            "scope.project.id": lambda row, value: row["target"] == f"projects/{value}",
            "scope.domain.id": lambda row, value: row["target"] == f"domains/{value}",
        }
        tests = [(wanted[key], value) for key, value in call.request.query if key in wanted]
        rows = [row for row in self.table if all(test(row, value) for test, value in tests)]
        return listing(call, "role_assignments", map(self._view, rows))

    def _view(self, row: JsonObject) -> JsonObject:
        target, _, target_id = row["target"].partition("/")
        actor, _, actor_id = row["actor"].partition("/")
        path = f"/{row['target']}/{row['actor']}/roles/{row['role_id']}"
        return {
            "links": {"assignment": link(self.keystone, path)},
            "scope": {"system": {"all": True}} if target == SYSTEM else {target[:-1]: {"id": target_id}},
            actor[:-1]: {"id": actor_id},
            "role": {"id": row["role_id"]},
        }

    def _parties(self, names: dict[str, str]) -> tuple[str, str]:
        """Return actor and target of a path; both must exist."""
        target = SYSTEM
        for name, family in (("project_id", self._projects), ("domain_id", self._domains)):
            if name in names:
                target = f"{family.collection}/{family.found(names[name])['id']}"
        if "user_id" in names:
            return f"users/{self._users.found(names['user_id'])['id']}", target
        return f"groups/{self._groups.found(names['group_id'])['id']}", target

    def _found(self, role_id: str, names: dict[str, str]) -> JsonObject:
        actor, target = self._parties(names)
        self._roles.found(role_id)
        row = self.table.get(f"{actor}|{target}|{role_id}")
        if row is None:
            place = target.partition("/")[2] or target
            raise ApiError(
                404,
                f"Could not find role assignment with role: {role_id}, user or group:"
                f" {actor.partition('/')[2]},"
                f" project, domain, or system: {place}.",
            )
        return row
