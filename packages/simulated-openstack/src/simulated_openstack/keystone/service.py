"""The service: its version documents and its families."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.environment import Environment
from simulated_openstack.http import Request, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.keystone.assignments import Assignments
from simulated_openstack.keystone.catalog import Endpoints, Regions, Services
from simulated_openstack.keystone.delegations import Delegations
from simulated_openstack.keystone.entities import Domains, Groups, Projects, Roles, Users
from simulated_openstack.keystone.family import link
from simulated_openstack.keystone.tokens import Tokens
from simulated_openstack.service import NOBODY, Call, Caller, Service, version_document


class Keystone(Service):
    """Identity: tokens, users, projects, roles, trusts, the catalog."""

    name: ClassVar[str] = "keystone"
    port_offset: ClassVar[int] = 0
    public_paths: ClassVar[frozenset[str]] = frozenset({"/", "/v3"})

    def __init__(self, cloud: Environment) -> None:
        """Add all routes."""
        super().__init__(cloud, self)
        self.router.add("GET", "/", self._versions)
        self.router.add("GET", "/v3", self._version)
        self.domains = Domains(self)
        self.projects = Projects(self, self.domains)
        self.roles = Roles(self)
        self.users = Users(self, self.domains)
        self.groups = Groups(self, self.domains, self.users)
        self.assignments = Assignments(self, self.projects, self.users, self.groups, self.roles, self.domains)
        self.services = Services(self)
        self.regions = Regions(self)
        self.endpoints = Endpoints(self, self.services, self.regions)
        self.delegations = Delegations(self, self.users, self.roles)
        self.tokens = Tokens(
            self,
            self.roles,
            self.assignments,
            self.services,
            self.endpoints,
            self.delegations,
            self.users,
            self.projects,
            self.domains,
        )

    def caller_of(self, token: str) -> Caller | None:
        """Return the caller of a token, None if the token is not valid."""
        return self.tokens.caller(token)

    def caller(self, request: Request) -> Caller:
        """Return the caller; a request for a token has none."""
        if request.method == "POST" and request.path == "/v3/auth/tokens":
            return NOBODY
        return super().caller(request)

    def _versions(self, call: Call) -> Response:
        del call
        return Response(300, {"versions": {"values": [self._document()]}}, {"Location": link(self, "/")})

    def _version(self, call: Call) -> Response:
        del call
        return Response(200, {"version": self._document()})

    def _document(self) -> JsonObject:
        media = {"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}
        url, updated = link(self, "/"), "2020-04-07T00:00:00Z"
        return version_document("v3.14", "stable", url, updated=updated, **{"media-types": [media]})
