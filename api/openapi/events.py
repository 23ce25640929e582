"""Event streams and webhooks."""

from __future__ import annotations

from typing import Final, Literal

from api.openapi.operation import Operation, Operations, Response, Shape, described, ok, optional
from api.openapi.resources import Event
from api.openapi.shapes import UUID, Id, Page, Sent, Time

EVENTS: Final = "events"
WEBHOOKS: Final = "webhooks"
STREAM: Final = "text/event-stream"


class StreamFilter(Shape):
    """Filter and start of a stream."""

    after: str | None = optional(
        "Return events after this `sequence`; `0.0`: from the start, `now`: only new events.", "0.0"
    )
    nested_depth: int | None = optional("Include nested stacks up to this depth.", 0, ge=0)
    resource_status: list[str] | None = optional("Filter by status.", ["COMPLETE"])
    resource_action: list[str] | None = optional("Filter by action.", ["CREATE"])
    resource_name: list[str] | None = optional("Filter by resource.", ["one"])
    resource_type: list[str] | None = optional("Filter by resource type.", ["OS::Heat::RandomString"])
    merged: bool | None = optional(
        "Send the number of new events up to twice a second, without their contents.", False
    )


class StreamQuery(StreamFilter):
    """Filter of a stack's stream."""

    until_end: bool | None = optional(
        "End the stream with the current action; only for a single stack.", True
    )


class ProjectQuery(StreamFilter):
    """A page of a project's events."""

    limit: int | None = optional("Maximum number of results.", 100, ge=0)


class StackEvent(Event):
    """An event with its stack."""

    resource_type: str = described("Resource type.", "OS::Heat::RandomString")
    stack_id: Id
    stack_name: str = described("The stack's name.", "web")


class ProjectEvents(Shape):
    """A page of a project's events in commit order."""

    events: list[StackEvent] = described("Events; a page may be empty without being the last.")
    sequence: str = described("Value of `after` for the next page.", "812.41")
    more: bool = described("Whether further events exist now.", False)


class WebhookCreate(Shape):
    """A new webhook."""

    url: str = described("URL, http or https, with a public address.", "https://example.org/hook")
    secret: str | None = optional(
        "Signing secret: `whsec_` and 24 to 64 bytes in base64. Default: generated."
    )
    stack: str | None = optional("Only events of this stack, by name or id.", "web")
    nested_depth: int | None = optional("Include nested stacks up to this depth.", 0, ge=0)
    events: Literal["all", "stack"] | None = optional(
        "All events, or only events of stacks themselves.", "stack"
    )
    after: str | None = optional("Start after this `sequence`; default: new events only.", "now")


class Webhook(Shape):
    """A webhook."""

    id: Id
    url: str = described("URL with masked query.", "https://example.org/hook?******")
    secret: str = described("Secret; unmasked only in the response to its creation.", "******")
    stack_id: str | None = described("Only events of this stack.", UUID)
    stack_name: str | None = described("Name.", "web")
    nested_depth: int = described("Depth of included nested stacks.", 0)
    events: Literal["all", "stack"] = described("All events, or only events of stacks themselves.", "all")
    state: Literal["active", "dead"] = described("`dead` after too many failed deliveries.", "active")
    sequence: str = described("Position of the last delivered event.", "812.41")
    tries: int = described("Consecutive failed deliveries.", 0)
    failing_since: Time | None = described("Start of the failures.", "2026-01-01T12:00:00Z")
    last_error: str | None = described("Last error.", "it answered 500")
    next_attempt_at: Time | None = described("Time of the next attempt.", "2026-01-01T12:00:00Z")
    delivered: int = described("Number of delivered events.", 12)
    delivered_at: Time | None = described("Time of the last successful delivery.", "2026-01-01T12:00:00Z")
    event_sink: bool = described("Whether it is an event sink of an environment.", False)
    created_by: str | None = described("Creating user.", "alice")
    creation_time: Time


class WebhookList(Shape):
    """Webhooks."""

    webhooks: list[Webhook] = described("Oldest first.")


class WebhookShow(Shape):
    """A webhook."""

    webhook: Webhook = described("The webhook.")


class WebhookQuery(Page):
    """Filter of webhooks."""

    state: Literal["active", "dead"] | None = optional("Filter by state.", "dead")


class Rearm(Shape):
    """Start position."""

    after: str | None = optional("Start after this `sequence`; default: resume at its position.", "now")


class Delivery(Shape):
    """Result of a delivery."""

    delivered: bool = described("Whether the receiver accepted it.", True)
    status: int | None = described("Status code of the receiver.", 204)
    error: str | None = described("Error.", "it answered 500")


class DeliveryShow(Shape):
    """Result of a delivery."""

    test: Delivery = described("The delivery.")


def _stream(text: str) -> dict[int, Response]:
    return {200: Response(text, Sent, STREAM)}


ABOUT_STREAMS: Final = (
    "Each message is an event; its id is the event's `sequence`. After a disconnect, resume with "
    "`Last-Event-ID`. `caught-up` and `end` are separate message types. The response is 503 with "
    "`Retry-After` if the server has too many streams."
)
OPERATIONS: Final[Operations] = {
    "events.of_project": Operation(
        EVENTS,
        {200: Response("A page of events.", ProjectEvents, also={STREAM: Sent})},
        ProjectQuery,
        text="Extension. With `Accept: text/event-stream` as a stream.",
    ),
    "events.stream": Operation(EVENTS, _stream("The events."), StreamQuery, text=ABOUT_STREAMS),
    "events.stream_of_project": Operation(EVENTS, _stream("The events."), StreamFilter, text=ABOUT_STREAMS),
    "webhooks.index": Operation(WEBHOOKS, ok("The webhooks.", WebhookList), WebhookQuery),
    "webhooks.create": Operation(
        WEBHOOKS,
        {201: Response("Created resources.", WebhookShow, headers={"Location": "The webhook's URL."})},
        body=WebhookCreate,
    ),
    "webhooks.show": Operation(WEBHOOKS, ok("The webhook.", WebhookShow)),
    "webhooks.delete": Operation(WEBHOOKS, {204: Response("Deleted.")}),
    "webhooks.test": Operation(WEBHOOKS, ok("Result of the delivery.", DeliveryShow)),
    "webhooks.rearm": Operation(WEBHOOKS, ok("Reactivated.", WebhookShow), body=Rearm, body_required=False),
}
