"""What happened to a stack (spec/rest-api.md §8): its events, those of one resource, one event in full."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response

from api import queries
from api.faults import HttpNotFound
from api.formats import Links, below, json_list, json_response, link, time
from api.identity import canonical
from api.parts import parts
from orchestrator.errors import InvalidRequest
from orchestrator.store.events import (
    FILTERS,
    EventQuery,
    EventRow,
    event_uuid,
    get_event,
    list_events,
    read_sequence,
)
from orchestrator.store.stacks import StackRow, descendants

events = Blueprint("events", __name__)

AT_ONCE: Final = 1_000  # events of one answer to `after`


@events.get("/<project_id>/stacks/<stack_name>/<stack_id>/events")
def index(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the stack's events, the newest first unless asked otherwise."""
    return _listing(canonical(stack_name, stack_id), None)


@events.get("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>/events")
def of_resource(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001
    """List one resource's events; none at all is a 404, as clients know it."""
    return _listing(canonical(stack_name, stack_id), resource_name)


@events.get("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>/events/<event_id>")
def show(project_id: str, stack_name: str, stack_id: str, resource_name: str, event_id: str) -> Response:  # noqa: ARG001
    """Show one event with the type and the properties."""
    stack = canonical(stack_name, stack_id)
    row = get_event(parts().database, stack, resource_name, event_id)
    if row is None:
        raise HttpNotFound(f"No event {event_id} found")
    body = _body(row, stack, Links())
    body.update(resource_type=row.resource_type, resource_properties=dict(row.properties or {}))
    return json_response({"event": body})


def _listing(stack: StackRow, resource_name: str | None) -> Response:
    filters = queries.filters(FILTERS)
    after, limit = _after(), queries.integer("limit")
    if after is not None:
        limit = min(limit or AT_ONCE, AT_ONCE)
    if resource_name is not None:
        filters["resource_name"] = [resource_name]
    query = EventQuery(
        filters=filters,
        sort_keys=queries.texts("sort_keys") if after is None else (),
        sort_dir=(queries.direction() or "desc") if after is None else "asc",
        marker=queries.text("marker") if after is None else None,
        limit=limit,
        after=after,
    )
    levels, links = queries.levels(), Links()
    below_it = list(descendants(parts().database, stack, levels, deleted=True))
    owners = {one.id: one for one in (stack, *below_it)}
    root = links.of(stack) if levels else None
    rows = list_events(parts().database, stack, query, below_it)
    if resource_name is not None and after is None:
        first = next(rows, None)
        if first is None:
            raise HttpNotFound(f"No events found for resource {resource_name}")
        rows = _again(first, rows)
    return json_list("events", (_body(row, owners[row.stack_id], links, root) for row in rows))


def _after() -> tuple[int, int] | None:
    """Return the sequence from which to go on, None when it is not asked for.

    Raises:
        InvalidRequest: it is none, or the order asked for is another.
    """
    given = queries.text("after")
    if given is None:
        return None
    found = read_sequence(given)
    if found is None:
        raise InvalidRequest(
            f"Invalid sequence '{given}' for 'after': take it from an event, or start with 0.0."
        )
    if queries.direction() == "desc" or queries.text("marker") is not None or queries.texts("sort_keys"):
        raise InvalidRequest(
            "'after' lists in the order of writing: leave out sort_dir, sort_keys and marker."
        )
    return found


def _again(first: EventRow, rows: Any) -> Any:
    yield first
    yield from rows


def _body(row: EventRow, stack: StackRow, links: Links, root: str | None = None) -> dict[str, Any]:
    place, public = links.of(stack), str(event_uuid(stack.uuid, row.id))
    resource = below(place, "resources", row.resource_name)
    linked = [
        link("self", below(resource, "events", public)),
        link("resource", resource),
        link("stack", place),
    ]
    if root is not None:  # clients take this link for "nested depth is understood here"
        linked.append(link("root_stack", root))
    return {
        "id": public,
        "event_time": time(row.created_at),
        "resource_name": row.resource_name,
        "logical_resource_id": row.resource_name,
        "physical_resource_id": row.physical_id,
        "resource_status": f"{row.action}_{row.status}",
        "resource_status_reason": row.reason,
        "sequence": row.sequence,
        "links": linked,
    }
