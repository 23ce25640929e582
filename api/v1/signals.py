"""Signals to resources, health marks (docs/internals/rest-api.md §7.4, §7.5), and pending hooks."""

from __future__ import annotations

import datetime as dt
from typing import Final

from flask import Blueprint, Response, request

from api.dependencies import dependencies, operation_context
from api.request import query_params
from api.request.body import read_body
from api.request.stack_lookup import get_stack, locate_stack
from api.response.serialization import NextPage, json_response, link, time

signals = Blueprint("signals", __name__)

MIN_ROW_ID_DIGITS: Final = 19  # minimum number of digits of a row id


@signals.post("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>/signal")
def send(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Accept a signal; a worker processes it later."""
    stack, context = locate_stack(stack_name, stack_id), operation_context()
    with read_body(request, context.settings, small=True) as body:
        messages = dependencies().operations.signal(context, stack, resource_name, body)
    dependencies().publish(messages)
    return json_response(None)


@signals.patch("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>")
def mark_unhealthy(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001 - as above
    """Mark a resource for replacement by the next update, or unmark it."""
    stack, context = get_stack(stack_name, stack_id), operation_context()
    with read_body(request, context.settings, small=True) as body:
        dependencies().operations.mark_unhealthy(context, stack, resource_name, body)
    return json_response(None)


@signals.get("/<project_id>/stacks/<stack_name>/<stack_id>/hooks")
def hooks(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """List the resources paused at a hook, longest wait first."""
    after, limit = _after(query_params.text("marker")), query_params.integer("limit")
    stack = get_stack(stack_name, stack_id)
    waiting = dependencies().operations.pending_hooks(operation_context(), stack, after, limit)
    listed = [
        {
            "resource_name": item.name,
            "hook": item.hook,
            "resource_status": f"{item.action}_{item.status}",
            "waiting_since": time(item.since),
        }
        for item in waiting
    ]
    if limit is None or not 0 < limit == len(waiting):
        return json_response({"hooks": listed})
    last = waiting[-1]
    after_it = NextPage().after(f"{last.since.isoformat()}/{last.node_id}")
    return json_response({"hooks": listed, "links": [link("next", after_it)]})


def _after(marker: str | None) -> tuple[dt.datetime, int] | None:
    """Return the time and node of a marker; the start of the list if the marker is unknown."""
    moment, _, node = (marker or "").partition("/")
    try:
        return dt.datetime.fromisoformat(moment), int(node) if len(node) < MIN_ROW_ID_DIGITS else 0
    except ValueError:
        return None
