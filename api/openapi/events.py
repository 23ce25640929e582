"""Events as they happen, and webhooks."""

from __future__ import annotations

from typing import Final, Literal

from api.openapi.operation import Answer, Operation, Operations, Shape, maybe, ok, told
from api.openapi.resources import Event
from api.openapi.shapes import UUID, Id, Page, Sent, Time

EVENTS: Final = "events"
WEBHOOKS: Final = "webhooks"
STREAM: Final = "text/event-stream"


class LiveQuery(Shape):
    """Which events are followed, and from where on."""

    after: str | None = maybe(
        "What comes after this `sequence`; `0.0` from the start, `now` from now on.", "0.0"
    )
    nested_depth: int | None = maybe("How many levels of nested stacks too.", 0, ge=0)
    resource_status: list[str] | None = maybe("The status alone.", ["COMPLETE"])
    resource_action: list[str] | None = maybe("One of these actions.", ["CREATE"])
    resource_name: list[str] | None = maybe("Of one of these resources.", ["one"])
    resource_type: list[str] | None = maybe("Of one of these types.", ["OS::Heat::RandomString"])


class StreamQuery(LiveQuery):
    """What a stream tells."""

    until_end: bool | None = maybe("End with the action that is under way. Of one stack only.", True)


class ProjectQuery(LiveQuery):
    """A page of a project's events."""

    limit: int | None = maybe("At most so many.", 100, ge=0)


class ToldEvent(Event):
    """An event, and of which stack."""

    resource_type: str = told("The type.", "OS::Heat::RandomString")
    stack_id: Id
    stack_name: str = told("The stack's name.", "web")


class ProjectEvents(Shape):
    """A page of a project's events, in the order of writing."""

    events: list[ToldEvent] = told("The events; there may be none, and more behind.")
    sequence: str = told("Where the next page begins: `after`.", "812.41")
    more: bool = told("Whether there is one just now.", False)


class WebhookCreate(Shape):
    """Who is to be told of what."""

    url: str = told("Where to: http or https; a public address.", "https://example.org/hook")
    secret: str | None = maybe(
        "Signs what is sent: `whsec_` and 24 to 64 bytes in base64. Without it we make one."
    )
    stack: str | None = maybe("Of this stack only: its name or id.", "web")
    nested_depth: int | None = maybe("How many levels of nested stacks too.", 0, ge=0)
    events: Literal["all", "stack"] | None = maybe("All, or only what stacks tell of themselves.", "stack")
    after: str | None = maybe("From this `sequence` on; from now on unless said.", "now")


class Webhook(Shape):
    """A webhook."""

    id: Id
    url: str = told("The address; what it asks for is masked.", "https://example.org/hook?******")
    secret: str = told("Masked, but in the answer that made it.", "******")
    stack_id: str | None = told("Of this stack only.", UUID)
    stack_name: str | None = told("Its name.", "web")
    nested_depth: int = told("So many levels of nested stacks too.", 0)
    events: Literal["all", "stack"] = told("All, or only what stacks tell of themselves.", "all")
    state: Literal["active", "dead"] = told("`dead` after too many deliveries in vain.", "active")
    sequence: str = told("Everything up to here was taken.", "812.41")
    tries: int = told("Deliveries in vain, one after the other.", 0)
    failing_since: Time | None = told("Since when deliveries are in vain.", "2026-01-01T12:00:00Z")
    last_error: str | None = told("What went wrong the last time.", "it answered 500")
    next_attempt_at: Time | None = told("When the next one is.", "2026-01-01T12:00:00Z")
    delivered: int = told("Events that were taken.", 12)
    delivered_at: Time | None = told("When something was taken last.", "2026-01-01T12:00:00Z")
    event_sink: bool = told("Whether an environment names it as an event sink.", False)
    created_by: str | None = told("By whom it was made.", "somebody")
    creation_time: Time


class WebhookList(Shape):
    """Webhooks."""

    webhooks: list[Webhook] = told("The oldest first.")


class WebhookShow(Shape):
    """One webhook."""

    webhook: Webhook = told("The webhook.")


class WebhookQuery(Page):
    """Which webhooks are listed."""

    state: Literal["active", "dead"] | None = maybe("In this state only.", "dead")


class Rearm(Shape):
    """From where on."""

    after: str | None = maybe("From this `sequence`; from where it stands unless said.", "now")


class Test(Shape):
    """How a delivery went."""

    delivered: bool = told("Whether it was taken.", True)
    status: int | None = told("What was answered.", 204)
    error: str | None = told("Why it was not taken.", "it answered 500")


class TestShow(Shape):
    """How a delivery went."""

    test: Test = told("The delivery.")


def _stream(text: str) -> dict[int, Answer]:
    return {200: Answer(text, Sent, STREAM)}


ABOUT_STREAMS: Final = (
    "Each message is an event, its id the event's `sequence`: come again with `Last-Event-ID` after a cut. "
    "`caught-up` and `end` are messages of their own. 503 with `Retry-After` when there is no room."
)
OPERATIONS: Final[Operations] = {
    "events.of_project": Operation(
        EVENTS,
        {200: Answer("A page of events.", ProjectEvents, also={STREAM: Sent})},
        ProjectQuery,
        text="Ours. With `Accept: text/event-stream` as they happen.",
    ),
    "events.stream": Operation(EVENTS, _stream("The events."), StreamQuery, text=ABOUT_STREAMS),
    "events.stream_of_project": Operation(EVENTS, _stream("The events."), LiveQuery, text=ABOUT_STREAMS),
    "webhooks.index": Operation(WEBHOOKS, ok("The webhooks.", WebhookList), WebhookQuery),
    "webhooks.create": Operation(
        WEBHOOKS,
        {201: Answer("Made.", WebhookShow, headers={"Location": "The webhook's place."})},
        body=WebhookCreate,
    ),
    "webhooks.show": Operation(WEBHOOKS, ok("The webhook.", WebhookShow)),
    "webhooks.delete": Operation(WEBHOOKS, {204: Answer("Gone.")}),
    "webhooks.test": Operation(WEBHOOKS, ok("How it went.", TestShow)),
    "webhooks.rearm": Operation(
        WEBHOOKS, ok("It tries again.", WebhookShow), body=Rearm, body_required=False
    ),
}
