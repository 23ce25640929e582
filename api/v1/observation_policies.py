"""Policies, pauses and accepted differences of the observation; an extension of Heat's API."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.dependencies import operation_context
from api.request import query_params
from api.request.body import read_body
from api.response.serialization import Links, below, json_response
from orchestrator.errors import InvalidRequest
from orchestrator.operations.observation import rules as operations

observation_policies = Blueprint("observation_policies", __name__)

COLLECTION = "/<project_id>/observation_policies"
ITEM = f"{COLLECTION}/<rule_id>"


@observation_policies.get(COLLECTION)
def index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the policies, pauses and accepted differences of the project, oldest first."""
    query_params.require_known("kind", "stack", "history", "marker", "limit")
    rows = operations.listed(
        operation_context(),
        kind=query_params.text("kind"),
        stack=query_params.text("stack"),
        history=query_params.boolean("history"),
        marker=query_params.text("marker"),
        limit=query_params.integer("limit"),
    )
    return json_response({"observation_policies": rows})


@observation_policies.post(COLLECTION)
def create(project_id: str) -> Response:
    """Create a policy, a pause or an acceptance; a policy replaces the one for the same object."""
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        created = operations.create(context, body)
    response = json_response({"observation_policy": created}, 201)
    response.headers["Location"] = below(Links().base, project_id, "observation_policies", created["id"])
    return response


@observation_policies.get(f"{COLLECTION}/effective")
def effective(project_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the policy and the pause that apply to a stack, or to a resource in it."""
    query_params.require_known("stack", "resource")
    stack = query_params.text("stack")
    if stack is None:
        raise InvalidRequest("The query needs the name or id of a stack: ?stack=…")
    found = operations.effective(operation_context(), stack, query_params.text("resource"))
    return json_response({"effective": found})


@observation_policies.get(ITEM)
def show(project_id: str, rule_id: str) -> Response:  # noqa: ARG001 - as above
    """Return a policy, a pause or an acceptance, also one that has ended."""
    return json_response({"observation_policy": operations.show(operation_context(), rule_id)})


@observation_policies.delete(ITEM)
def delete(project_id: str, rule_id: str) -> Response:  # noqa: ARG001 - as above
    """End a policy, a pause or an acceptance; it stays in the history."""
    operations.end(operation_context(), rule_id)
    return Response(status=204)
