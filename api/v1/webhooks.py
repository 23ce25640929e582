"""Webhooks, ours beside what Heat has: who wants to be told of a project's events."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.dependencies import operation_context
from api.request import query_params
from api.request.body import read_body
from api.response.serialization import Links, below, json_response
from orchestrator.operations.events import webhooks as operations

webhooks = Blueprint("webhooks", __name__)

COLLECTION = "/<project_id>/webhooks"
ONE = f"{COLLECTION}/<webhook_id>"


@webhooks.get(COLLECTION)
def index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the project's webhooks, the oldest first; `state=dead` are those that were given up."""
    found = operations.listed(
        operation_context(),
        state=query_params.text("state"),
        marker=query_params.text("marker"),
        limit=query_params.integer("limit"),
    )
    return json_response({"webhooks": found})


@webhooks.post(COLLECTION)
def create(project_id: str) -> Response:
    """Make a webhook; the answer, and no other, has its secret."""
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        made = operations.create(context, body)
    response = json_response({"webhook": made}, 201)
    response.headers["Location"] = below(Links().base, project_id, "webhooks", made["id"])
    return response


@webhooks.get(ONE)
def show(project_id: str, webhook_id: str) -> Response:  # noqa: ARG001 - as above
    """Show one webhook: where it stands, and what went wrong the last time."""
    return json_response({"webhook": operations.show(operation_context(), webhook_id)})


@webhooks.delete(ONE)
def delete(project_id: str, webhook_id: str) -> Response:  # noqa: ARG001 - as above
    """Remove a webhook."""
    operations.delete(operation_context(), webhook_id)
    return Response(status=204)


@webhooks.post(f"{ONE}/test")
def test(project_id: str, webhook_id: str) -> Response:  # noqa: ARG001 - as above
    """Deliver a message without events now, and tell how that went."""
    return json_response({"test": operations.test(operation_context(), webhook_id)})


@webhooks.post(f"{ONE}/rearm")
def rearm(project_id: str, webhook_id: str) -> Response:  # noqa: ARG001 - as above
    """Let a webhook that was given up try again."""
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        return json_response({"webhook": operations.reactivate(context, webhook_id, body)})
