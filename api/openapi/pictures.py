"""Pictures of a stack of any size."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import StringConstraints

from api.openapi.operation import Operation, Operations, Response, ok
from api.openapi.shapes import State
from orchestrator.bodies.model import UUID, Id, Shape, described, optional

TAG: Final = "pictures"
Instant = Annotated[
    str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
]  # a time with milliseconds
BINARY: Final = "application/octet-stream"
FORMAT: Final = (
    "`FLD1`; the length of the header as a little-endian integer of 32 bits; the header as JSON, as in "
    "`field/summary`; a byte per resource. The lower four bits of a byte are the state, an index into the "
    "names of `counts`; the highest bit is set if the resource is not in sync with its object."
)


class StateCounts(Shape):
    """Resources by state."""

    planned: int = described("Not begun.", 0)
    in_progress: int = described("An operation is open.", 1)
    complete: int = described("Complete.", 1)
    failed: int = described("Failed.", 0)
    deleting: int = described("To be deleted.", 0)
    deleted: int = described("Deleted.", 0)
    suspended: int = described("Suspended.", 0)
    drift: int = described("Not in sync, in any state.", 0)


class FieldSummary(Shape):
    """The numbers of a field."""

    stack_status: State = described("Present status of the stack.", "CREATE_COMPLETE")
    order: str = described("Version of the order; it changes with the resources.", "2c5d0fd8a1b2c3d4")
    cursor: str = described("Position for `field/changes`.", "1f2e3d4c.17")
    count: int = described("Number of resources, nested stacks included.", 2)
    counts: StateCounts = described("Resources by state.")
    levels_count: int = described("Number of levels of the graph.", 2)
    draft: bool | None = optional("True for a first picture, without levels and names.", None)
    at: Instant | None = optional("Time of the states, if requested.", "2026-01-01T12:00:00.000Z")
    history_from: Instant | None = optional(
        "Time of the oldest event; in summaries, and with `at`.", "2026-01-01T11:00:00.000Z"
    )
    omitted: int | None = optional("Resources at that time that were deleted since, with `at`.", 0)
    levels: list[int] = described("Resources per level; empty if there are more than 200 levels.", [1, 1])


class FieldShow(Shape):
    """The numbers of a field."""

    field: FieldSummary = described("The field.")


class FieldName(Shape):
    """A resource of a field."""

    resource_name: str = described("Name in the template.", "one")
    resource_type: str = described("Type.", "OS::Heat::RandomString")
    resource_status: State
    stack_name: str = described("Stack of the resource.", "web")
    stack_id: Id


class FieldNames(Shape):
    """A range of a field."""

    order: str = described("Version of the order.", "2c5d0fd8a1b2c3d4")
    start: int = described("Position of the first resource.", 0)
    resources: list[FieldName | None] = described("In the order of the field; null if deleted meanwhile.")


class FieldRange(Shape):
    """A range of a field."""

    start: int | None = optional("Position of the first resource.", 0, ge=0)
    count: int | None = optional("Number of resources, at most 1,000; default 100.", 100, ge=0, le=1000)
    order: str | None = optional("Ignored; a new version has a new address.", "2c5d0fd8a1b2c3d4")


class PastQuery(Shape):
    """Selection of a time."""

    at: str | None = optional(
        "Time of the states (ISO 8601, UTC), at least that of the oldest event; default: now.",
        "2026-01-01T12:00:00Z",
    )


class PictureQuery(PastQuery):
    """Selection of a time, or of a first picture."""

    draft: bool | None = optional(
        "Return a first picture, without levels, if the stack is large and not read yet; a request without "
        "`draft` waits for the complete one.",
        True,
    )


class FieldCursor(Shape):
    """The state of a viewer."""

    order: str | None = optional("Version of the order, from the last response.", "2c5d0fd8a1b2c3d4")
    cursor: str | None = optional("Cursor, from the last response.", "1f2e3d4c.17")


class MapGroup(Shape):
    """Resources of a type and level, or nested stacks."""

    label: str = described("Type, name of the nested stack, or number of nested stacks.", "OS::Nova::Server")
    type: str | None = described("Type, null for nested stacks.", "OS::Nova::Server")
    stacks: int = described("Number of nested stacks that the group stands for.", 0)
    stack_name: str | None = described("Stack, null for several.", "web")
    stack_id: str | None = described("Id of the stack, null for several.", UUID)
    levels: list[int] = described("First and last level.", [0, 0])
    count: int = described("Number of resources.", 3)
    counts: dict[str, int] = described("Resources by state, as in a field.", {"complete": 3})
    expand: str | None = described("Value of `expand` that opens the group.", None)


class MapEdge(Shape):
    """Dependencies between two groups, by their positions."""

    dependent: int = described("Position of the dependents.", 1)
    required: int = described("Position of the requirements.", 0)
    count: int = described("Number of dependencies.", 3)


class MapOmitted(Shape):
    """What a map leaves out."""

    groups: int = described("Groups.", 0)
    resources: int = described("Resources of these groups.", 0)
    edges: int = described("Pairs of groups with dependencies.", 0)


class MapBody(Shape):
    """A map."""

    stack_status: State = described("Present status of the stack.", "CREATE_COMPLETE")
    draft: bool = described("Whether this is a first picture: all groups have level 0, without edges.", False)
    newer_in_seconds: float | None = described(
        "Time until resources that appeared or disappeared are shown; null if all are.", None
    )
    count: int = described("Number of resources, nested stacks included.", 3)
    groups: list[MapGroup] = described("At most 300, by level.")
    edges: list[MapEdge] = described("At most 1,200.")
    omitted: MapOmitted = described("What is left out.")


class MapShow(Shape):
    """A map."""

    map: MapBody = described("The map.")


class MapQuery(PictureQuery):
    """Groups to open."""

    expand: list[str] | None = optional("Values of `expand` of groups, at most 20.", [f"stack:{UUID}"])


class TimelineBar(Shape):
    """An operation, with its phases: queued, at the provider, waiting for ready."""

    resource_name: str = described("Name in the template.", "one")
    resource_type: str = described("Type.", "OS::Heat::RandomString")
    queued_at: Instant = described("End of the last requirement.", "2026-01-01T12:00:00.000Z")
    started_at: Instant = described("Request to the provider.", "2026-01-01T12:00:00.100Z")
    waiting_at: Instant | None = described("Answer of the provider, if known.", "2026-01-01T12:00:01.000Z")
    ended_at: Instant | None = described("End, null while in progress.", "2026-01-01T12:00:02.000Z")
    failed: bool = described("Whether it failed.", False)
    critical: bool = described("Whether it is on the critical path.", True)


class TimelineLane(Shape):
    """The operations of a type."""

    resource_type: str = described("Type.", "OS::Heat::RandomString")
    count: int = described("Operations.", 400)
    failed: int = described("Failed operations.", 0)
    in_progress: int = described("Operations in progress.", 0)
    density: list[int] = described("Operations in progress during each hundredth of the time.", [4, 2])


class CriticalStep(Shape):
    """A resource of the critical path."""

    resource_name: str = described("Name in the template.", "one")
    resource_type: str = described("Type.", "OS::Heat::RandomString")
    begun_at: Instant = described("End of its last requirement.", "2026-01-01T12:00:00.000Z")
    ended_at: Instant | None = described("End, null while in progress.", "2026-01-01T12:00:02.000Z")


class Idle(Shape):
    """A time without operations."""

    begun_at: Instant = described("Start.", "2026-01-01T12:00:02.000Z")
    ended_at: Instant = described("End.", "2026-01-01T12:10:00.000Z")


class ThroughputBody(Shape):
    """The operations in each hundredth of the time."""

    in_progress: list[int] = described("Operations in progress.", [4, 2])
    ended: list[int] = described("Operations that ended.", [0, 2])


class TimelineBody(Shape):
    """The operations of an action."""

    stack_status: State = described("Present status of the stack.", "CREATE_COMPLETE")
    draft: bool = described("Whether this is a first picture: operations counted by events, no path.", False)
    newer_in_seconds: float | None = described(
        "Time until the next read of a long action that has changed; null if nothing has.", None
    )
    action: str = described("Action.", "CREATE")
    revision: int = described("Revision in force.", 1)
    begun_at: Instant = described("Start.", "2026-01-01T12:00:00.000Z")
    ended_at: Instant = described(
        "End of the last operation; now, if in progress.", "2026-01-01T12:00:02.000Z"
    )
    in_progress: bool = described("Whether the action is in progress.", False)
    count: int = described("Number of operations.", 1)
    throughput: ThroughputBody = described("Operations in progress and ended over time.")
    bars: list[TimelineBar] = described("In the order of their start; empty if there are more than `limit`.")
    lanes: list[TimelineLane] = described("Operations by type, if there are more than `limit`.")
    critical_path: list[CriticalStep] = described("The first requirement first; at most 300 with lanes.")
    idle: list[Idle] = described("Long times without operations.")


class TimelineShow(Shape):
    """A timeline."""

    timeline: TimelineBody = described("The timeline.")


class TimelineQuery(Shape):
    """Selection of the action."""

    revision: int | None = optional("Revision, whose action is shown; default: the last action.", 1, ge=0)
    limit: int | None = optional("Maximum number of bars; default 300.", 300, ge=0, le=100_000)
    draft: bool | None = optional("Return a first picture if reading the whole action takes long.", True)


OPERATIONS: Final[Operations] = {
    "pictures.field": Operation(
        TAG,
        {
            200: Response("The field.", bytes, BINARY, {"ETag": "Hash of the field."}),
            304: Response("The field is that of `If-None-Match`."),
        },
        query=PictureQuery,
        text=FORMAT,
    ),
    "pictures.field_changes": Operation(
        TAG,
        ok("The changes.", bytes, BINARY),
        query=FieldCursor,
        text=(
            "With changes, the header has `changed`, their number; the positions follow as little-endian "
            "integers of 32 bits, and then a byte for each. Otherwise the response is that of `field`: "
            "the cursor is unknown here, or too many changes followed it."
        ),
    ),
    "pictures.field_summary": Operation(TAG, ok("The numbers.", FieldShow), query=PictureQuery),
    "timelines.show": Operation(TAG, ok("The timeline.", TimelineShow), query=TimelineQuery),
    "stack_maps.show": Operation(TAG, ok("The map.", MapShow), query=MapQuery),
    "pictures.field_names": Operation(TAG, ok("The names.", FieldNames), query=FieldRange),
}
