"""Tokens: authentication by password, token or application credential; scopes; validation.

A token is valid as long as its user, its scope, its delegation and a role in the scope exist, as with
Keystone's Fernet tokens.
"""

from __future__ import annotations

import secrets
import time
from typing import Any, Final

from simulated_openstack.http import ApiError, Request, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.keystone.assignments import Assignments
from simulated_openstack.keystone.catalog import Endpoints, Services
from simulated_openstack.keystone.delegations import Delegations
from simulated_openstack.keystone.entities import PASSWORDS, Domains, Projects, Roles, Users
from simulated_openstack.keystone.family import link
from simulated_openstack.service import UNAUTHENTICATED, Call, Caller, Service
from simulated_openstack.state import Table

LIFETIME_SECONDS: Final = 86_400.0
ROLE_FIELDS: Final = (
    "id",
    "name",
    "domain_id",
    "description",
    "options",
)  # the first two, or all for a trust
MAX_TOKENS: Final = 10_000  # kept; more remove the expired tokens


class Tokens:
    """All tokens."""

    def __init__(
        self,
        keystone: Service,
        roles: Roles,
        assignments: Assignments,
        services: Services,
        endpoints: Endpoints,
        delegations: Delegations,
        users: Users,
        projects: Projects,
        domains: Domains,
    ) -> None:
        """Add the routes."""
        self.keystone = keystone
        self._roles, self._assignments, self._services, self._endpoints = (
            roles,
            assignments,
            services,
            endpoints,
        )
        self._delegations, self._users, self._projects, self._domains = delegations, users, projects, domains
        self.table: Table = keystone.cloud.state.table("keystone.token")
        self.lifetime_seconds = LIFETIME_SECONDS
        add = keystone.router.add
        add("POST", "/v3/auth/tokens", self.create)
        add("GET", "/v3/auth/tokens", self.show)
        add("HEAD", "/v3/auth/tokens", self.show)
        add("DELETE", "/v3/auth/tokens", self.revoke)
        add("GET", "/v3/auth/catalog", self.own_catalog)
        add("GET", "/v3/auth/projects", self.own_projects)
        add("POST", "/v3/ec2tokens", self.ec2)

    def caller(self, token_id: str) -> Caller | None:
        """Return the caller of a token, None if it is not valid."""
        row = self.table.get(token_id)
        if row is None or row["expires"] < time.time() or not self._is_usable(row):
            return None
        role_ids = self._role_ids(row)
        if row["scope"] and not role_ids:
            return None
        roles = self._roles.table
        names = frozenset(role["name"] for id_ in role_ids if (role := roles.get(id_)) is not None)
        kind, _, id_ = row["scope"].partition("/")
        return Caller(
            token_id=token_id,
            user_id=row["user_id"],
            project_id=id_ if kind == "projects" else "",
            roles=names,
            domain_id=id_ if kind == "domains" else "",
            system=kind == "system",
            trust_id=row["trust_id"],
            by_credential=bool(row["credential_id"]),
            restricted=self._is_restricted(row),
        )

    def create(self, call: Call) -> Response:
        """Authenticate, and issue a token."""
        auth = call.body.get("auth") if isinstance(call.body, dict) else None
        identity = auth.get("identity") if isinstance(auth, dict) else None
        if not isinstance(auth, dict) or not isinstance(identity, dict):
            raise ApiError(400, "'identity' is a required property")
        row = self._authenticated(identity)
        self._set_scope(row, auth.get("scope"))
        if not self._is_usable(row) or (row["scope"] and not self._role_ids(row)):
            raise ApiError(401, UNAUTHENTICATED)
        self._forget_expired()
        self.table.save(row)
        return Response(201, {"token": self._view(row)}, {"X-Subject-Token": row["id"]})

    def show(self, call: Call) -> Response:
        """Show a token to its owner or to a service."""
        return Response(200, {"token": self._view(self._subject(call.request))}, self._subject_header(call))

    def revoke(self, call: Call) -> Response:
        """End a token."""
        self.table.remove(self._subject(call.request)["id"])
        return Response(204)

    def own_catalog(self, call: Call) -> Response:
        """Show the catalog."""
        links = {"self": link(self.keystone, "/auth/catalog")}
        return Response(200, {"catalog": self.catalog(call.caller.project_id), "links": links})

    def own_projects(self, call: Call) -> Response:
        """List the caller's projects."""
        rows = self._assignments.projects_of(call.caller.user_id)
        links = {"self": link(self.keystone, "/auth/projects"), "next": None, "previous": None}
        return Response(200, {"projects": rows, "links": links})

    def ec2(self, call: Call) -> Response:
        """Refuse: there are no EC2 credentials."""
        del call
        raise ApiError(401, UNAUTHENTICATED)

    def catalog(self, project_id: str) -> list[JsonObject]:
        """Return the enabled services with their endpoints."""
        entries = []
        for service in self._services.table:
            if not service["enabled"]:
                continue
            endpoints = [
                {
                    "id": row["id"],
                    "interface": row["interface"],
                    "region_id": row["region_id"],
                    "region": row["region_id"],
                    "url": row["url"]
                    .replace("%(project_id)s", project_id)
                    .replace("$(project_id)s", project_id),
                }
                for row in self._endpoints.table.where("service_id", service["id"])
                if row["enabled"]
            ]
            name = service.get("name", "")
            entries.append(
                {"endpoints": endpoints, "id": service["id"], "type": service["type"], "name": name}
            )
        return entries

    def _authenticated(self, identity: JsonObject) -> JsonObject:
        """Return the row of a new token, without a scope unless the method determines it."""
        row: JsonObject = {
            "id": f"gAAAAAB{secrets.token_urlsafe(96)}",
            "audit_id": secrets.token_urlsafe(16),
            "methods": list(identity.get("methods") or ()),
            "issued": time.time(),
            "expires": time.time() + self.lifetime_seconds,
            "scope": "",
            "trust_id": "",
            "credential_id": "",
        }
        if "application_credential" in row["methods"]:
            return self._with_credential(row, identity.get("application_credential") or {})
        if "token" in row["methods"]:
            before = self.table.get((identity.get("token") or {}).get("id", ""))
            if before is None or self.caller(before["id"]) is None:
                raise ApiError(401, UNAUTHENTICATED)
            return {**row, "user_id": before["user_id"], "expires": before["expires"]}
        given = (identity.get("password") or {}).get("user") or {}
        user = self._user(given)
        password = given.get("password")
        if user is None or not password or password not in {user.get(name) for name in PASSWORDS}:
            raise ApiError(401, UNAUTHENTICATED)
        return {**row, "user_id": user["id"]}

    def _with_credential(self, row: JsonObject, given: JsonObject) -> JsonObject:
        """Return the row of a token of an application credential."""
        credentials = self._delegations.credentials
        found = credentials.get(given["id"]) if given.get("id") else None
        user = self._user(given.get("user") or {})
        if found is None and user is not None:
            own = credentials.where("user_id", user["id"])
            found = next((item for item in own if item["name"] == given.get("name")), None)
        if found is None or found["secret"] != given.get("secret"):
            raise ApiError(401, UNAUTHENTICATED)
        scope = f"projects/{found['project_id']}"
        return {**row, "user_id": found["user_id"], "scope": scope, "credential_id": found["id"]}

    def _set_scope(self, row: JsonObject, scope: Any) -> None:
        """Set the scope: as requested, or the user's default project."""
        if row["credential_id"]:
            return
        if not isinstance(scope, dict):
            user = self._users.table.get(row["user_id"]) or {}
            project = user.get("default_project_id")
            if scope != "unscoped" and project and self._projects.table.get(project):
                row["scope"] = f"projects/{project}"
            return
        if "OS-TRUST:trust" in scope:
            trust = self._delegations.trusts.get(scope["OS-TRUST:trust"].get("id", ""))
            if trust is None or trust["trustee_user_id"] != row["user_id"]:
                raise ApiError(401, UNAUTHENTICATED)
            row |= {"scope": f"projects/{trust['project_id']}", "trust_id": trust["id"]}
            row |= {"trustee_id": row["user_id"]}
            if trust["impersonation"]:
                row["user_id"] = trust["trustor_user_id"]
        elif "system" in scope:
            row["scope"] = "system"
        elif "project" in scope:
            row["scope"] = f"projects/{self._named(self._projects, scope['project'])}"
        elif "domain" in scope:
            row["scope"] = f"domains/{self._named(self._domains, scope['domain'])}"

    def _named(self, family: Any, given: JsonObject) -> str:
        """Return the id of a project or domain given by id or name."""
        if given.get("id"):
            found = family.table.get(given["id"])
        else:
            domain = self._domain(given.get("domain")) if "domain" in given else None
            rows = (row for row in family.table if row["name"] == given.get("name"))
            found = next((row for row in rows if domain in (None, row.get("domain_id"))), None)
        if found is None:
            raise ApiError(401, UNAUTHENTICATED)
        return str(found["id"])

    def _domain(self, given: JsonObject | None) -> str | None:
        if not given:
            return None
        if given.get("id"):
            return str(given["id"])
        row = self._domains.named(given.get("name", ""))
        return row["id"] if row else ""

    def _user(self, given: JsonObject) -> JsonObject | None:
        table: Table = self._users.table
        if given.get("id"):
            return table.get(given["id"])
        domain = self._domain(given.get("domain"))
        users = (user for user in table if user["name"] == given.get("name"))
        return next((user for user in users if user["domain_id"] == domain), None)

    def _is_usable(self, row: JsonObject) -> bool:
        """Whether user, project, domain and delegation of a token exist and are enabled."""
        user = self._users.table.get(row["user_id"])
        if user is None or not user["enabled"]:
            return False
        kind, _, id_ = row["scope"].partition("/")
        if kind in {"projects", "domains"}:
            family = self._projects if kind == "projects" else self._domains
            target = family.table.get(id_)
            if target is None or not target["enabled"]:
                return False
        if row["trust_id"] and self._delegations.trusts.get(row["trust_id"]) is None:
            return False
        credentials = self._delegations.credentials
        return not row["credential_id"] or credentials.get(row["credential_id"]) is not None

    def _is_restricted(self, row: JsonObject) -> bool:
        """Whether a token may not delegate: its application credential is restricted."""
        credential = self._delegations.credentials.get(row["credential_id"])
        return credential is not None and not credential["unrestricted"]

    def _role_ids(self, row: JsonObject) -> list[str]:
        """Return the roles of a token: those of its user, limited to those delegated."""
        if not row["scope"]:
            return []
        delegations = self._delegations
        delegated = None
        user_id = row["user_id"]
        if row["trust_id"]:
            delegated = delegations.trusts.get(row["trust_id"])
            user_id = delegated["trustor_user_id"] if delegated else user_id
        elif row["credential_id"]:
            delegated = delegations.credentials.get(row["credential_id"])
        own: list[str] = self._assignments.role_ids(user_id, row["scope"])
        if delegated is None:
            return own
        if not set(delegated["role_ids"]) <= set(own):
            return []
        limited: list[str] = self._assignments.with_implied(delegated["role_ids"])
        return limited

    def _view(self, row: JsonObject) -> JsonObject:
        users, domains = self._users.table, self._domains
        user = users.get(row["user_id"]) or {}
        roles = self._roles.table
        view: JsonObject = {
            "methods": row["methods"],
            "user": {
                "domain": domains.reference(user["domain_id"]),
                "id": user["id"],
                "name": user["name"],
                "password_expires_at": None,
            },
            "audit_ids": [row["audit_id"]],
            "expires_at": _time(row["expires"]),
            "issued_at": _time(row["issued"]),
        }
        kind, _, target_id = row["scope"].partition("/")
        if kind == "projects":
            project = self._projects.found(target_id)
            domain = domains.reference(project["domain_id"])
            view["project"] = {"domain": domain, "id": project["id"], "name": project["name"]}
            if not row["trust_id"]:
                view["is_domain"] = False
        elif kind == "domains":
            view["domain"] = domains.reference(target_id)
        elif kind:
            view["system"] = {"all": True}
        if row["trust_id"]:
            trust = self._delegations.trusts.get(row["trust_id"]) or {}
            view["OS-TRUST:trust"] = {
                "id": row["trust_id"],
                "trustor_user": {"id": trust["trustor_user_id"]},
                "trustee_user": {"id": trust["trustee_user_id"]},
                "impersonation": trust["impersonation"],
            }
        if row["credential_id"]:
            credential = self._delegations.credentials.get(row["credential_id"]) or {}
            view["application_credential"] = {
                "id": credential["id"],
                "name": credential["name"],
                "restricted": not credential["unrestricted"],
            }
        if kind:
            ids = self._role_ids(row)
            names = ROLE_FIELDS if row["trust_id"] else ROLE_FIELDS[:2]
            shown = [role for id_ in ids if (role := roles.get(id_)) is not None]
            view["roles"] = [{name: role[name] for name in names} for role in shown]
            view["catalog"] = self.catalog(target_id if kind == "projects" else "")
        return view

    def _subject(self, request: Request) -> JsonObject:
        token_id = request.headers.get("x-subject-token", "")
        if self.caller(token_id) is None and self.table.get(token_id) is None:
            raise ApiError(404, "Could not recognize Fernet token")
        row = self.table.get(token_id)
        if row is None or self.caller(token_id) is None:
            raise ApiError(404, f"Could not find token: {token_id}.")
        return row

    def _subject_header(self, call: Call) -> dict[str, str]:
        return {"X-Subject-Token": call.request.headers["x-subject-token"]}

    def _forget_expired(self) -> None:
        if len(self.table) > MAX_TOKENS:
            for row in self.table:
                if row["expires"] < time.time():
                    self.table.remove(row["id"])


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(seconds))
