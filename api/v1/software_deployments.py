"""Software deployments, and the metadata that agents on servers poll (docs/internals/rest-api.md §12)."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.dependencies import operation_context
from api.request import query_params
from api.request.body import read_body
from api.response.serialization import json_response
from orchestrator.operations.software import api_requests as operations

software_deployments = Blueprint("software_deployments", __name__)


@software_deployments.get("/<project_id>/software_deployments")
def index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the deployments of the project, or of a server."""
    deployments = operations.list_deployments(operation_context(), query_params.text("server_id"))
    return json_response({"software_deployments": deployments})


@software_deployments.get("/<project_id>/software_deployments/metadata/<server_id>")
def metadata(project_id: str, server_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the configs of a server; for its agent unmasked."""
    return json_response({"metadata": operations.metadata(operation_context(), server_id)})


@software_deployments.post("/<project_id>/software_deployments")
def create(project_id: str) -> Response:  # noqa: ARG001 - as above
    """Create a deployment of a config to a server."""
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        return json_response({"software_deployment": operations.create_deployment(context, body)})


@software_deployments.get("/<project_id>/software_deployments/<deployment_id>")
def show(project_id: str, deployment_id: str) -> Response:  # noqa: ARG001 - as above
    """Return a deployment."""
    deployment = operations.show_deployment(operation_context(), deployment_id)
    return json_response({"software_deployment": deployment})


@software_deployments.put("/<project_id>/software_deployments/<deployment_id>")
def update(project_id: str, deployment_id: str) -> Response:  # noqa: ARG001 - as above
    """Update a deployment; null values are ignored."""
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        changed = operations.update_deployment(context, deployment_id, body)
    return json_response({"software_deployment": changed})


@software_deployments.delete("/<project_id>/software_deployments/<deployment_id>")
def delete(project_id: str, deployment_id: str) -> Response:  # noqa: ARG001 - as above
    """Delete a deployment."""
    operations.delete_deployment(operation_context(), deployment_id)
    return Response(status=204)
