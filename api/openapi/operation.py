"""What is said of one route: its query, its body, its answers.

Paths, methods and summaries are the route's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

JSON: Final = "application/json"
Secured = Literal["token", "nobody", "signature"]  # by what it is known who asks


class Shape(BaseModel):
    """A JSON object; there may always be more keys than are named."""

    model_config = ConfigDict(extra="allow")


def told(text: str, *example: Any, **more: Any) -> Any:
    """Return a field that `text` describes; required unless a `default` is given."""
    if example:
        more["examples"] = list(example)
    return Field(description=text, **more)


def maybe(text: str, *example: Any, **more: Any) -> Any:
    """Return a field that may be left out."""
    return told(text, *example, default=None, **more)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: `shape` is any type that pydantic knows, None when there is no body."""

    text: str
    shape: Any = None
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)  # name -> what it says
    also: Mapping[str, Any] = field(default_factory=dict)  # other media types -> shape


@dataclass(frozen=True, slots=True)
class Operation:
    """One route and method.

    `refuses` are the statuses beside those that every route may answer. `path` stands in for the route's own
    where that is not what callers ask; `text` adds to the view's first line.
    """

    tag: str
    answers: Mapping[int, Answer]
    query: type[Shape] | None = None
    body: Any = None
    body_required: bool = True
    body_media: str = JSON
    refuses: frozenset[int] = frozenset()
    secured: Secured = "token"
    path: str | None = None
    text: str = ""


Operations = Mapping[str, Operation]  # by endpoint, or by "METHOD endpoint" where they differ


def ok(text: str, shape: Any, media: str = JSON) -> dict[int, Answer]:
    """Return the answers of a route that answers 200."""
    return {200: Answer(text, shape, media)}


def done(status: int, text: str, **headers: str) -> dict[int, Answer]:
    """Return the answers of a route that answers without a body."""
    return {status: Answer(text, headers=headers)}
