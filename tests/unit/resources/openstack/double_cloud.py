"""A cloud in memory: the services are functions that answer requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack import transport

REGION = "RegionOne"


class Request(NamedTuple):
    """A request as a service receives it; the segments of `path` are decoded."""

    service: str
    method: str
    path: tuple[str, ...]
    query: Mapping[str, Any]
    body: Any
    headers: Mapping[str, str]


class Answer(NamedTuple):
    """An answer of a service."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = {}


Service = Callable[[Request], Answer]


def refusal(status: int, message: str) -> Answer:
    """Return an error as Keystone words it."""
    body = {"error": {"code": status, "message": message}}
    return Answer(body, status, {"x-openstack-request-id": "req-1"})


class DoubleCloud:
    """A transport to services, by their names: keystone, nova. It keeps the requests."""

    def __init__(self, **services: Service) -> None:
        """Answer with `services`."""
        self.services = services
        self.requests: list[Request] = []
        self.faults: list[Callable[[Request], Answer | None]] = []
        self.cloud = Cloud(lambda: self, REGION)

    def send(self, request: transport.Request, seconds: float) -> transport.Answer:
        """Answer a request, or fail as a fault demands."""
        path = tuple(unquote(segment) for segment in request.path.strip("/").split("/"))
        received = Request(
            request.service, request.method, path, request.query, request.body, request.headers
        )
        self.requests.append(received)
        faults = (answer for fault in self.faults if (answer := fault(received)) is not None)
        answer = next(faults, None) or self.services[request.service](received)
        content = b"" if answer.body is None else json.dumps(answer.body).encode()
        return transport.Answer(answer.status, answer.headers, content)

    def versions(self, service: str, service_type: str, seconds: float) -> tuple[str, str]:
        """Return the range of microversions."""
        return ("2.1", "2.100") if service == "nova" else ("3.0", "3.71") if service == "cinder" else ("", "")

    def url(self, service: str, service_type: str, seconds: float) -> str:
        """Return the URL of a service."""
        return f"http://{service}"

    def owner(self, seconds: float) -> tuple[str, str]:
        """Return the names of the project and of the user."""
        return "project", "user"

    def count(self, method: str, *path: str) -> int:
        """Return the number of requests whose path begins so."""
        return sum(one.method == method and one.path[: len(path)] == path for one in self.requests)
