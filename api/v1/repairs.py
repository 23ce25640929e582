"""Repairs of faults that the observation found; an extension of Heat's API."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.dependencies import operation_context
from api.request import query_params
from api.request.body import read_body
from api.response.serialization import json_response
from orchestrator.operations.observation import repair_requests as operations

repairs = Blueprint("repairs", __name__)

COLLECTION = "/<project_id>/repairs"
ITEM = f"{COLLECTION}/<repair_id>"


@repairs.get(COLLECTION)
def index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the repairs of the project, oldest first; `status=pending` lists those to be approved."""
    query_params.require_known("status", "stack", "marker", "limit")
    rows = operations.listed(
        operation_context(),
        status=query_params.text("status"),
        stack=query_params.text("stack"),
        marker=query_params.text("marker"),
        limit=query_params.integer("limit"),
    )
    return json_response({"repairs": rows})


@repairs.get(ITEM)
def show(project_id: str, repair_id: str) -> Response:  # noqa: ARG001 - as above
    """Return a repair, with its fault and its effect."""
    return json_response({"repair": operations.show(operation_context(), repair_id)})


@repairs.post(f"{ITEM}/approve")
def approve(project_id: str, repair_id: str) -> Response:  # noqa: ARG001 - as above
    """Approve a pending repair; refused if its effect is not the one that was shown."""
    return _answered(repair_id, "approve")


@repairs.post(f"{ITEM}/decline")
def decline(project_id: str, repair_id: str) -> Response:  # noqa: ARG001 - as above
    """Decline a pending repair: this fault is not repaired."""
    return _answered(repair_id, "decline")


def _answered(repair_id: str, verb: str) -> Response:
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        return json_response({"repair": operations.answer(context, repair_id, body, verb)})
