"""Resources of a stack, signals, hooks and events."""

from __future__ import annotations

from types import NoneType
from typing import Any, Final, Literal

from pydantic import Field

from api.openapi.operation import Operation, Operations, Response, ok
from api.openapi.shapes import Link, Page, Reason, Sent, State
from api.openapi.stacks import BUSY
from orchestrator.bodies.model import UUID, Id, Shape, Time, described, optional
from orchestrator.bodies.observations import Observed
from orchestrator.json_types import JsonObject

TAG: Final = "resources"
EVENTS: Final = "events"


class Resource(Shape):
    """A resource."""

    resource_name: str = described("Name in the template.", "one")
    logical_resource_id: str = described("Same value.", "one")
    physical_resource_id: str = described("Physical resource id; empty if none.", "web-one-x3f9")
    resource_type: str = described("Resource type in the template.", "OS::Heat::RandomString")
    resource_status: State
    resource_status_reason: Reason
    creation_time: Time
    updated_time: Time
    required_by: list[str] | None = optional("Direct dependents; omitted in pages.", ["two"])
    observed: Literal["ready", "not-ready", "absent", "error", "failed"] | None = optional(
        "Result of the last successful observation; in lists only `with_detail` or if it is not `ready`. "
        "Extension.",
        "ready",
    )
    observed_at: Time | None = optional("Time of that observation. Extension.")
    observed_reason: str | None = optional("Reason given by that observation. Extension.")
    unreachable_since: Time | None = optional(
        "Time of the first failed observation after it; null if the provider was reached. Extension."
    )
    unreachable_reason: str | None = optional("Reason of the last failed observation. Extension.")
    observation: Observed | None = optional(
        "Verdict of the continuous observation; not for types without a provider. In lists `with_detail`, "
        "or if the resource is not in sync. Extension."
    )
    links: list[Link] = described("`self`, `stack`, and `nested` for a nested stack.")
    parent_resource: str | None = optional("Resource of the parent stack.")
    description: str | None = optional("Description in the template; in lists only `with_detail`.", "")
    attributes: JsonObject | None = optional(
        "Last observed attributes, secrets masked; in lists only `with_detail`, without live attributes.",
        {"value": "******"},
    )
    attributes_error: str | None = optional(
        "Reason why the live attributes could not be read; they are null then. Extension.",
        "The attributes of one cannot be read: ProviderError: too many requests",
    )


class ResourceList(Shape):
    """Resources of a stack, by name."""

    resources: list[Resource] = described("The resources.")


class ResourceShow(Shape):
    """A resource."""

    resource: Resource = described("Resource.")


class Metadata(Shape):
    """A resource's metadata."""

    metadata: Any = described("Current metadata.", {})


class ResourceQuery(Shape):
    """Filter of resources; other keys are rejected."""

    nested_depth: int | None = optional("Include nested stacks up to this depth.", 0, ge=0)
    with_detail: bool | None = optional("Include description and attributes.", False)
    limit: int | None = optional("Page size, for a single stack; omits `required_by`.", 100, ge=0)
    marker: str | None = optional("Return resources after this name.", "one")
    search: str | None = optional("A part of the name, in any case; in pages only.", "web")
    type: list[str] | None = optional("Filter by type.", ["OS::Heat::RandomString"])
    status: list[str] | None = optional("Filter by status.", ["COMPLETE"])
    name: list[str] | None = optional("Filter by name.", ["one"])
    action: list[str] | None = optional("Filter by action.", ["CREATE"])
    id: list[str] | None = optional("Filter by id.", [UUID])
    physical_resource_id: list[str] | None = optional("Filter by physical resource id.", ["web-one-x3f9"])


class ShowResourceQuery(Shape):
    """Options of a resource."""

    with_attr: list[str] | None = optional("Additional attributes by name.", ["value"])
    with_diagnostics: bool | None = optional(
        "Include `diagnostics`: the causes of a failure. Extension.", False
    )


class Mark(Shape):
    """Health mark of a resource."""

    mark_unhealthy: bool | Literal["true", "false"] = described(
        "true: CHECK_FAILED; false: CHECK_COMPLETE.", True
    )
    resource_status_reason: str | None = optional("Reason.", "disk is gone")


class Hook(Shape):
    """A resource paused at a hook."""

    resource_name: str = described("Name.", "one")
    hook: str = described("Hook; cleared by a signal with `unset_hook`.", "pre-create")
    resource_status: State
    waiting_since: Time | None = described("Start time.", "2026-01-01T12:00:00Z")


class HookQuery(Shape):
    """Pagination."""

    limit: int | None = optional("Maximum number of results.", 100, ge=0)
    marker: str | None = optional("Marker from the link to the next page.", "")


class HookList(Shape):
    """Resources paused at a hook."""

    hooks: list[Hook] = described("Longest wait first.")
    links: list[Link] | None = optional("`next`, if the page is full.")


class Event(Shape):
    """An event."""

    id: Id
    event_time: Time
    resource_name: str = described("Resource name, or the stack's name.", "one")
    logical_resource_id: str = described("Same value.", "one")
    physical_resource_id: str | None = described("Physical resource id, or the stack's id.", "web-one-x3f9")
    resource_status: str = described("Action and status.", "CREATE_COMPLETE")
    resource_status_reason: str | None = described("Full reason.", "state changed")
    sequence: str = described("Position in commit order, for `after`. Extension.", "734.1")
    automatic: bool | None = optional("Of an automatic repair, which nobody has requested. Extension.", True)
    links: list[Link] = described("`self`, `resource`, `stack`, and `root_stack` with `nested_depth`.")


class EventDetail(Event):
    """An event with all fields."""

    resource_type: str = described("Resource type.", "OS::Heat::RandomString")
    resource_properties: JsonObject = described("Properties, secrets masked.", {"length": 12})


class EventList(Shape):
    """A page of events."""

    events: list[Event] = described("Newest first by default.")


class EventShow(Shape):
    """An event."""

    event: EventDetail = described("The event.")


class EventQuery(Page):
    """Filter of events."""

    sort_keys: list[str] | None = optional("event_time or resource_type.", ["event_time"])
    sort_dir: Literal["asc", "desc"] | None = optional("Default: desc.", "asc")
    nested_depth: int | None = optional("Include nested stacks up to this depth.", 0, ge=0)
    after: str | None = optional(
        "Return events after this `sequence`; `0.0`: from the start, `now`: only new events. Extension.",
        "0.0",
    )
    resource_status: list[str] | None = optional("Filter by status.", ["COMPLETE"])
    resource_action: list[str] | None = optional("Filter by action.", ["CREATE"])
    resource_name: list[str] | None = optional("Filter by resource.", ["one"])
    resource_type: list[str] | None = optional("Filter by resource type.", ["OS::Heat::RandomString"])


Signal = JsonObject | None
NULL_RESPONSE: Final = ok("Accepted; the response is `null`.", NoneType)


class NeighbourQuery(Shape):
    """Extent of the neighbourhood."""

    levels: int | None = optional("Levels in each direction, at most 10.", 2, ge=1)


class Neighbour(Shape):
    """A resource near the resource."""

    resource_name: str = described("Name in the template.", "one")
    resource_type: str = described("Resource type in the template.", "OS::Heat::RandomString")
    resource_status: State
    level: int = described("Distance: negative for requirements, positive for dependents.", -1)


class Edge(Shape):
    """A dependency."""

    source: str = Field(alias="from", description="The dependent.", examples=["two"])
    to: str = described("The requirement.", "one")
    awaited: bool = described("The requirement is not complete.", False)


class Neighbourhood(Shape):
    """The resources near a resource, nearest first."""

    resources: list[Neighbour]
    edges: list[Edge]
    left_out: int = described("Number of further resources, beyond 300.", 0)


class NeighbourhoodShow(Shape):
    """The neighbourhood."""

    dependencies: Neighbourhood


OPERATIONS: Final[Operations] = {
    "resources.index": Operation(TAG, ok("The resources.", ResourceList), ResourceQuery),
    "resources.show": Operation(TAG, ok("Resource.", ResourceShow), ShowResourceQuery),
    "graph.dependencies_of": Operation(TAG, ok("The neighbourhood.", NeighbourhoodShow), NeighbourQuery),
    "resources.metadata": Operation(
        TAG,
        ok("The metadata.", Metadata),
        text="Secrets are masked, except for the credentials of the resource.",
    ),
    "signals.send": Operation(
        TAG,
        NULL_RESPONSE,
        body=Signal,
        body_required=False,
        refuses=BUSY,
        text="Any object, or no body; `unset_hook` names a hook to clear.",
    ),
    "signals.mark_unhealthy": Operation(TAG, NULL_RESPONSE, body=Mark, refuses=BUSY),
    "signals.hooks": Operation(TAG, ok("The paused resources.", HookList), HookQuery),
    "events.index": Operation(
        EVENTS,
        {200: Response("The events.", EventList, also={"text/event-stream": Sent})},
        EventQuery,
        text="With `Accept: text/event-stream` as a stream, like `events/stream`. Extension.",
    ),
    "events.of_resource": Operation(EVENTS, ok("The events.", EventList), EventQuery),
    "events.show": Operation(EVENTS, ok("The event.", EventShow)),
}
