"""The stack domain of the stand-in for Keystone: its admin, its projects and users, and their roles.

It is as strict as Keystone: names are unique, only the admin of the domain changes anything, and a user
without a role in a project gets no token for it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

ID, NAME = "id of heat", "heat"
ADMIN = ("heat_domain_admin", "domain secret")
ROLE = {"id": "r1", "name": "heat_stack_user"}
SETTINGS = {
    "stack_user_domain_name": NAME,
    "stack_domain_admin": ADMIN[0],
    "stack_domain_admin_password": ADMIN[1],
}
Told = tuple[int, Any]


@dataclass
class StackDomain:
    """The contents of the domain, and the number of creations."""

    projects: dict[str, dict[str, Any]] = field(default_factory=dict)
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    roles: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # of a user in a project
    made: list[str] = field(default_factory=list)  # names

    def answer(
        self,
        verb: str,
        path: str,
        query: dict[str, list[str]],
        body: dict[str, Any] | None,
        token: dict[str, Any],
    ) -> Told | None:
        """Return the answer to a request, None when it is not about the domain."""
        parts = path.split("?", maxsplit=1)[0].removeprefix("/v3/").strip("/").split("/")
        if parts[0] not in ("projects", "users", "roles") or "application_credentials" in parts:
            return None
        if token.get("domain", {}).get("id") != ID or token["user"]["name"] != ADMIN[0]:
            return 403, {"error": {"message": "You are not authorized to perform the requested action."}}
        if parts[0] == "roles":
            return 200, {"roles": [ROLE] if query["name"] == [ROLE["name"]] else []}
        if "roles" in parts:
            _, project, _, user, _, role = parts
            recorded = project in self.projects and user in self.users and role == ROLE["id"]
            self.roles.setdefault((user, project), set()).add(role)
            return (204, None) if recorded else (404, {})
        things = {"projects": self.projects, "users": self.users}[parts[0]]
        match verb:
            case "GET":
                assert query["domain_id"] == [ID]
                result = [item for item in things.values() if [item["name"]] == query["name"]]
                return 200, {parts[0]: result}
            case "DELETE":
                return (404, {}) if things.pop(parts[1], None) is None else (204, None)
        assert body is not None
        return self._make(parts[0], things, body)

    def _make(self, kind: str, things: dict[str, dict[str, Any]], body: dict[str, Any]) -> Told:
        requests = body[kind[:-1]]
        assert requests["domain_id"] == ID
        assert len(requests["name"]) <= 64
        if any(item["name"] == requests["name"] for item in things.values()):
            return 409, {"error": {"message": "Conflict occurred attempting to store it."}}
        made = {**requests, "id": uuid.uuid4().hex}
        things[made["id"]] = made
        self.made.append(requests["name"])
        return 201, {kind[:-1]: {name: value for name, value in made.items() if name != "password"}}

    def sign_in(self, user: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any] | None:
        """Return the token data of the domain's admin, or of a user of the domain; None for other tokens."""
        domain = {"id": ID, "name": NAME}
        if (user.get("name"), user["password"]) == ADMIN:
            assert scope["domain"] in ({"id": ID}, {"name": NAME})
            assert user["domain"] in ({"id": ID}, {"name": NAME})
            return {
                "user": {"id": "the domain's admin", "name": ADMIN[0], "domain": domain},
                "domain": domain,
            }
        for item in self.users.values():
            recorded = user.get("id") == item["id"] or (
                user.get("name") == item["name"] and user.get("domain") == {"id": ID}
            )
            if recorded and user["password"] == item["password"]:
                project = scope["project"]["id"]
                if project in self.projects and self.roles.get((item["id"], project)) == {ROLE["id"]}:
                    return {
                        "user": {"id": item["id"], "name": item["name"], "domain": domain},
                        "project": {"id": project, "name": self.projects[project]["name"], "domain": domain},
                        "roles": [ROLE],
                    }
        return None
