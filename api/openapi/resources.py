"""A stack's resources, what is told to them, what waits at hooks, and the events."""

from __future__ import annotations

from types import NoneType
from typing import Any, Final, Literal

from api.openapi.operation import Answer, Operation, Operations, Shape, maybe, ok, told
from api.openapi.shapes import UUID, Id, JsonMap, Link, Page, Reason, Sent, State, Time
from api.openapi.stacks import BUSY

TAG: Final = "resources"
EVENTS: Final = "events"


class Resource(Shape):
    """A resource."""

    resource_name: str = told("Its name in the template.", "one")
    logical_resource_id: str = told("The same.", "one")
    physical_resource_id: str = told("The id of the thing made; empty when there is none.", "web-one-x3f9")
    resource_type: str = told("Its type, as the template has it.", "OS::Heat::RandomString")
    resource_status: State
    resource_status_reason: Reason
    creation_time: Time
    updated_time: Time
    required_by: list[str] | None = maybe("Its direct dependents; not on a page.", ["two"])
    links: list[Link] = told("`self`, `stack`, and `nested` when it owns a stack.")
    parent_resource: str | None = maybe("The resource that owns the stack it is in.")
    description: str | None = maybe("The template's; in lists `with_detail`.", "")
    attributes: JsonMap | None = maybe(
        "As last observed, secrets masked; in lists `with_detail`.", {"value": "******"}
    )


class ResourceList(Shape):
    """A stack's resources, one a name."""

    resources: list[Resource] = told("The resources.")


class ResourceShow(Shape):
    """A resource."""

    resource: Resource = told("The resource.")


class Metadata(Shape):
    """A resource's metadata."""

    metadata: Any = told("As it is now.", {})


class ResourceQuery(Shape):
    """Which resources are listed; any other key is refused."""

    nested_depth: int | None = maybe("How many levels of nested stacks too.", 0, ge=0)
    with_detail: bool | None = maybe("With description and attributes.", False)
    limit: int | None = maybe("A page of so many, of one stack, without who requires each.", 100, ge=0)
    marker: str | None = maybe("The page after the resource of this name.", "one")
    type: list[str] | None = maybe("One of these types.", ["OS::Heat::RandomString"])
    status: list[str] | None = maybe("In one of these statuses.", ["COMPLETE"])
    name: list[str] | None = maybe("One of these names.", ["one"])
    action: list[str] | None = maybe("In one of these actions.", ["CREATE"])
    id: list[str] | None = maybe("One of these ids.", [UUID])
    physical_resource_id: list[str] | None = maybe("Made as one of these.", ["web-one-x3f9"])


class ShowResourceQuery(Shape):
    """What is shown beside the default attributes."""

    with_attr: list[str] | None = maybe("Attributes by name.", ["value"])
    with_diagnostics: bool | None = maybe("`diagnostics`: why it failed. Ours.", False)


class Mark(Shape):
    """Whether a resource is to be replaced by the next update."""

    mark_unhealthy: bool | Literal["true", "false"] = told("true: CHECK_FAILED; false: CHECK_COMPLETE.", True)
    resource_status_reason: str | None = maybe("Why.", "disk is gone")


class Hook(Shape):
    """A resource that waits at a hook."""

    resource_name: str = told("Its name.", "one")
    hook: str = told("Which hook: cleared by a signal with `unset_hook`.", "pre-create")
    resource_status: State
    waiting_since: Time | None = told("Since when.", "2026-01-01T12:00:00Z")


class HookQuery(Shape):
    """How to page."""

    limit: int | None = maybe("At most so many.", 100, ge=0)
    marker: str | None = maybe("Where to go on: from the link to the next page.", "")


class HookList(Shape):
    """The resources that wait at a hook."""

    hooks: list[Hook] = told("Who has waited longest first.")
    links: list[Link] | None = maybe("`next`, when the page is full.")


class Event(Shape):
    """Something that happened."""

    id: Id
    event_time: Time
    resource_name: str = told("Of which resource, or the stack's own name.", "one")
    logical_resource_id: str = told("The same.", "one")
    physical_resource_id: str | None = told("The thing, or the stack's id.", "web-one-x3f9")
    resource_status: str = told("Action and status.", "CREATE_COMPLETE")
    resource_status_reason: str | None = told("Why, never cut.", "state changed")
    sequence: str = told("Where it stands in the order of writing: `after` goes on from here. Ours.", "734.1")
    links: list[Link] = told("`self`, `resource`, `stack`, and `root_stack` with `nested_depth`.")


class EventDetail(Event):
    """One event in full."""

    resource_type: str = told("The resource's type.", "OS::Heat::RandomString")
    resource_properties: JsonMap = told("What it was made with, secrets masked.", {"length": 12})


class EventList(Shape):
    """A page of events."""

    events: list[Event] = told("The newest first unless asked otherwise.")


class EventShow(Shape):
    """One event."""

    event: EventDetail = told("The event.")


class EventQuery(Page):
    """Which events are listed."""

    sort_keys: list[str] | None = maybe("event_time or resource_type.", ["event_time"])
    sort_dir: Literal["asc", "desc"] | None = maybe("desc unless said.", "asc")
    nested_depth: int | None = maybe("How many levels of nested stacks too.", 0, ge=0)
    after: str | None = maybe(
        "Only what was written after this `sequence`; `0.0`: from the start, `now`: what comes. Ours.",
        "0.0",
    )
    resource_status: list[str] | None = maybe("The status alone.", ["COMPLETE"])
    resource_action: list[str] | None = maybe("One of these actions.", ["CREATE"])
    resource_name: list[str] | None = maybe("Of one of these resources.", ["one"])
    resource_type: list[str] | None = maybe("Of one of these types.", ["OS::Heat::RandomString"])


Signal = JsonMap | None
NOTHING: Final = ok("Done; the answer is `null`.", NoneType)

OPERATIONS: Final[Operations] = {
    "resources.index": Operation(TAG, ok("The resources.", ResourceList), ResourceQuery),
    "resources.show": Operation(TAG, ok("The resource.", ResourceShow), ShowResourceQuery),
    "resources.metadata": Operation(TAG, ok("The metadata.", Metadata)),
    "signals.send": Operation(
        TAG,
        NOTHING,
        body=Signal,
        body_required=False,
        refuses=BUSY,
        text="Any object, or none; `unset_hook` names a hook to clear.",
    ),
    "signals.mark_unhealthy": Operation(TAG, NOTHING, body=Mark, refuses=BUSY),
    "signals.hooks": Operation(TAG, ok("Who waits.", HookList), HookQuery),
    "events.index": Operation(
        EVENTS,
        {200: Answer("The events.", EventList, also={"text/event-stream": Sent})},
        EventQuery,
        text="With `Accept: text/event-stream` as they happen, as under `events/stream`. Ours.",
    ),
    "events.of_resource": Operation(EVENTS, ok("The events.", EventList), EventQuery),
    "events.show": Operation(EVENTS, ok("The event.", EventShow)),
}
