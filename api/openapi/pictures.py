"""Pictures of a stack of any size."""

from __future__ import annotations

from typing import Final

from api.openapi.operation import Operation, Operations, Response, Shape, described, ok, optional
from api.openapi.shapes import Id, State

TAG: Final = "pictures"
BINARY: Final = "application/octet-stream"
FORMAT: Final = (
    "`FLD1`; the length of the header as a little-endian integer of 32 bits; the header as JSON, as in "
    "`field/summary`; a byte per resource. The lower four bits of a byte are the state, an index into the "
    "names of `counts`; the highest bit is set if the resource is not in step with its object."
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
    drift: int = described("Not in step, in any state.", 0)


class FieldSummary(Shape):
    """The numbers of a field."""

    order: str = described("Version of the order; it changes with the resources.", "2c5d0fd8a1b2c3d4")
    cursor: str = described("Position for `field/changes`.", "1f2e3d4c.17")
    count: int = described("Number of resources, nested stacks included.", 2)
    counts: StateCounts = described("Resources by state.")
    levels_count: int = described("Number of levels of the graph.", 2)
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


class FieldCursor(Shape):
    """The state of a viewer."""

    order: str | None = optional("Version of the order, from the last response.", "2c5d0fd8a1b2c3d4")
    cursor: str | None = optional("Cursor, from the last response.", "1f2e3d4c.17")


OPERATIONS: Final[Operations] = {
    "pictures.field": Operation(
        TAG,
        {
            200: Response("The field.", bytes, BINARY, {"ETag": "Hash of the field."}),
            304: Response("The field is that of `If-None-Match`."),
        },
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
    "pictures.field_summary": Operation(TAG, ok("The numbers.", FieldShow)),
    "pictures.field_names": Operation(TAG, ok("The names.", FieldNames), query=FieldRange),
}
