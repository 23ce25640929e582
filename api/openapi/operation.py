"""Description of a route: query, body and responses.

Path, method and summary are taken from the route and its view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from orchestrator.bodies.model import Request, Shape
from orchestrator.json_types import JsonMapping

JSON: Final = "application/json"
Secured = Literal["token", "none", "signature"]  # authentication


@dataclass(frozen=True, slots=True)
class Response:
    """A response; `shape` is any pydantic type, None without a body."""

    text: str
    shape: Any = None
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)  # name -> description
    also: JsonMapping = field(default_factory=dict)  # other media types -> shape


@dataclass(frozen=True, slots=True)
class Operation:
    """A route and method.

    `refuses` are error statuses in addition to every route's. `path` replaces the route's path if
    callers use another; `text` extends the first line of the view's docstring.
    """

    tag: str
    answers: Mapping[int, Response]
    query: type[Shape | Request] | None = None
    body: Any = None
    body_required: bool = True
    body_media: str = JSON
    refuses: frozenset[int] = frozenset()
    secured: Secured = "token"
    path: str | None = None
    text: str = ""


Operations = Mapping[str, Operation]  # by endpoint, or by "METHOD endpoint" if methods differ


def ok(text: str, shape: object, media: str = JSON) -> dict[int, Response]:
    """Return a single 200 response."""
    return {200: Response(text, shape, media)}


def no_content(status: int, text: str, **headers: str) -> dict[int, Response]:
    """Return a single response without a body."""
    return {status: Response(text, headers=headers)}
