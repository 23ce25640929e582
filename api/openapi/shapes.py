"""Shapes that many routes share: links, times, refusals."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from api.openapi.operation import Shape, maybe, told

UUID = "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"
STACK = f"http://127.0.0.1:8004/v1/demo/stacks/web/{UUID}"

Time = Annotated[
    str,
    Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        description="UTC, whole seconds.",
        examples=["2026-01-01T12:00:00Z"],
    ),
]
Id = Annotated[str, Field(description="A UUID.", examples=[UUID])]
Reason = Annotated[str, Field(description="Why it is in this state.", examples=["state changed"])]
State = Annotated[
    str,
    Field(pattern=r"^[A-Z]+_(IN_PROGRESS|COMPLETE|FAILED)$", examples=["CREATE_COMPLETE"]),
]
Json = Any
JsonMap = dict[str, Any]


class Link(Shape):
    """Where something is."""

    rel: str = told("What it is to this one: self, stack, resource, nested, root_stack or next.", "self")
    href: str = told("The absolute address, under the version prefix the caller used.", STACK)


class Problem(Shape):
    """One fault of a request."""

    code: str = told("Stable: for programs.", "unknown-property")
    message: str = told("For people.", "Unknown Property lenght")
    path: str = told(
        "Where in the template, with dots; empty when it is in none.", "resources.one.properties"
    )
    line: int | None = told("The line in the text.", 6)
    column: int | None = told("The column in the text.", 7)
    hint: str = told("What may have been meant.", "did you mean length?")
    file: str = told("The file it is in; empty for the template itself.", "")
    excerpt: str = told("The text around it.", "lenght: 12")
    severity: str = told("error or warning.", "error")


class FaultDetail(Shape):
    """What happened."""

    type: str = told("The name of the error.", "StackValidationFailed")
    message: str | None = maybe(
        "What happened; left out of an error nobody raised on purpose.", "No such property."
    )
    traceback: str | None = told("Always null.", None)
    errors: list[Problem] | None = maybe("Every fault at once; ours, beside what Heat has.")
    id: str | None = maybe("Of an internal error: the log has it too.", UUID)


class Fault(Shape):
    """Every refusal but a 401: the status in general, and in `error` what happened."""

    code: int = told("The status.", 400)
    title: str = told("The status in words.", "Bad Request")
    explanation: str = told(
        "What the status means.",
        "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    )
    error: FaultDetail = told("What happened.")


class UnauthorizedDetail(Shape):
    """Why nobody is known."""

    code: int = told("The status.", 401)
    title: str = told("The status in words.", "Unauthorized")
    message: str = told("What happened.", "The request you have made requires authentication.")


class Unauthorized(Shape):
    """The refusal of who is not known, from before the API."""

    error: UnauthorizedDetail = told("What happened.")


class Found(Shape):
    """A redirection: the same request, method and body, is to be made at `Location`."""

    message: str = told(
        "For people.", "The resource was found at a different location; repeat the request there."
    )
    code: str = told("The status.", "302 Found")
    title: str = told("The status in words.", "Found")


class Page(Shape):
    """How to page."""

    limit: int | None = maybe("At most so many.", 100, ge=0)
    marker: str | None = maybe("Go on after the one with this id.", UUID)


class Sent(Shape):
    """A server-sent message."""

    data: str = told("An event as in a list, in JSON.", '{"sequence": "734.1"}')
    id: str | None = maybe("Its `sequence`: `Last-Event-ID` goes on from here.", "734.1")
    event: str | None = maybe("What kind it is, when it is not an event of a stack.")
