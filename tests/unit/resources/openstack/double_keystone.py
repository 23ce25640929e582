"""Keystone in memory, with the rules that its types depend on."""

from __future__ import annotations

import itertools
from typing import Any

from tests.unit.resources.openstack.double_cloud import Answer, Request, refusal

UNIQUE_NAMES = {"projects", "users", "groups", "roles", "domains"}


class DoubleKeystone:
    """Answers requests about objects, memberships and role assignments."""

    def __init__(self) -> None:
        """Start with the domain `default` and a role."""
        self.objects: dict[str, dict[str, dict[str, Any]]] = {
            name: {} for name in (*UNIQUE_NAMES, "regions", "services", "endpoints")
        }
        self.members: set[tuple[str, str]] = set()  # group, user
        self.assignments: set[tuple[str, str, str, str, str]] = set()  # scope kind, scope, subject kind, …
        self._numbers = itertools.count(1)
        self.add("domains", id="default", name="Default")

    def add(self, kind: str, **values: Any) -> str:
        """Add an object; return its id."""
        object_id: str = values.get("id") or f"{kind[:-1]}-{next(self._numbers)}"
        self.objects[kind][object_id] = {"enabled": True, "description": "", **values, "id": object_id}
        return object_id

    def __call__(self, request: Request) -> Answer:
        """Answer a request."""
        match request.method, request.path:
            case _, ("role_assignments",):
                return Answer({"role_assignments": list(self._listed_assignments(request.query))})
            case "GET", ("users", user_id, "groups"):
                groups = [self.objects["groups"][group] for group, user in self.members if user == user_id]
                return Answer({"groups": groups})
            case method, ("groups", group_id, "users", user_id):
                return self._linked(method, self.members, (group_id, user_id))
            case method, (scope, scope_id, subject, subject_id, "roles", role_id):
                return self._linked(method, self.assignments, (scope, scope_id, subject, subject_id, role_id))
            case "POST", (kind,):
                return self._create(kind, request.body[kind[:-1]])
            case "GET", (kind,):
                if "limit" in request.query:
                    return refusal(400, "Additional properties are not allowed ('limit' was unexpected)")
                filters = request.query
                found = [
                    one
                    for one in self.objects[kind].values()
                    if all(one.get(name) == value for name, value in filters.items())
                ]
                return Answer({kind: found})
            case method, (kind, object_id):
                return self._one(method, kind, object_id, request.body)
        raise AssertionError(request)

    def _create(self, kind: str, values: dict[str, Any]) -> Answer:
        if kind in UNIQUE_NAMES and any(
            (one.get("name"), one.get("domain_id")) == (values["name"], values.get("domain_id"))
            for one in self.objects[kind].values()
        ):
            return refusal(409, f"Conflict occurred attempting to store {kind[:-1]} - Duplicate entry.")
        if values.get("id") in self.objects[kind]:
            return refusal(409, "Conflict occurred attempting to store region - Duplicate ID.")
        given = {name: value for name, value in values.items() if name != "password"}
        return Answer({kind[:-1]: self.objects[kind][self.add(kind, **given)]}, 201)

    def _one(self, method: str, kind: str, object_id: str, body: Any) -> Answer:
        found = self.objects[kind].get(object_id)
        if found is None:
            return refusal(404, f"Could not find {kind[:-1]}: {object_id}.")
        if method == "PATCH":
            if body[kind[:-1]].get("domain_id", found.get("domain_id")) != found.get("domain_id"):
                return refusal(400, "Cannot change Domain ID")
            found.update(body[kind[:-1]])
            found.pop("password", None)
        elif method == "DELETE":
            if kind == "domains" and found["enabled"]:
                return refusal(403, "Cannot delete a domain that is enabled, please disable it first.")
            del self.objects[kind][object_id]
            self.members = {link for link in self.members if object_id not in link}
            self.assignments = {link for link in self.assignments if object_id not in link}
            return Answer(status=204)
        return Answer({kind[:-1]: found})

    def _linked(self, method: str, links: set[Any], link: tuple[str, ...]) -> Answer:
        missing = [one for one in link if one.rpartition("-")[2].isdigit() and not self._exists(one)]
        if missing or (method == "DELETE" and link not in links):
            return refusal(404, f"Could not find {(missing or ['role assignment'])[0]}.")
        if method == "PUT":
            links.add(link)
        else:
            links.discard(link)
        return Answer(status=204)

    def _exists(self, object_id: str) -> bool:
        return any(object_id in objects for objects in self.objects.values())

    def _listed_assignments(self, query: Any) -> Any:
        for scope, scope_id, subject, subject_id, role_id in sorted(self.assignments):
            if query.get(f"{subject[:-1]}.id") == subject_id:
                yield {
                    "scope": {scope[:-1]: {"id": scope_id}},
                    subject[:-1]: {"id": subject_id},
                    "role": {"id": role_id},
                }
