"""Event streams and webhooks."""

from __future__ import annotations

from typing import Final, Literal

from api.openapi.operation import Operation, Operations, Response, ok
from api.openapi.resources import Event
from api.openapi.shapes import Page, Sent
from orchestrator.bodies.model import Id, Shape, described, optional
from orchestrator.bodies.webhooks import Delivery, Rearm, Webhook, WebhookCreate

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


class WebhookList(Shape):
    """Webhooks."""

    webhooks: list[Webhook] = described("Oldest first.")


class WebhookShow(Shape):
    """A webhook."""

    webhook: Webhook = described("The webhook.")


class WebhookQuery(Page):
    """Filter of webhooks."""

    state: Literal["active", "dead"] | None = optional("Filter by state.", "dead")


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
