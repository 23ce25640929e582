"""Webhooks that receive a project's events; an extension of Heat's API."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.dependencies import operation_context
from api.request import query_params
from api.request.body import read_body
from api.response.serialization import Links, below, json_response
from orchestrator.operations.events import webhooks as operations

webhooks = Blueprint("webhooks", __name__)

COLLECTION = "/<project_id>/webhooks"
ITEM = f"{COLLECTION}/<webhook_id>"


@webhooks.get(COLLECTION)
def index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the project's webhooks, oldest first; `state=dead` lists those that reached the maximum number of
    attempts.
    """
    query_params.require_known("state", "marker", "limit")
    rows = operations.listed(
        operation_context(),
        state=query_params.text("state"),
        marker=query_params.text("marker"),
        limit=query_params.integer("limit"),
    )
    return json_response({"webhooks": rows})


@webhooks.post(COLLECTION)
def create(project_id: str) -> Response:
    """Create a webhook; its secret is only in this response."""
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        created = operations.create(context, body)
    response = json_response({"webhook": created}, 201)
    response.headers["Location"] = below(Links().base, project_id, "webhooks", created["id"])
    return response


@webhooks.get(ITEM)
def show(project_id: str, webhook_id: str) -> Response:  # noqa: ARG001 - as above
    """Return a webhook with its state and last error."""
    return json_response({"webhook": operations.show(operation_context(), webhook_id)})


@webhooks.delete(ITEM)
def delete(project_id: str, webhook_id: str) -> Response:  # noqa: ARG001 - as above
    """Delete a webhook."""
    operations.delete(operation_context(), webhook_id)
    return Response(status=204)


@webhooks.post(f"{ITEM}/test")
def test(project_id: str, webhook_id: str) -> Response:  # noqa: ARG001 - as above
    """Send a test message without events now, and return the result."""
    return json_response({"test": operations.test(operation_context(), webhook_id)})


@webhooks.post(f"{ITEM}/rearm")
def rearm(project_id: str, webhook_id: str) -> Response:  # noqa: ARG001 - as above
    """Reactivate a dead webhook."""
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        return json_response({"webhook": operations.reactivate(context, webhook_id, body)})
