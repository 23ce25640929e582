"""Events (docs/internals/rest-api.md §8) of a stack or a resource, and a single event with its properties.
Events of all stacks of a project are an extension. Each list is also available as a stream
(`streaming/event_stream.py`).
"""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, request

from api.dependencies import caller, dependencies
from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.errors import HttpNotFound
from api.response.serialization import Links, event_in_list, event_with_stack, json_list, json_response
from api.streaming import event_stream
from api.streaming.shared_responses import shared
from orchestrator.errors import InvalidRequest
from orchestrator.store.events import stream as tail
from orchestrator.store.events.events import FILTERS, EventQuery, get_event, list_events, read_sequence
from orchestrator.store.events.stream import EventScope, Position
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow, descendants

events = Blueprint("events", __name__)

AT_ONCE: Final = 1_000  # maximum events per response to `after`


@events.get("/<project_id>/stacks/<stack_name>/<stack_id>/events")
@shared
def index(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the stack's events, newest first by default."""
    stack = get_stack(stack_name, stack_id)
    return (
        event_stream.stream(stack, stack.project_id, _from())
        if event_stream.asked_for()
        else _listing(stack, None)
    )


@events.get("/<project_id>/stacks/<stack_name>/<stack_id>/events/stream")
def stream(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Stream the stack's events."""
    stack = get_stack(stack_name, stack_id)
    return event_stream.stream(stack, stack.project_id, _from())


@events.get("/<project_id>/events")
def of_project(project_id: str) -> Response:  # noqa: ARG001 - as above
    """List the events of all stacks of the project in commit order, page by page.

    `sequence` is the start of the next page. A page may be empty without being the last, because events of
    other projects count towards it.
    """
    if event_stream.asked_for():
        return event_stream.stream(None, caller().project_id, _from())
    limit = max(1, min(query_params.integer("limit") or AT_ONCE, AT_ONCE))
    within = EventScope(caller().project_id, query_params.levels(), query_params.filters(FILTERS))
    database = dependencies().database
    walked = tail.of_project(database, within, _after() or tail.START, limit)
    owners, links = stacks.by_ids(database, {row.stack_id for row in walked.rows}), Links()
    result = [
        event_with_stack(row, owners[row.stack_id], links) for row in walked.rows if row.stack_id in owners
    ]
    return json_response({"events": result, "sequence": str(walked.position), "more": not walked.drained})


@events.get("/<project_id>/events/stream")
def stream_of_project(project_id: str) -> Response:  # noqa: ARG001 - as above
    """Stream the events of all stacks of the project."""
    return event_stream.stream(None, caller().project_id, _from())


@events.get("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>/events")
def of_resource(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001
    """List the events of a resource. An empty list is a 404, as in Heat."""
    return _listing(get_stack(stack_name, stack_id), resource_name)


@events.get("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>/events/<event_id>")
def show(project_id: str, stack_name: str, stack_id: str, resource_name: str, event_id: str) -> Response:  # noqa: ARG001
    """Return an event with the resource type and the properties."""
    stack = get_stack(stack_name, stack_id)
    row = get_event(dependencies().database, stack, resource_name, event_id)
    if row is None:
        raise HttpNotFound(f"No event {event_id} found")
    body = event_in_list(row, stack, Links())
    body.update(resource_type=row.resource_type, resource_properties=dict(row.properties or {}))
    return json_response({"event": body})


def _listing(stack: StackRow, resource_name: str | None) -> Response:
    filters = query_params.filters(FILTERS)
    after, limit = _after(), query_params.integer("limit")
    if after is not None:
        limit = min(limit or AT_ONCE, AT_ONCE)
    if resource_name is not None:
        filters["resource_name"] = [resource_name]
    query = EventQuery(
        filters=filters,
        sort_keys=query_params.texts("sort_keys") if after is None else (),
        sort_dir=(query_params.direction() or "desc") if after is None else "asc",
        marker=query_params.text("marker") if after is None else None,
        limit=limit,
        after=after,
    )
    levels, links = query_params.levels(), Links()
    below_it = list(descendants(dependencies().database, stack, levels, deleted=True))
    owners = {item.id: item for item in (stack, *below_it)}
    root = links.of(stack) if levels else None
    rows = list_events(dependencies().database, stack, query, below_it)
    if resource_name is not None and after is None:
        first = next(rows, None)
        if first is None:
            raise HttpNotFound(f"No events found for resource {resource_name}")
        rows = _again(first, rows)
    return json_list("events", (event_in_list(row, owners[row.stack_id], links, root) for row in rows))


def _from() -> Position | None:
    """Return the start of a stream: the last received event, or the sequence in the query.

    Raises:
        InvalidRequest: the value is not a sequence.
    """
    last = request.headers.get("Last-Event-ID")
    return _position(last, "Last-Event-ID") if last else _after()


def _after() -> Position | None:
    """Return the sequence after which the list starts; None if not given.

    Raises:
        InvalidRequest: the value is not a sequence, or another sort order was requested.
    """
    values = query_params.text("after")
    if values is None:
        return None
    position = tail.end_position(dependencies().database) if values == "now" else _position(values, "after")
    if (
        query_params.direction() == "desc"
        or query_params.text("marker") is not None
        or query_params.texts("sort_keys")
    ):
        raise InvalidRequest(
            "'after' lists in the order of writing: leave out sort_dir, sort_keys and marker."
        )
    return position


def _again(first: Any, rows: Any) -> Any:
    yield first
    yield from rows


def _position(text: str, name: str) -> Position:
    position = read_sequence(text)
    if position is None:
        raise InvalidRequest(
            f"Invalid sequence '{text}' for '{name}': take it from an event, or start with 0.0."
        )
    return Position(*position)
