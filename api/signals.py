"""Signals to a resource and marks on its health (spec/rest-api.md §7.4, §7.5); who waits at a hook."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.body import received
from api.formats import json_response, time
from api.identity import addressed, canonical
from api.parts import operation_context, parts

signals = Blueprint("signals", __name__)


@signals.post("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>/signal")
def send(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Take on a signal; the resource takes it in after the answer."""
    stack, context = addressed(stack_name, stack_id), operation_context()
    with received(request, context.settings, small=True) as body:
        rings = parts().operations.signal(context, stack, resource_name, body)
    parts().publish(rings)
    return json_response(None)


@signals.patch("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>")
def mark_unhealthy(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001 - as above
    """Mark a resource to be replaced by the next update, or unmark it."""
    stack, context = canonical(stack_name, stack_id), operation_context()
    with received(request, context.settings, small=True) as body:
        parts().operations.mark_unhealthy(context, stack, resource_name, body)
    return json_response(None)


@signals.get("/<project_id>/stacks/<stack_name>/<stack_id>/hooks")
def hooks(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """List the resources that wait at a hook, the one that has waited longest first."""
    stack, context = canonical(stack_name, stack_id), operation_context()
    waiting = parts().operations.waiting(context, stack)
    return json_response(
        {
            "hooks": [
                {
                    "resource_name": one.name,
                    "hook": one.hook,
                    "resource_status": f"{one.action}_{one.status}",
                    "waiting_since": time(one.since),
                }
                for one in waiting
            ]
        }
    )
