"""The Keystone domain of stack users: a project for each tree of stacks, in it a user for each signalled
resource.

Names are chosen beforehand and unique, so an object is found by its name even if the response that created it
was lost: a repeated creation yields the same object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlencode

from orchestrator.clients.keystone.http import (
    UNAVAILABLE,
    KeystoneApi,
    Refused,
    identity_plugins,
    new_session,
    translated_errors,
)
from orchestrator.errors import Unavailable
from orchestrator.json_types import JsonMapping

PROJECT_DESCRIPTION: Final = "Heat stack user project"

EntityKind = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class DomainAdmin:
    """Keystone's URL, the domain by id or by name, and its administrator."""

    auth_url: str
    username: str
    password: str = field(repr=False)
    role: str  # granted to the users
    domain_id: str | None = None
    domain_name: str | None = None
    cafile: Path | None = None


class StackDomain:
    """Creates and removes users and projects of the domain.

    Every method may raise Unavailable, when Keystone does not respond or rejects the administrator (it may
    still have carried out the request), and Refused, when the administrator lacks the right.
    """

    def __init__(self, admin: DomainAdmin) -> None:
        """Authenticate as `admin` at the first request.

        Raises:
            Misconfigured: keystoneauth1 is not installed.
        """
        self._admin, self._api = admin, KeystoneApi(admin.auth_url, _session(admin))

    @property
    def id(self) -> str:
        """Return the domain's id; ask Keystone if only its name is set."""
        if self._admin.domain_id:
            return self._admin.domain_id
        session = self._api.session
        with translated_errors():
            domain_id = session.auth.get_access(session).domain_id
        if not domain_id:
            raise Unavailable(UNAVAILABLE)
        return str(domain_id)

    def ensure_project(self, name: str) -> str:
        """Return the id of the project of that name; create it if it does not exist."""
        body = {"name": name, "domain_id": self.id, "description": PROJECT_DESCRIPTION}
        return self._ensure("project", body)

    def ensure_user(self, name: str, password: str, project_id: str) -> str:
        """Return the id of the user of that name, with the role in a project; create it if absent."""
        body = {"name": name, "password": password, "domain_id": self.id, "default_project_id": project_id}
        user_id = self._ensure("user", body)
        self._request("PUT", f"/projects/{project_id}/users/{user_id}/roles/{self._role()}")
        return user_id

    def remove(self, kind: EntityKind, id_: str | None, name: str) -> None:
        """Remove a user or a project, by its name if its id is unknown; do nothing if it does not exist."""
        if id_ is None:
            id_ = self._find(kind, name)
        if id_ is not None:
            self._request("DELETE", f"/{kind}s/{id_}")

    def _ensure(self, kind: EntityKind, body: JsonMapping) -> str:
        created = self._request("POST", f"/{kind}s", {kind: body})
        id_ = self._find(kind, body["name"]) if created is None else created[kind]["id"]
        if id_ is None:
            raise Unavailable(UNAVAILABLE)  # removed between the two requests
        return str(id_)

    def _find(self, kind: EntityKind, name: str) -> str | None:
        listed = self._request("GET", f"/{kind}s?{urlencode({'name': name, 'domain_id': self.id})}") or {}
        ids = [item["id"] for item in listed.get(f"{kind}s", ()) if item["name"] == name]
        return str(ids[0]) if ids else None

    def _role(self) -> str:
        listed = self._request("GET", f"/roles?{urlencode({'name': self._admin.role})}") or {}
        for role in listed.get("roles", ()):
            return str(role["id"])
        raise Refused(f"Keystone has no role {self._admin.role}, which stack users are granted.")

    def _request(self, method: str, path: str, body: object = None) -> Any:
        """Return the decoded response; None if the object is absent, or its name is taken."""
        return self._api.request(
            method, path, body, absent=(404, 409) if method in {"GET", "DELETE"} else (409,)
        )


@lru_cache(maxsize=8)
def _session(admin: DomainAdmin) -> Any:
    domain = (
        {"domain_id": admin.domain_id, "user_domain_id": admin.domain_id}
        if admin.domain_id
        else {"domain_name": admin.domain_name, "user_domain_name": admin.domain_name}
    )
    auth = identity_plugins().Password(
        admin.auth_url, username=admin.username, password=admin.password, **domain
    )
    return new_session(auth, admin.cafile)
