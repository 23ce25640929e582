"""What all services have in common: a request is authenticated, routed, handled, and answered with an id."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Final, Protocol
from uuid import uuid4

from simulated_openstack.environment import Environment
from simulated_openstack.http import ApiError, Request, Response, Router
from simulated_openstack.json_types import JsonMapping, JsonObject

LABEL: Final = "simulated"  # in every version document
UNAUTHENTICATED: Final = "The request you have made requires authentication."


@dataclass(frozen=True)
class Caller:
    """The user of a token, with the project and the roles that it is scoped to."""

    token_id: str
    user_id: str
    project_id: str
    roles: frozenset[str]
    domain_id: str = ""  # a token scoped to a domain
    system: bool = False
    trust_id: str = ""
    by_credential: bool = False  # a token of an application credential
    restricted: bool = False  # of a restricted application credential

    @property
    def is_admin(self) -> bool:
        """Whether the caller may do everything."""
        return "admin" in self.roles


@dataclass
class Call:
    """A request with its caller."""

    request: Request
    caller: Caller
    base: str  # URL of the root of the service
    version: tuple[int, int] = (0, 0)  # microversion

    @cached_property
    def body(self) -> Any:
        """The JSON of the request."""
        return self.request.json


class Identity(Protocol):
    """The service that issues tokens."""

    @property
    def base(self) -> str:
        """Its URL."""

    def caller_of(self, token: str) -> Caller | None:
        """Return the caller of a token, None if the token is not valid."""


class Service:
    """A service: its routes and the form of its errors."""

    name: ClassVar[str]
    port_offset: ClassVar[int]  # from the first port, as in the real control plane
    public_paths: ClassVar[frozenset[str]] = frozenset({"/"})  # no token required

    def __init__(self, cloud: Environment, identity: Identity) -> None:
        """Start without routes; `identity` knows the callers."""
        self.cloud, self.identity, self.router = cloud, identity, Router()
        self.port = 0

    @property
    def base(self) -> str:
        """The URL of the service."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, request: Request) -> Response:
        """Handle a request; return its answer, which is an error after an ApiError."""
        try:
            response = self._handle(request)
        except ApiError as error:
            response = self.error(error)
            response.headers |= error.headers
        response.headers["x-openstack-request-id"] = request.id
        return response

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error; here in Keystone's form."""
        title = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict"}
        body = {"code": error.status, "title": title.get(error.status, "Error"), "message": error.message}
        return Response(error.status, {"error": body})

    def version_of(self, request: Request) -> tuple[int, int]:
        """Return the microversion of a request."""
        del request
        return (0, 0)

    def check_caller(self, request: Request, caller: Caller) -> None:
        """Refuse a caller that may not use the service at all."""

    def _handle(self, request: Request) -> Response:
        found = self.router.find(request.method, request.path)
        public = request.path in self.public_paths
        caller = NOBODY if public else self.caller(request)
        if not public:
            self.check_caller(request, caller)
        if found is None:
            return self.no_route(request)
        handler, variables = found
        call = Call(request, caller, self.base, self.version_of(request))
        response: Response = handler(call, **variables)
        return response

    def caller(self, request: Request) -> Caller:
        """Return the caller of a request.

        Raises:
            ApiError: 401, there is no valid token.
        """
        token = request.headers.get("x-auth-token")
        caller = None if token is None else self.identity.caller_of(token)
        if caller is None:
            header = {"WWW-Authenticate": f'Keystone uri="{self.identity.base}"'}
            raise ApiError(401, UNAUTHENTICATED, "Unauthorized", header)
        return caller

    def no_route(self, request: Request) -> Response:
        """Return the answer for an unknown path or method."""
        if any(self.router.methods(request.path)):
            raise ApiError(405, "The method is not allowed for the requested URL.", "MethodNotAllowed")
        raise ApiError(404, "The resource could not be found.", "HTTPNotFound")


NOBODY: Final = Caller("", "", "", frozenset())


def version_document(id_: str, status: str, url: str, **more: Any) -> JsonObject:
    """Return the description of a version of an API at a URL."""
    links = [{"rel": "self", "href": url}]
    return {"id": id_, "status": status, "links": links, "description": LABEL, **more}


def timestamp(*, zone: str = "Z") -> str:
    """Return the current time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + zone


def precise_timestamp() -> str:
    """Return the current time in UTC with microseconds and without a zone."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def new_id() -> str:
    """Return a new uuid."""
    return str(uuid4())


def new_hex() -> str:
    """Return a new uuid without hyphens."""
    return uuid4().hex


def project_of(call: Call, values: JsonMapping) -> str:
    """Return the project of a new object: the caller's, or one that an admin names."""
    named = values.get("project_id") or values.get("tenant_id")
    return str(named) if named else call.caller.project_id
