"""The domain of Keystone's that stacks have their own users in: a project for each tree of stacks, and in it
a user for each resource that is signalled through Keystone.

Names are told beforehand and nobody else's, so that what was made by a request whose answer was lost is found
again: asking twice makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from orchestrator.clients.keystone.delegation import Refused, answers, words
from orchestrator.clients.keystone.ec2_tokens import SECONDS, UNAVAILABLE
from orchestrator.errors import Misconfigured, Unavailable

PROJECT_DOC: Final = "Heat stack user project"


@dataclass(frozen=True, slots=True)
class DomainAdmin:
    """Where Keystone is, the domain, and who manages it; the domain's id or its name is given."""

    auth_url: str
    username: str
    password: str = field(repr=False)
    role: str  # of the users that are made
    domain_id: str | None = None
    domain_name: str | None = None
    cafile: Path | None = None


class StackDomain:
    """Makes and removes what is in the domain. Every call has a deadline.

    Every method may raise Unavailable, when Keystone does not answer or does not know the admin: what was
    asked for may be done all the same; and Refused, when it does not let the admin do it.
    """

    def __init__(self, admin: DomainAdmin) -> None:
        """Take where and as whom; nothing is asked yet.

        Raises:
            Misconfigured: the library is not installed.
        """
        self._admin, self._session = admin, _session(admin)
        self._base = admin.auth_url.rstrip("/")

    @property
    def id(self) -> str:
        """Return the domain's id; where only its name is set, Keystone is asked."""
        if self._admin.domain_id:
            return self._admin.domain_id
        with answers():
            told = self._session.auth.get_access(self._session).domain_id
        if not told:
            raise Unavailable(UNAVAILABLE)
        return str(told)

    def project(self, name: str) -> str:
        """Return the id of the project of that name, made unless it is there."""
        body = {"name": name, "domain_id": self.id, "description": PROJECT_DOC}
        return self._made("project", body)

    def user(self, name: str, password: str, project_id: str) -> str:
        """Return the id of the user of that name, made unless they are there, with the role in a project."""
        body = {
            "name": name,
            "password": password,
            "domain_id": self.id,
            "default_project_id": project_id,
        }
        id_ = self._made("user", body)
        self._ask("PUT", f"/projects/{project_id}/users/{id_}/roles/{self._role()}")
        return id_

    def remove(self, word: str, id_: str | None, name: str) -> None:
        """Remove a `user` or a `project`, by its name where no id is known; one that is gone is fine."""
        if id_ is None:
            id_ = self._named(word, name)
        if id_ is not None:
            self._ask("DELETE", f"/{word}s/{id_}")

    def _made(self, word: str, body: Mapping[str, Any]) -> str:
        told = self._ask("POST", f"/{word}s", {word: body})
        id_ = self._named(word, body["name"]) if told is None else told[word]["id"]
        if id_ is None:
            raise Unavailable(UNAVAILABLE)  # it went in between
        return str(id_)

    def _named(self, word: str, name: str) -> str | None:
        listed = self._ask("GET", f"/{word}s?{urlencode({'name': name, 'domain_id': self.id})}") or {}
        found = [one["id"] for one in listed.get(f"{word}s", ()) if one["name"] == name]
        return str(found[0]) if found else None

    def _role(self) -> str:
        listed = self._ask("GET", f"/roles?{urlencode({'name': self._admin.role})}") or {}
        for role in listed.get("roles", ()):
            return str(role["id"])
        raise Refused(f"Keystone has no role {self._admin.role}, which users of stacks have.")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return what Keystone answers; None where there is nothing, or is something by that name already."""
        with answers():
            answer = self._session.request(f"{self._base}{path}", method, json=body, raise_exc=False)
            if (answer.status_code == 404 and method in ("GET", "DELETE")) or answer.status_code == 409:
                return None
            if answer.ok:
                return answer.json() if answer.content else {}
            if answer.status_code >= 500:
                raise Unavailable(UNAVAILABLE)
            raise Refused(words(answer))


@lru_cache(maxsize=8)
def _session(admin: DomainAdmin) -> Any:
    try:
        from keystoneauth1.identity import v3  # noqa: PLC0415 - an extra
        from keystoneauth1.session import Session  # noqa: PLC0415
    except ImportError as error:
        raise Misconfigured(
            "keystoneauth1 is not installed: pip install 'stack-orchestrator[keystone]'"
        ) from error
    domain: dict[str, Any] = (
        {"domain_id": admin.domain_id, "user_domain_id": admin.domain_id}
        if admin.domain_id
        else {"domain_name": admin.domain_name, "user_domain_name": admin.domain_name}
    )
    auth = v3.Password(admin.auth_url, username=admin.username, password=admin.password, **domain)
    return Session(auth, verify=str(admin.cafile) if admin.cafile else True, timeout=SECONDS)
