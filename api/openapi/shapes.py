"""Shapes shared by many routes: links, times, errors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from orchestrator.bodies.model import UUID, Shape, Time, described, optional

STACK = f"http://127.0.0.1:8004/v1/demo/stacks/web/{UUID}"

Reason = Annotated[str, Field(description="Reason of the status.", examples=["state changed"])]
State = Annotated[
    str,
    Field(pattern=r"^[A-Z]+_(IN_PROGRESS|COMPLETE|FAILED)$", examples=["CREATE_COMPLETE"]),
]
Json = Any


class Link(Shape):
    """A link."""

    rel: str = described("Relation: self, stack, resource, nested, root_stack or next.", "self")
    href: str = described("Absolute URL with the version prefix of the request.", STACK)


class Problem(Shape):
    """A fault of a request."""

    code: str = described("Stable identifier for programs.", "unknown-property")
    message: str = described("Explanation for users.", "Unknown Property lenght")
    path: str = described(
        "Dotted path in the template; empty outside of templates.", "resources.one.properties"
    )
    line: int | None = described("Line.", 6)
    column: int | None = described("Column.", 7)
    hint: str = described("Suggestion.", "did you mean length?")
    file: str = described("File; empty for the template itself.", "")
    excerpt: str = described("Excerpt of the text.", "lenght: 12")
    severity: str = described("error or warning.", "error")


class FaultDetail(Shape):
    """Details of an error."""

    type: str = described("Error type.", "StackValidationFailed")
    message: str | None = optional("Message; omitted for internal errors.", "No such property.")
    traceback: str | None = described("Always null.", None)
    errors: list[Problem] | None = optional("Every fault. Extension.")
    id: str | None = optional("Id of an internal error, which is also in the server's log.", UUID)


class Fault(Shape):
    """Error response, except 401: the status, and details in `error`."""

    code: int = described("Status code.", 400)
    title: str = described("Title of the status.", "Bad Request")
    explanation: str = described(
        "Explanation of the status.",
        "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    )
    error: FaultDetail = described("Events of stacks, as lists and as streams.")


class UnauthorizedDetail(Shape):
    """Details of a 401 response."""

    code: int = described("Status code.", 401)
    title: str = described("Title of the status.", "Unauthorized")
    message: str = described(
        "Events of stacks, as lists and as streams.", "The request you have made requires authentication."
    )


class Unauthorized(Shape):
    """Response to missing or invalid credentials."""

    error: UnauthorizedDetail = described("Events of stacks, as lists and as streams.")


class TypeMatch(Shape):
    """A redirect: repeat the request with method and body at `Location`."""

    message: str = described(
        "Explanation for users.", "The resource was found at a different location; repeat the request there."
    )
    code: str = described("Status code.", "302 Found")
    title: str = described("Title of the status.", "Found")


class Page(Shape):
    """Pagination."""

    limit: int | None = optional("Maximum number of results.", 100, ge=0)
    marker: str | None = optional("Return results after the object with this id.", UUID)


class Sent(Shape):
    """A server-sent message."""

    data: str = described("An event in the format of the list, as JSON.", '{"sequence": "734.1"}')
    id: str | None = optional("Its `sequence`; `Last-Event-ID` resumes after it.", "734.1")
    event: str | None = optional("Message type, if it is not a stack event.")


class Rollout(Shape):
    """A group that is updated in batches."""

    resource_name: str = described("Logical name of the group.", "workers")
    stack_name: str = described("Name of its nested stack.", "shop-workers-4x2k")
    stack_id: str = described("Id of its nested stack.", UUID)
    batch: int = described("Number of the batch, from 1.", 3)
    batches: int = described("Number of batches; may grow if members need replacements.", 10)
    updated: int = described("Updated members.", 60)
    total: int = described("Members to update.", 200)


class Progress(Shape):
    """Progress of an action in resources, including nested stacks."""

    total: int = described("Resources to visit.", 2)
    ready: int = described("Finished resources.", 1)
    failed: int = described("Failed resources.", 0)
    running: int = described("Resources in progress.", 1)
    waiting: int = described("Queued resources.", 0)
    blocked: int = described("Resources that wait for their requirements.", 0)
    counted_at: Time | None = described("Time of the count.", "2026-01-01T12:00:00Z")
    rollouts: list[Rollout] = described("Groups that are updated in batches, at most ten.")


class Warned(Shape):
    """An answer with warnings about the request."""

    warnings: list[Any] | None = optional(
        "Warnings about probable mistakes, such as duplicate keys, in the form of errors. Extension."
    )
