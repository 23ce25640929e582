"""Requests and answers, and the routes of a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode
from uuid import uuid4

import orjson

from simulated_openstack.json_types import JsonObject

JSON: Final = "application/json"
REASONS: Final = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    203: "Non-Authoritative Information",
    204: "No Content",
    300: "Multiple Choices",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    409: "Conflict",
    412: "Precondition Failed",
    413: "Request Entity Too Large",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass
class Request:
    """A request as received; the names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    id: str = field(default_factory=lambda: f"req-{uuid4()}")

    @cached_property
    def path(self) -> str:
        """The path, without a slash at its end."""
        path = self.target.partition("?")[0]
        return (unquote(path) if "%" in path else path).rstrip("/") or "/"

    @cached_property
    def query(self) -> list[tuple[str, str]]:
        """The parameters of the query, in order."""
        text = self.target.partition("?")[2]
        return parse_qsl(text, keep_blank_values=True) if text else []

    def values(self, name: str) -> list[str]:
        """Return all values of a parameter."""
        return [value for key, value in self.query if key == name]

    def value(self, name: str) -> str | None:
        """Return the last value of a parameter, or None."""
        values = self.values(name)
        return values[-1] if values else None

    @cached_property
    def json(self) -> Any:
        """The JSON of the body, None if it is none."""
        try:
            return orjson.loads(self.content)
        except orjson.JSONDecodeError:
            return None

    def following(self, marker: str, base: str) -> str:
        """Return the URL of the next page of a list."""
        query = [(key, value) for key, value in self.query if key != "marker"]
        return f"{base}{self.path}?{urlencode([*query, ('marker', marker)])}"


@dataclass
class Response:
    """An answer; `body` is sent as JSON, or as it is if it is bytes."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else orjson.dumps(self.body)


class ApiError(Exception):
    """A refusal. `kind` is the name of the error in the service's body; each service formats it."""

    def __init__(
        self, status: int, message: str, kind: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Keep the parts."""
        super().__init__(message)
        self.status, self.message, self.kind, self.headers = status, message, kind, dict(headers or {})


Handler = Callable[..., Response]


class Router:
    """Handlers by method and path; `{name}` in a path is a variable."""

    def __init__(self) -> None:
        """Start empty."""
        self._routes: dict[tuple[str, int], list[tuple[tuple[str, ...], Handler]]] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Add a route; earlier routes win."""
        parts = tuple(path.strip("/").split("/"))
        self._routes.setdefault((method, len(parts)), []).append((parts, handler))

    def find(self, method: str, path: str) -> tuple[Handler, JsonObject] | None:
        """Return the handler of a path with the values of its variables, or None."""
        given = path.strip("/").split("/")
        for parts, handler in self._routes.get((method, len(given)), ()):
            values = _matched(parts, given)
            if values is not None:
                return handler, values
        return None

    def methods(self, path: str) -> Iterator[str]:
        """Yield the methods with a route for a path."""
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"):
            if self.find(method, path) is not None:
                yield method


def _matched(parts: tuple[str, ...], given: list[str]) -> JsonObject | None:
    values: JsonObject = {}
    for part, value in zip(parts, given, strict=True):
        if part[:1] == "{":
            values[part[1:-1]] = value
        elif part != value:
            return None
    return values
