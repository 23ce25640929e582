"""Software configs: list, show, create, delete; they are immutable (docs/internals/rest-api.md §12)."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.dependencies import operation_context
from api.middleware.authorization import require_named
from api.request import query_params
from api.request.body import read_body
from api.response.serialization import json_response
from orchestrator.operations.software import api_requests as operations

software_configs = Blueprint("software_configs", __name__)


@software_configs.get("/<project_id>/software_configs")
def index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the project's configs, newest first; with `global_tenant` the configs of all projects, if the
    policy allows it.
    """
    everywhere = query_params.boolean("global_tenant")
    if everywhere:
        require_named("software_configs:global_index")
    limit, marker = query_params.integer("limit"), query_params.text("marker")
    configs = operations.list_configs(operation_context(), limit, marker, everywhere=everywhere)
    return json_response({"software_configs": configs})


@software_configs.post("/<project_id>/software_configs")
def create(project_id: str) -> Response:  # noqa: ARG001 - as above
    """Create a config."""
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        return json_response({"software_config": operations.create_config(context, body)})


@software_configs.get("/<project_id>/software_configs/<config_id>")
def show(project_id: str, config_id: str) -> Response:  # noqa: ARG001 - as above
    """Return a config."""
    return json_response({"software_config": operations.show_config(operation_context(), config_id)})


@software_configs.delete("/<project_id>/software_configs/<config_id>")
def delete(project_id: str, config_id: str) -> Response:  # noqa: ARG001 - as above
    """Delete a config that no deployment uses."""
    operations.delete_config(operation_context(), config_id)
    return Response(status=204)
